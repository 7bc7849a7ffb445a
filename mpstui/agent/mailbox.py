"""Requests that reach a trainer: polled cheaply, answered once."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..wire import rundir, storage
from ..wire.records import TRAINER_ACTIONS, Ack, Request
from ..wire.rundir import RunDir

POLL_SECONDS = 0.25


class Mailbox:
    """The requests of one attempt that a trainer answers (``clear_cache``, ``save``)."""

    def __init__(
        self,
        run: RunDir,
        attempt: int,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._attempt = attempt
        self._clock = clock
        self._monotonic = monotonic
        self._next_look = 0.0
        self._seen_mtime = -1.0
        self._taken: set[str] = set()

    def collect(self) -> list[Request]:
        """New requests, oldest first; at most four looks a second, and one stat call each when nothing came.

        Raises:
            OSError: the folder cannot be read.
        """
        now = self._monotonic()
        if now < self._next_look:
            return []
        self._next_look = now + POLL_SECONDS
        return self._read() if self._changed() else []

    def answer(self, ack: Ack) -> None:
        """Write the answer; the first one stands."""
        rundir.answer(self._run, ack)

    def _changed(self) -> bool:
        try:
            mtime = self._run.requests.stat().st_mtime
        except FileNotFoundError:
            return False
        changed = mtime != self._seen_mtime
        self._seen_mtime = mtime if storage.is_settled(mtime, self._clock()) else -1.0
        return changed

    def _read(self) -> list[Request]:
        found = [
            request
            for request in rundir.unanswered(self._run)
            if request.action in TRAINER_ACTIONS and request.attempt == self._attempt and request.id not in self._taken
        ]
        self._taken.update(request.id for request in found)
        return found
