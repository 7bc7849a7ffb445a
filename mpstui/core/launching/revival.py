"""Waiting runs whose supervisor has died get a new one: there is no daemon, so whoever looks does it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...wire import atomic, locks
from ...wire.rundir import RunDir
from ..model.errors import OperationError
from ..model.home import Home
from ..runs.find import run_dirs
from ..runs.waiting import is_abandoned


class Reviver:
    """Looks through the store again and again; a run that has not changed since it was looked at costs one stat.

    Args:
        supervise: starts a supervisor, see :meth:`mpstui.core.launching.actions.Actions.supervise`.
    """

    def __init__(self, home: Home, supervise: Callable[[RunDir], None]) -> None:
        self._home = home
        self._supervise = supervise
        self._done: dict[Path, tuple[int, int, int]] = {}
        """Runs that need nothing until their status is written again, by what was written."""

    def revive(self) -> list[str]:
        """Start what is missing; the ids of the runs that wait for their turn again.

        Raises:
            OperationError: one of them could not be helped; the others were.
        """
        revived, failures = [], []
        for run in run_dirs(self._home.runs):
            try:
                if self._helped(run):
                    revived.append(run.run)
            except OperationError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return revived

    def _helped(self, run: RunDir) -> bool:
        written = atomic.stamp(run.status)
        if written is None or self._done.get(run.path) == written:
            return False
        if locks.is_held(run.supervisor_lock):
            return False
        abandoned = is_abandoned(run)
        if abandoned:
            self._start(run)
        self._done[run.path] = written
        return abandoned

    def _start(self, run: RunDir) -> None:
        try:
            self._supervise(run)
        except OSError as error:
            raise OperationError(f"waiting run {run.run} can get no supervisor: {error.strerror}") from error
