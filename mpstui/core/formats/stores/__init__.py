"""Stores: the folders and databases in which experiment trackers keep runs. One module per store, found by itself.

A module defines a class with the attributes of `Store` and ends with ``STORE = TheClass()``; adding a store is adding a
module and its test, here or in another package (`RUN_STORES`). A store is told the names in one folder after the other
and says which runs lie there; nothing is opened until a run is looked at. No link is followed on the way down, so
neither a loop nor the same run under two names comes of one.
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
"""Looked into for runs; what is left then is found by naming a folder further down."""
DATABASES = (".db", ".sqlite", ".sqlite3")
SEPARATOR = "#"
"""Between a database and one of its runs."""
_SKIPPED = frozenset((".trash", "node_modules", "site-packages", "__pycache__", "venv", ".venv", ".git", ".cache"))


class StoredRun:
    """One run of a store, and how it is read."""

    store: str
    """As people call it: ``W&B``."""
    is_folder: ClassVar[bool] = False
    """Whether it is read like any folder that is watched, by its newest log, heartbeat and metric file."""
    is_shared: ClassVar[bool] = False
    """Whether some of its files hold other runs too: that they grow says nothing of this one."""
    only_beside: str = ""
    """The name of a file that makes its folder a run only where siblings hold one too, and nothing tells more."""
    records_ends: ClassVar[bool] = False
    """Whether each end is recorded by the very process that has the file open: without a record it was killed."""

    def __init__(self, path: Path, name: str = "", key: str = "") -> None:
        self.path = path
        """The folder or file that it lies in."""
        self.name = name or path.name
        """While the store does not tell a better one."""
        self.key = key or str(path)

    @property
    def joins(self) -> str:
        """Runs of the same word are one that was begun several times; empty: it is one alone."""
        return ""

    @property
    def parts(self) -> Sequence[StoredRun]:
        """Itself, or each time that it was begun, in their order."""
        return (self,)

    def join(self, other: StoredRun) -> None:
        """Take in another time that it was begun."""

    def others(self) -> Sequence[StoredRun]:
        """Looks beside a run that was named for the other times that it was begun."""
        return ()

    @property
    def output(self) -> Path | None:
        """What it printed, where the store keeps that."""
        return None

    @property
    def outputs(self) -> Sequence[Path | None]:
        """Likewise, of each time that it was begun."""
        return (self.output,)

    def files(self) -> Sequence[Path]:
        """What changes when there is news of it; called again and again."""
        return (self.path,)

    def own_files(self) -> Sequence[Path]:
        """Those that hold no other run: whoever writes one of them writes this one."""
        return () if self.is_shared else self.files()

    def open(self) -> MetricFile | None:
        """A new reader of its curves; None while there is nothing to read. Raises OSError."""
        raise NotImplementedError

    def told(self, reader: MetricFile | None) -> RunTold:
        """What the store says of it now; ``reader`` is of ``open``, as far as it has read. Raises OSError."""
        return RunTold()


class Store(Protocol):
    """What finds the runs of one kind of store."""

    priority: ClassVar[Priority]
    """Who is asked first: the runs of a folder belong to one store."""
    alone: ClassVar[bool]
    """Whether a single one is shown as a run of the store, also where the folder holds more than the store knows."""

    deeper: ClassVar[bool]
    """Whether further runs are looked for below the folder of one."""

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        """The runs in a folder with these names; None: it is not of this kind."""

    def runs_of(self, file: Path) -> list[StoredRun]:
        """The runs of a file that was named."""


@cache
def stores() -> tuple[Store, ...]:
    """Every store, in the order in which they are asked."""
    found: list[Store] = discovered(__name__, RUN_STORES, "STORE")
    return tuple(sorted(found, key=lambda store: (store.priority, type(store).__name__)))


def find_runs(path: Path, known: Callable[[str], bool] | None = None) -> list[StoredRun]:
    """The runs of a folder, a file, or a database with one of its runs behind ``#``, the newest first.

    A run of a database may be named by its id, or by its name: then the newest of that name is meant.

    Args:
        known: whether a folder's path is that of a run that was found before; such a folder is not looked into.
    """
    if path.is_dir():
        path = path.resolve() if path.is_symlink() else path
        walked = list(_walk(path, known or (lambda _: False)))
        found = list(_with_siblings(walked, path, fewest=2 if known is None else 1))
        if len(found) == 1 and not found[0][1] and known is None:
            return []  # one among other files: the folder as a whole says more
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
    """Without what is a run only beside others of its kind, where there are too few, or something tells more."""
    alike = Counter(run.only_beside for run, _ in found)
    places = {run.path for run, _ in found if run.only_beside}
    for run, alone in found:
        is_part = path in places or not places.isdisjoint(run.path.parents)
        if not run.only_beside or (not alike[""] and alike[run.only_beside] >= fewest and not is_part):
            yield run, alone


def joined(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """One run for each that was begun several times: the first of them, which has taken in the others."""
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
    """Whether a path is a file of SQLite, whatever it holds and whoever writes it."""
    from ._sqlite import Database

    return path.is_file() and Database(path).is_one


def store_of(path: Path) -> Path:
    """The same without the run that may be named behind it."""
    return path if path.exists() or path.is_symlink() else Path(str(path).partition(SEPARATOR)[0])


def require_path(path: Path) -> None:
    """Make sure that there is something to be read.

    Raises:
        UsageError: there is no such file, or no such run in a database, or nothing that is read here.
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
                continue  # gone, or nobody's business
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
    """The store to which a folder belongs, and its runs there."""
    for store in stores():
        runs = store.runs_in(folder, names)
        if runs is not None:
            return store, runs
    return None, []


def _changed(run: StoredRun) -> float:
    stamp = storage.stamp(run.path)
    return stamp[0] / 1e9 if stamp is not None else 0.0
