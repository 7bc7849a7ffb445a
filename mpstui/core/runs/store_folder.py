"""The runs below a folder or in a database, searched repeatedly because new ones may begin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..formats.stores import StoredRun, find_runs
from .local_machine import LocalMachine

LOOK_SECONDS = 2.0
"""How often a folder is searched for new runs."""
LOOKING_SHARE = 0.05
"""Searching takes at most this share of a core: a large folder is searched less often."""
MOST_RUNS = 1000
"""How many runs of a folder are shown at most: the newest."""


class StoreFolder:
    """A folder or database, and the runs found there."""

    def __init__(self, path: Path, found: Sequence[StoredRun]) -> None:
        self._path = path
        self._known = {run.key: run for run in found}
        self._fresh: list[StoredRun] = list(found[:MOST_RUNS])
        self._shown = len(self._fresh)
        self._look_at = 0.0

    @property
    def left_out(self) -> int:
        """The number of runs too old to be shown."""
        return len(self._known) - self._shown

    def look(self, machine: LocalMachine) -> list[StoredRun]:
        """Return runs that have appeared since the last call, newest first."""
        fresh, self._fresh = self._fresh, []
        begun = machine.monotonic()
        if not fresh and begun >= self._look_at:
            folders = {str(one.path) for run in self._known.values() for one in run.parts}
            begun_again = {run.joins: run for run in self._known.values() if run.joins}
            found = find_runs(self._path, folders.__contains__ if folders else None)
            fresh = []
            if not all(run.only_beside for run in self._known.values()):
                found = [run for run in found if not run.only_beside]
            for run in found:
                known = begun_again.get(run.joins) or self._known.get(run.key)
                if known is None:
                    fresh.append(run)
                elif len(run.parts) > 1 or run.key != known.key:
                    known.join(run)
            self._known |= {run.key: run for run in fresh}
            fresh = fresh[: max(0, MOST_RUNS - self._shown)]
            self._shown += len(fresh)
            self._look_at = begun + max(LOOK_SECONDS, (machine.monotonic() - begun) / LOOKING_SHARE)
        return fresh
