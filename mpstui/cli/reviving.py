"""What waits must not wait for nobody: every command that looks gives a dead supervisor's run a new one."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..core.model.errors import OperationError
from ..core.runs.find import run_dirs
from ..core.runs.waiting import is_abandoned
from .session import Session, warn

LOOK_SECONDS = 5.0


def revive(session: Session) -> bool:
    """Look through the store once; True when a run got a supervisor. One that cannot be helped is told of."""
    if not any(is_abandoned(run) for run in run_dirs(session.home.runs)):
        return False
    from ..core.launching.actions import Actions
    from ..core.launching.supervisors import SupervisorRecovery

    try:
        revived = SupervisorRecovery(session.home, Actions(session.home, session.environ).supervise).respawn_missing()
    except OperationError as error:
        warn(error.sentence)
        return False
    for name in revived:
        warn(f"{name} had lost its supervisor while it waited, and has a new one")
    return bool(revived)


class Watchful:
    """For a command that goes on looking: revives every few seconds, and at once where that may change the answer."""

    def __init__(self, session: Session, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._clock = session, clock
        self._look_at = clock()

    def revive(self, *, at_once: bool = False) -> bool:
        """True when a run got a supervisor."""
        if not at_once and self._clock() < self._look_at:
            return False
        self._look_at = self._clock() + LOOK_SECONDS
        return revive(self._session)
