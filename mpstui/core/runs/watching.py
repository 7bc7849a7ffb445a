"""What is watched besides the runs of this home: files, folders, scheduler jobs, and runs in stores."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...wire.rundir import RunDir

if TYPE_CHECKING:
    from ..follow import Budget
    from ..formats.stores import StoredRun
    from .follower import RunFollower
    from .local_machine import LocalMachine
    from .store_folder import StoreFolder
    from .stored_best import KeptBest

# Readers of stores, files and jobs are imported only when one is watched: most lists have none.


BEGINNING_SECONDS = 60.0
"""A program that has been writing for this long will not start a tracker any more: its folder stays a plain one."""


class Watching(dict[str, "RunFollower"]):
    """The readers of what is watched, by key. New runs in a watched folder, and jobs of this user, are added."""

    def __init__(self, machine: LocalMachine, columns: int | None, state: Path) -> None:
        """``state``: the home's state folder."""
        super().__init__()
        self.grows = False
        """True if more runs may be added automatically."""
        self._machine = machine
        self._columns = columns
        self._state = state
        self._folders: list[StoreFolder] = []
        self._empty: dict[str, StoreFolder] = {}
        """Folders without a stored run yet, which are shown as plain folders until one begins there."""
        self._told_at: dict[str, float] = {}
        """When such a folder was first found to contain data."""
        self._jobs_of = ""
        self._kept: KeptBest | None = None

    @property
    def left_out(self) -> int:
        """The number of runs below the watched folders that are too old to be shown."""
        return sum(folder.left_out for folder in self._folders)

    def watch(self, path: Path) -> Collection[str]:
        """Add what a path refers to; return the keys of its runs, none if they will appear later."""
        from ..formats.stores import find_runs, is_database
        from .reader import RunReader
        from .store_folder import MOST_RUNS, StoreFolder
        from .watched import WatchedReader
        from .watched_jobs import ALL_JOBS, WatchedJob, job_named

        if str(path) in ALL_JOBS:
            self._jobs_of, self.grows = str(path)[:-1], True
            return ()
        if (named := job_named(str(path))) is not None:
            return [self._add(str(path), WatchedJob(*named, self._machine, self._columns, self._state))]
        path = path.expanduser().absolute()
        if (path / "spec.json").is_file():
            reader = RunReader(RunDir(path), self._machine, columns=self._columns)
            reader.key = str(path)  # not its id, which a run of this home may have too
            return [self._add(reader.key, reader)]
        runs = find_runs(path)
        if not runs and is_database(path):  # of an unknown kind, or locked by its writer: in any case not a log
            self._folders.append(StoreFolder(path, ()))
            self.grows = True
            return ()
        if not runs:
            if path.is_dir():
                self._empty[str(path)] = StoreFolder(path, ())
                self.grows = True
            return [self._add(str(path), WatchedReader(path, self._machine, self._columns))]
        if len(runs) > 1 or runs[0].path != path or runs[0].joins:
            self._folders.append(StoreFolder(path, runs))
            self.grows = True
        return [self._add_stored(run) for run in runs[:MOST_RUNS]]

    def look(self, ours: Iterable[RunFollower]) -> None:
        """Add what is new; ``ours`` are the readers of our own runs, whose jobs are not foreign."""
        if self._jobs_of:
            from .watched_jobs import other_jobs

            for job in other_jobs(self._jobs_of, ours, self._state):
                self.watch(job)
        for key, folder in list(self._empty.items()):
            told, now = self[key].snapshot, self._machine.monotonic()
            if told is not None and told.updated is not None:
                self._told_at.setdefault(key, now)
            if self._take_from(folder):
                self._folders.append(self._empty.pop(key))
                del self[key]
            elif now - self._told_at.get(key, now) > BEGINNING_SECONDS:
                del self._empty[key]
        for folder in self._folders:
            self._take_from(folder)

    def _take_from(self, folder: StoreFolder) -> bool:
        fresh = folder.look(self._machine)
        for run in fresh:
            self._add_stored(run)
        return bool(fresh)

    def _add_stored(self, run: StoredRun) -> str:
        from .stored import reader_of
        from .stored_best import kept_in

        self._kept = self._kept or kept_in(self._state)
        return self._add(run.key, reader_of(run, self._machine, self._columns, self._kept))

    @property
    def lacks_best(self) -> bool:
        """True if the best values of some long run are still unknown."""
        return any(reader.lacks_best for reader in self.values())

    def read_best(self, budget: Budget) -> None:
        """Continue reading the best values of the first long run that lacks them."""
        found = next((reader for reader in self.values() if reader.lacks_best), None)
        if found is not None:
            found.read_best(budget)

    def _add(self, key: str, reader: RunFollower) -> str:
        self.setdefault(key, reader)
        return key
