"""The runs below one folder, or of one database: searched again and again, since others may begin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..formats.stores import StoredRun, find_runs
from .local_machine import LocalMachine

LOOK_SECONDS = 2.0
"""How often a folder is searched for further runs."""
LOOKING_SHARE = 0.05
"""At most this share of a core: a large folder is searched less often."""
MOST_RUNS = 1000
"""The most runs shown of one folder, the newest."""


class StoreFolder:
    """One folder or database, and the runs that were found there."""

    def __init__(self, path: Path, found: Sequence[StoredRun]) -> None:
        self._path = path
        self._known = {run.key: run for run in found}
        self._fresh: list[StoredRun] = list(found[:MOST_RUNS])
        self._shown = len(self._fresh)
        self._look_at = 0.0

    @property
    def left_out(self) -> int:
        """Runs that are too old to be shown."""
        return len(self._known) - self._shown

    def look(self, machine: LocalMachine) -> list[StoredRun]:
        """Runs that have appeared since the last call, the newest first."""
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
