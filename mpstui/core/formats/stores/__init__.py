"""Stores: the folders and databases in which experiment trackers keep runs. One module per store, discovered
automatically.

A module defines a class with the attributes of `Store` and ends with ``STORE = TheClass()``; a store is added as one
module and its test, here or in another package (`RUN_STORES`). A store is given the names in one folder at a time and
returns the runs there; no run is opened until it is looked at. Symbolic links below the start are not followed, which
rules out loops and the same run under two names.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from ....wire import storage
from ...model.errors import UsageError
from ...model.plugins import RUN_STORES, discovered
from ..points import Priority
from ..told import RunTold

if TYPE_CHECKING:
    from ..files import MetricFile

DEEPEST = 6
MOST_FOLDERS = 50_000
"""Folders searched for runs; any beyond are found by naming a folder further down."""
DATABASES = (".db", ".sqlite", ".sqlite3")
SEPARATOR = "#"
"""Separates a database from one of its runs in a path."""
_SKIPPED = frozenset((".trash", "node_modules", "site-packages", "__pycache__", "venv", ".venv", ".git", ".cache"))


class StoredRun:
    """One run of a store, and the way to read it."""

    store: str
    """The store's usual name: ``W&B``."""
    is_folder: ClassVar[bool] = False
    """True if it is read like any watched folder, by its newest log, heartbeat and metric file."""
    is_shared: ClassVar[bool] = False
    """True if its files hold other runs too, so that their growth says nothing about this one."""
    only_beside: str = ""
    """A file name that makes its folder a run only if sibling folders hold one too, and nothing better marks a run."""
    records_ends: ClassVar[bool] = False
    """True if the process that has the file open records its own end: without a record, it was killed."""

    def __init__(self, path: Path, name: str = "", key: str = "") -> None:
        self.path = path
        """The folder or file that holds the run."""
        self.name = name or path.name
        """The name to show until the store supplies a better one."""
        self.key = key or str(path)

    @property
    def joins(self) -> str:
        """Runs with the same key are launches of one run; empty if it belongs with no other."""
        return ""

    @property
    def parts(self) -> Sequence[StoredRun]:
        """Itself, or each launch of the run, in order."""
        return (self,)

    def join(self, other: StoredRun) -> None:
        """Take in another launch of this run."""

    def others(self) -> Sequence[StoredRun]:
        """Search beside a run named by the user for its other launches."""
        return ()

    @property
    def output(self) -> Path | None:
        """The file with its console output, if the store keeps it."""
        return None

    @property
    def outputs(self) -> Sequence[Path | None]:
        """The same for each launch."""
        return (self.output,)

    def files(self) -> Sequence[Path]:
        """Return the files that change when the run does; called again and again."""
        return (self.path,)

    def own_files(self) -> Sequence[Path]:
        """Return the files that hold no other run: whoever writes one of them writes this run."""
        return () if self.is_shared else self.files()

    def open(self) -> MetricFile | None:
        """Return a new reader of its curves; None while there is nothing to read. Raises OSError."""
        raise NotImplementedError

    def told(self, reader: MetricFile | None) -> RunTold:
        """Return what the store says of it now; ``reader`` is from ``open``, as far as it has read. Raises OSError."""
        return RunTold()


class Store(Protocol):
    """Finds the runs of one kind of store."""

    priority: ClassVar[Priority]
    """The order in which stores are asked: the first one that claims a folder owns its runs."""
    alone: ClassVar[bool]
    """True if a single run is shown as one of the store, even in a folder with files unknown to the store."""

    deeper: ClassVar[bool]
    """True if the folder of a run is searched for further runs."""

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        """Return the runs in a folder with these entries; None if it is not of this kind."""

    def runs_of(self, file: Path) -> list[StoredRun]:
        """Return the runs in a given file."""


@cache
def stores() -> tuple[Store, ...]:
    """Return every store, in the order in which they are asked."""
    found: list[Store] = discovered(__name__, RUN_STORES, "STORE")
    return tuple(sorted(found, key=lambda store: (store.priority, type(store).__name__)))


def find_runs(path: Path, known: Callable[[str], bool] | None = None) -> list[StoredRun]:
    """Return the runs of a folder, a file, or a database with ``#`` and one of its runs, the newest first.

    A run of a database is given by its id, or by its name, which means the newest run of that name.

    Args:
        known: whether a folder's path is that of a run found before; such folders are not searched.
    """
    if path.is_dir():
        path = path.resolve() if path.is_symlink() else path
        walked = list(_walk(path, known or (lambda _: False)))
        found = list(_with_siblings(walked, path, fewest=2 if known is None else 1))
        if len(found) == 1 and not found[0][1] and known is None:
            return []  # a single run among other files: watching the whole folder shows more
        runs = [run for run, _ in found]
        runs = joined([*runs, *(one for run in runs if run.path == path for one in run.others())])
        dated = [(max(map(_changed, run.parts)), place, run) for place, run in enumerate(runs)]
        return [run for _, _, run in sorted(dated, key=lambda one: (-one[0], one[1]))]
    if path.is_file():
        return _of_file(path)
    store = store_of(path)
    if store == path:
        return []
    runs, wanted = find_runs(store, known), str(path)[len(str(store)) + len(SEPARATOR) :]
    return [run for run in runs if run.key == str(path)] or [run for run in runs if run.name == wanted][:1]


def _with_siblings(found: list[tuple[StoredRun, bool]], path: Path, *, fewest: int) -> Iterator[tuple[StoredRun, bool]]:
    """Drop runs that need siblings (`StoredRun.only_beside`) if there are too few of them, or better signs of runs."""
    alike = Counter(run.only_beside for run, _ in found)
    places = {run.path for run, _ in found if run.only_beside}
    for run, alone in found:
        is_part = path in places or not places.isdisjoint(run.path.parents)
        if not run.only_beside or (not alike[""] and alike[run.only_beside] >= fewest and not is_part):
            yield run, alone


def joined(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Merge the launches of each run into the first of them."""
    same: dict[str, list[StoredRun]] = {}
    for run in runs:
        same.setdefault(run.joins or f"{SEPARATOR}{run.key}", []).append(run)
    found = []
    for parts in same.values():
        first = min(parts, key=lambda run: run.path.name.rpartition("run-")[2])
        for one in parts:
            if one is not first:
                first.join(one)
        found.append(first)
    return found


def _of_file(file: Path) -> list[StoredRun]:
    return next((runs for store in stores() if (runs := store.runs_of(file))), [])


def is_database(path: Path) -> bool:
    """True if a path is an SQLite file, whatever it holds."""
    from ._sqlite import Database

    return path.is_file() and Database(path).is_one


def store_of(path: Path) -> Path:
    """Return the path without the run that may follow it."""
    return path if path.exists() or path.is_symlink() else Path(str(path).partition(SEPARATOR)[0])


def require_path(path: Path) -> None:
    """Make sure that the path exists.

    Raises:
        UsageError: there is no such file, or no such run in a database.
    """
    if path.exists():
        return
    store, run = store_of(path), str(path).partition(SEPARATOR)[2]
    if store.exists():
        if find_runs(path):
            return
        raise UsageError(f"{store} has no run {run}", f"`mpstui watch {store}` lists its runs")
    raise UsageError(f"there is no {path}", "name a log, a heartbeat, a metric file, a folder or a store of runs")


def _walk(folder: Path, known: Callable[[str], bool]) -> Iterator[tuple[StoredRun, bool]]:
    level, visited = [str(folder)], 0
    for _ in range(DEEPEST):
        below: list[str] = []
        for one in level:
            visited += 1
            if visited > MOST_FOLDERS:
                return
            try:
                with os.scandir(one) as entries:
                    names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
            except OSError:
                continue  # gone, or not readable
            for name in sorted(name for name in names if name.endswith(DATABASES) and not names[name]):
                yield from ((run, True) for run in _of_file(Path(one, name)))
            store, runs = _claimed(Path(one), names)
            yield from ((run, store is not None and store.alone) for run in runs)
            if store is not None and not store.deeper:
                continue
            folders = sorted(name for name, is_folder in names.items() if is_folder and name not in _SKIPPED)
            below += [inside for name in folders if not known(inside := f"{one}/{name}")]
        level = below


def _claimed(folder: Path, names: Collection[str]) -> tuple[Store | None, list[StoredRun]]:
    """Return the store that claims a folder, and its runs there."""
    for store in stores():
        runs = store.runs_in(folder, names)
        if runs is not None:
            return store, runs
    return None, []


def _changed(run: StoredRun) -> float:
    stamp = storage.stamp(run.path)
    return stamp[0] / 1e9 if stamp is not None else 0.0
