"""TensorBoard's log directories: each folder with event files is a run, all of its files together."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..points import Point, PointColumns, Priority
from ..rows import Rows
from ..vocabulary import EVAL_WORDS
from . import Store, StoredRun
from ._curves import Curves

if TYPE_CHECKING:
    from ..files import MetricFile
    from ..files.tensorboard import TensorBoard

_MARK = "tfevents"


class EventRun(StoredRun):
    """The event files of one folder."""

    store = "TensorBoard"

    def __init__(self, path: Path) -> None:
        super().__init__(path, f"{path.parent.name}/{path.name}")

    def files(self) -> Sequence[Path]:
        return event_files(self.path)

    def open(self) -> MetricFile | None:
        return EventCurves(self.path)


class EventCurves(Curves):
    """Scalars of several files, of which a program that went on has begun each."""

    name: ClassVar[str] = "tensorboard"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rows = Rows(self.name, evaluation=path.name.lower() in EVAL_WORDS)
        self._readers: dict[Path, TensorBoard] = {}

    def take(self, limit: int) -> Sequence[Point]:
        from ..files.tensorboard import TensorBoard

        found: list[Point] = []
        for file in event_files(self.path):
            reader = self._readers.setdefault(file, TensorBoard(file, self.rows))
            before = reader.position
            found += reader.take(limit)
            limit -= reader.position - before
            if limit <= 0:
                break
        self.position = sum(reader.position for reader in self._readers.values())
        if len(self._readers) > 1:  # of two that are written side by side the newest value is the newest
            found.sort(key=lambda point: point.times[-1] if isinstance(point, PointColumns) and point.times else 0.0)
        return found


def event_files(folder: Path) -> list[Path]:
    """Those of a folder, in the order in which they were begun, which is in their names; none where it is gone."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _MARK in entry.name)
    except OSError:
        return []
    return [folder / name for name in names]


class TensorBoardStore:
    """Told by the names of the files. A run may have others below it, as TensorBoard shows them."""

    priority: ClassVar[Priority] = Priority.GENERAL
    alone: ClassVar[bool] = False
    deeper: ClassVar[bool] = True

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        return [EventRun(folder)] if any(_MARK in name for name in names) else None

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


STORE: Store = TensorBoardStore()
