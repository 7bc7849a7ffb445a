"""Waiting runs that lost their supervisor: every command that lists runs or waits for them starts a new one."""

from __future__ import annotations

from collections.abc import Mapping

from ...wire.rundir import run_dirs
from ..model.home import Home
from ..runs.waiting import is_abandoned


def respawn_missing(home: Home, environ: Mapping[str, str]) -> list[str]:
    """Start a supervisor for each of them; return the ids of these runs.

    Raises:
        OperationError: one could not be started; the others were.
    """
    if not any(map(is_abandoned, run_dirs(home.runs))):
        return []
    from .actions import Actions, SupervisorRecovery  # takes 30 ms, and is rarely needed

    actions = Actions(environ)
    return SupervisorRecovery(home, actions.supervise, actions.supervising_many).respawn_missing()
