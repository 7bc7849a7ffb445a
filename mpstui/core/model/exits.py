"""How an attempt ended, in the form that is shown. None means unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...wire.jobs import CANCEL
from .moment import Moment


class ExitSummary(NamedTuple):
    """How the newest attempt ended."""

    code: int | None
    signal: int | None
    cause: str | None
    requested_by: str | None
    action: str | None = None
    ended: Moment | None = None
    spawn_error: str | None = None
    evidence: Mapping[str, str] = {}
    unbegun: bool = False
    """It was cancelled before its program was started: there is neither exit code nor output."""

    def sentence(self) -> str:
        """Describe the exit code or signal in a few words: ``ended by SIGTERM, asked for by ...``."""
        import signal as signals

        if self.unbegun:
            return "never started"
        if self.spawn_error:
            return f"could not be started: {self.spawn_error}"
        if self.signal is not None:
            try:
                name = signals.Signals(self.signal).name
            except ValueError:
                name = str(self.signal)
            how = f"ended by {name}"
        else:
            how = "exit code unknown" if self.code is None else f"exit code {self.code}"
        if self.action == CANCEL:
            return f"job cancelled through {self.requested_by}, {how}"
        return how + (f", asked for by {self.requested_by}" if self.requested_by and self.signal is not None else "")
