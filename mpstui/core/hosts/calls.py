"""Requests from another machine, recorded so that each is carried out once, however often it is repeated.

A line may break between a request and its answer; the caller then repeats the call under the same id. One that is done
is answered again, one that is running is waited for, and one that was cancelled never begins, however late it arrives.
One whose process died is continued: whatever carries it out leaves its id in what it makes, and looks for that first.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...wire import liveness, storage
from ..model.errors import OperationError

KEPT_SECONDS = 2 * 86_400.0
PATIENCE_SECONDS = 120.0
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{7,120}")
CALLED_OFF = "it had been withdrawn"


class Call(NamedTuple):
    """One request, as passed to the code that carries it out."""

    id: str
    again: bool = False
    """A process that has died had begun it: how far it got must be found out."""


class CallBook:
    """The calls of one home; any number of processes may use it at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def once(self, call: str, work: Callable[[Call], dict[str, Any]]) -> dict[str, Any]:
        """Carry out a call unless that was done before; return its result either way.

        Raises:
            OperationError: it was cancelled.
        """
        with self.holding(call):
            kept = storage.read_json(self._record(call))
            if kept is not None and "came" in kept:
                return dict(kept["came"])
            if kept is not None and kept.get("off"):
                raise OperationError(CALLED_OFF, "ask again if it is still wanted")
            storage.write_json(self._record(call), {"begun": time.time()})
            came = work(Call(call, again=kept is not None))
            storage.write_json(self._record(call), {"came": came})
            return came

    def call_off(self, call: str) -> dict[str, Any] | None:
        """Cancel a call that nobody waits for any more, or return its result.

        None: it was not begun, and never will be. Empty: a process that has died had begun it; repeating the call
        gives the result.
        """
        with self.holding(call):
            kept = storage.read_json(self._record(call))
            if kept is None:
                storage.write_json(self._record(call), {"off": True})
                return None
            if kept.get("off"):
                return None
            return dict(kept.get("came", {}))

    def forget(self) -> None:
        """Drop calls so old that nobody will repeat them."""
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                    path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def holding(self, call: str) -> Iterator[None]:
        """Hold a call's lock, so that nobody else acts on it.

        Raises:
            OperationError: somebody else is still acting on it.
        """
        if not _ID.fullmatch(call):
            raise OperationError("a call without an id of ours")
        storage.make_private_folder(self._folder)
        until = time.monotonic() + PATIENCE_SECONDS
        while (held := liveness.acquire(self._folder / f"{call}.lock")) is None:
            if time.monotonic() >= until:
                raise OperationError("it is still being done")
            time.sleep(0.02)
        try:
            yield
        finally:
            liveness.release(held)

    def _record(self, call: str) -> Path:
        return self._folder / f"{call}.json"
