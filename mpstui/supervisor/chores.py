"""What has to be done now and then while a trainer runs."""

from __future__ import annotations

import errno

from ..wire.records import Spec
from ..wire.rundir import RunDir
from . import logcap
from .clock import Clock
from .journal import Journal

EVERY_SECONDS = 5.0


class Chores:
    """Keeps the output within its limit; says once when it cannot."""

    def __init__(self, run: RunDir, spec: Spec, clock: Clock) -> None:
        self._run = run
        self._limit = spec.max_log_bytes
        self._clock = clock
        self._next = 0.0
        self._impossible = False

    def do(self, journal: Journal, attempt: int) -> None:
        """Look, at most every five seconds."""
        now = self._clock.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_SECONDS
        if not self._impossible:
            self._trim(journal, attempt)

    def _trim(self, journal: Journal, attempt: int) -> None:
        try:
            hole = logcap.trim(self._run.attempt(attempt).output, self._limit)
        except FileNotFoundError:
            return
        except OSError as error:
            self._impossible = True
            unsupported = error.errno == errno.EOPNOTSUPP
            reason = "this file system cannot free a part of a file" if unsupported else error.strerror
            journal.event("note", f"output.log grew past {self._limit} bytes and nothing was cut: {reason}")
            return
        if hole is not None:
            text = f"output.log: bytes {hole.start} to {hole.end} were freed (limit {self._limit}); they read as zeros"
            journal.event("note", text, start=hole.start, end=hole.end)
