"""The requests folder, looked into cheaply: listed when it changed, and now and then in any case."""

from __future__ import annotations

from ..wire import rundir
from ..wire.records import TRAINER_ACTIONS, Request
from ..wire.rundir import RunDir
from .clock import Clock

LIST_ANYWAY_SECONDS = 2.0
"""File times are coarse, and a write within the same tick of the clock may leave the folder's time as it was."""


class Inbox:
    """Hands out each request once."""

    def __init__(self, run: RunDir, clock: Clock) -> None:
        self._run = run
        self._clock = clock
        self._seen: set[str] = set()
        self._changed = -1
        self._list_at = 0.0

    def poll(self, *, trainer_lives: bool) -> list[Request]:
        """New requests, oldest first; what the trainer answers is left to it while it lives."""
        if not self._is_due(trainer_lives):
            return []
        fresh = [item for item in rundir.unanswered(self._run) if item.id not in self._seen]
        mine = [item for item in fresh if not (trainer_lives and item.action in TRAINER_ACTIONS)]
        self._seen.update(item.id for item in mine)
        return mine

    def mark_seen(self, request: Request) -> None:
        """Somebody carries it out already."""
        self._seen.add(request.id)

    def waiting(self) -> bool:
        """Whether a request lies there that was not handed out."""
        return any(item.id not in self._seen for item in rundir.unanswered(self._run))

    def _is_due(self, trainer_lives: bool) -> bool:
        now = self._clock.monotonic()
        try:
            changed = self._run.requests.stat().st_mtime_ns
        except OSError:
            return False
        if changed == self._changed and now < self._list_at and trainer_lives:
            return False
        self._changed, self._list_at = changed, now + LIST_ANYWAY_SECONDS
        return True
