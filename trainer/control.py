"""SIGTERM and SIGINT become a flag that the loop reads between two steps; asking again ends the process at once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from types import FrameType

_ONE_REQUEST_SECONDS = 1.0
_ONE_REQUEST_UNDER_TORCHRUN_SECONDS = 10.0


class Control:
    """Whether this process has been asked to end.

    One request can arrive as several signals: a stop goes to the whole process group, and torchrun, which is part of
    it, passes its own on to its processes. Only a signal that comes later than that counts as a second request.
    """

    def __init__(
        self, environ: Mapping[str, str] | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        under_torchrun = "TORCHELASTIC_RUN_ID" in (environ or {})
        self._one_request_seconds = _ONE_REQUEST_UNDER_TORCHRUN_SECONDS if under_torchrun else _ONE_REQUEST_SECONDS
        self._monotonic = monotonic
        self._asked_at = 0.0
        self.stop_requested = False
        self.signal_name: str | None = None

    def install(self) -> Control:
        """Take over SIGTERM and SIGINT. Must run in the main thread, before anything slow is imported."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.on_signal)
        return self

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Note the request; end at once if an earlier request had no effect."""
        if not self.stop_requested:
            self.stop_requested = True
            self.signal_name = signal.Signals(number).name
            self._asked_at = self._monotonic()
        elif self._monotonic() - self._asked_at > self._one_request_seconds:
            os._exit(128 + number)
