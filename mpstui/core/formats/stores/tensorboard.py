"""TensorBoard log directories: each folder with event files is one run, made of all its files."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ....wire import storage
from ..event_values import OF_ARGUMENTS, Beside
from ..media import Media
from ..points import Point, PointColumns, Priority
from ..rows import Rows
from ..told import RunTold
from ..vocabulary import EVAL_WORDS
from . import Store, StoredRun
from ._curves import Curves

if TYPE_CHECKING:
    from ..files import MetricFile
    from ..files.tensorboard import TensorBoard

_MARK = "tfevents"
_MOST_ENDS = 3


class EventRun(StoredRun):
    """The event files of one folder."""

    store = "TensorBoard"

    def __init__(self, path: Path) -> None:
        super().__init__(path, f"{path.parent.name}/{path.name}")

    def files(self) -> Sequence[Path]:
        return event_files(self.path)

    def open(self) -> MetricFile | None:
        return EventCurves(self.path)

    def told(self, reader: MetricFile | None) -> RunTold:
        return RunTold(config=dict(reader.settings)) if isinstance(reader, EventCurves) else RunTold()


class EventCurves(Curves):
    """Reads the scalars of several event files; a program begins a new one each time it is resumed."""

    name: ClassVar[str] = "tensorboard"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rows = Rows(self.name, evaluation=path.name.lower() in EVAL_WORDS)
        self.beside = Beside()
        self._readers: dict[Path, TensorBoard] = {}

    @property
    def media(self) -> Media:
        """The images and texts of all of its files."""
        return self.beside.media

    @property
    def settings(self) -> Mapping[str, str]:
        """The arguments of the run (hparams)."""
        return self.beside.settings

    def glance(self) -> Sequence[Point]:
        """Return the points at the ends of its newest files."""
        from ..files.tensorboard import TensorBoard

        newest = sorted(event_files(self.path), key=lambda file: storage.stamp(file) or (0, 0, 0))[-_MOST_ENDS:]
        return [point for file in newest for point in TensorBoard(file).glance()]

    def take(self, limit: int) -> Sequence[Point]:
        from ..files.tensorboard import TensorBoard

        found: list[Point] = []
        for file in event_files(self.path):
            reader = self._readers.get(file)
            if reader is None:  # a subfolder holds results written once beside arguments, at no step of the run
                aside = file.parent != self.path
                reader = self._readers[file] = TensorBoard(file, self.rows, self.beside, aside=aside)
            before = reader.position
            found += reader.take(limit)
            limit -= reader.position - before
            if limit <= 0:
                break
        self.position = sum(reader.position for reader in self._readers.values())
        if len(self._readers) > 1:  # files may be written at the same time: the newest value goes last
            found.sort(key=lambda point: point.times[-1] if isinstance(point, PointColumns) and point.times else 0.0)
        return found


def event_files(folder: Path) -> list[Path]:
    """Return the event files of a run in the order of creation, which their names tell; empty if the folder is gone."""
    found = _names(folder)
    below = (folder / name for name in found if OF_ARGUMENTS.fullmatch(name))
    own = [folder / name for name in found if _MARK in name]
    return own + [one / name for one in below if own for name in _names(one) if _MARK in name]


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


class TensorBoardStore:
    """Recognised by the names of the files. Like TensorBoard, it allows runs below the folder of another run."""

    priority: ClassVar[Priority] = Priority.GENERAL
    alone: ClassVar[bool] = False
    deeper: ClassVar[bool] = True

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        if not any(_MARK in name for name in names):
            return None
        is_part = OF_ARGUMENTS.fullmatch(folder.name) and any(_MARK in name for name in _names(folder.parent))
        return [] if is_part else [EventRun(folder)]

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


STORE: Store = TensorBoardStore()
