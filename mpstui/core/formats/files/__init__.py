"""Metric files: what programs write besides their console output. One module per format, discovered automatically.

A module defines a class with the attributes of `MetricFile` and ends with ``FILE = TheClass``; a format is added as one
module and its test, here or in another package (`METRIC_FILES`). Each reader owns one file: ``poll`` returns the points
added since the last call, ``close`` those held back while the file might still grow, ``summary`` what the file says so
far. `detect` chooses the reader of a file, or of the best file in a folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol

from ....wire import storage
from ...follow import LONGEST_LINE_BYTES, LineTail
from ...model.errors import OperationError, UsageError
from ...model.plugins import METRIC_FILES, discovered
from ..bulk import NOTHING, BulkReader, Examined, Reading
from ..points import LineReading, MetricPoint, ParsedLog, Point, Priority
from ..records import read_record
from ..shape import NUMBER
from ..thrift import passed_over
from ..tracker import Tracker

CHUNK = 1 << 20
SNIFF_BYTES = 65536
"""How many bytes of a file's start are shown to `MetricFile.recognises`."""
_MAX_DEPTH = 4
_MAX_VISITED = 5000
_MAX_CANDIDATES = 12
_GLANCE_BYTES = 8 << 20
_LEFT_SECONDS = 600.0
"""A file older than the newest one by more than this may be of an earlier run, if its epoch or step is far off."""
_EPOCHS_APART = 1.5
"""Tolerance in epochs: one file of a run may count from 0, or record an epoch only when it is over."""
_METRIC_NAMES = (
    "trainer_log.jsonl", "metrics.jsonl", "log.jsonl", "metrics.json", "scalars.json", "metrics.csv", "progress.csv",
    "results.csv", "history.csv", "summary.csv", "training.csv", "log.csv", "trainer_state.json", "heartbeat.json",
)  # fmt: skip
_EVENTS = "tfevents"
"""Part of the name of every TensorBoard event file."""
_HIDDEN = ("node_modules", "site-packages", "__pycache__")


class MetricFile(Protocol):
    """A reader of one metric file."""

    name: ClassVar[str]
    """What ``mpstui parse`` prints as the format."""
    priority: ClassVar[Priority]
    suffixes: ClassVar[tuple[str, ...]]
    """Endings of file names that are worth opening when a folder is searched."""

    def __init__(self, path: Path) -> None: ...

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """True if a file that starts with ``start`` is of this format; content decides, the name only helps."""

    @property
    def position(self) -> int:
        """Number of bytes read so far."""

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """Return the points written since the last call; of a long backlog, those of about ``limit`` bytes.

        Raises OSError if the file cannot be read.
        """

    def take(self, limit: int) -> Sequence[Point]:
        """Like ``poll``, but the points of many rows may come as columns, if that is faster."""

    def close(self) -> list[MetricPoint]:
        """Return the points held back; the file is taken to be finished."""

    def summary(self) -> ParsedLog:
        """What the file says so far."""


class Records:
    """Base of readers that feed flat records to a tracker."""

    name: ClassVar[str]
    priority: ClassVar[Priority] = Priority.EXACT
    suffixes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tracker = Tracker()

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        raise NotImplementedError

    def take(self, limit: int) -> Sequence[Point]:
        return self.poll(limit)

    def summary(self) -> ParsedLog:
        found = self._tracker.summary()
        return found if found.format is None else replace(found, format=self.name)

    def points_of(self, record: Mapping[str, object]) -> list[MetricPoint]:
        """Return the points of a record, if it says anything."""
        reading = read_record(record, self.name)
        return [] if reading is None else self._placed(reading)

    def _placed(self, reading: LineReading) -> list[MetricPoint]:
        point = self._tracker.place(reading)
        return [*self._tracker.take_late(), *(() if point is None else (point,))]


class GrowingLines(Records):
    """Reads complete lines of a growing file; one that shrank or was replaced is read again from its start."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = LineTail(path)
        self.start_over()

    @property
    def position(self) -> int:
        return self._file.offset

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """Return the points of the lines completed since the last call, or of the next ``limit`` bytes."""
        points: list[MetricPoint] = []
        for lines in self._growth(limit):
            for line in self._bulk.choice.each(lines):
                points += self._place(self._examine(line))
        return points

    def take(self, limit: int) -> Sequence[Point]:
        """Like ``poll``, but many times as fast on rows of one shape."""
        return [point for lines in self._growth(limit) for point in self._bulk.feed(lines)]

    def close(self) -> list[MetricPoint]:
        """Return any new points, and that of a last line without a newline if it is complete."""
        points = self.poll()
        rest = self._file.take(LONGEST_LINE_BYTES)
        return points + (self._place(self._examine(rest)) if rest and self.is_whole(rest) else [])

    def summary(self) -> ParsedLog:
        in_part = passed_over(self._bulk.choice.passed_over, self._too_long)
        return replace(super().summary(), read_in_part=in_part or None)

    def record(self, line: bytes) -> Mapping[str, object] | None:
        """Return the names and values on a line, or None; the same each time it is asked."""
        raise NotImplementedError

    def is_whole(self, line: bytes) -> bool:
        """True if a last line without a newline cannot be the beginning of a longer one."""
        raise NotImplementedError

    def start_over(self) -> None:
        """Begin again: the file was replaced."""
        self._tracker, self._too_long = Tracker(), 0
        self._bulk = BulkReader(self._tracker, Reading(self._examine, self._place, self._read, number=NUMBER))

    def _growth(self, limit: int | None) -> Iterator[bytes]:
        while True:
            growth = self._file.read(limit or CHUNK)
            if growth.restarted:
                self.start_over()
            self._too_long += growth.dropped_lines
            yield growth.data
            if limit is not None or not growth.more:
                return

    def _examine(self, line: bytes) -> Examined:
        readings = self._read_line(line)
        return Examined(readings, None, "") if readings else NOTHING

    def _read(self, text: str) -> Sequence[LineReading]:
        return self._read_line(text.encode())

    def _read_line(self, line: bytes) -> Sequence[LineReading]:
        record = self.record(line) if line else None
        reading = None if record is None else read_record(record, self.name)
        return () if reading is None else (reading,)

    def _place(self, examined: Examined) -> list[MetricPoint]:
        return [point for reading in examined.readings for point in self._placed(reading)]


@cache
def metric_files() -> tuple[type[MetricFile], ...]:
    """Return every metric-file reader, in the order in which they are asked."""
    found: list[type[MetricFile]] = discovered(__name__, METRIC_FILES, "FILE")
    return tuple(sorted(found, key=lambda file: (file.priority, file.name)))


def detect(path: Path) -> MetricFile:
    """Return a reader for ``path``, chosen by content; for a folder, the reader of its best file.

    Raises UsageError if the path does not exist or a folder holds nothing readable, OperationError if the file cannot
    be read.
    """
    try:
        if path.is_dir():
            return _best_of(path)
        if path.exists() and not path.is_file():
            raise UsageError(
                f"{path} is not a regular file", "a pipe or device cannot be read twice: write it to a file"
            )
        with storage.open_file(path) as file:
            start = file.read(SNIFF_BYTES)
        return next(kind for kind in metric_files() if _recognises(kind, path, start))(path)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist", "name a log, a metric file, or a folder that holds one") from None
    except OSError as error:
        raise OperationError(f"{path} cannot be read: {error.strerror or error}") from error


def _recognises(kind: type[MetricFile], path: Path, start: bytes) -> bool:
    try:
        return kind.recognises(path, start)
    except Exception:  # noqa: BLE001 - perhaps from another package: still ask the others
        return False


def read_log(path: Path) -> ParsedLog:
    """Return what a whole log, metric file or folder says. Raises like `detect`."""
    return _read(path, None)


def _read(path: Path, limit: int | None) -> ParsedLog:
    """Return what a file says; a console log is read up to ``limit`` bytes."""
    from .console_log import ConsoleLog  # loads every grammar, not needed just to name a `MetricFile`

    reader = detect(path)
    try:
        if isinstance(reader, ConsoleLog):
            return reader.read_through(limit)
        before = -1
        while reader.position != before:  # in pieces: the points are not kept
            before = reader.position
            reader.take(CHUNK)
        reader.close()
    except OSError as error:
        raise OperationError(f"{path} cannot be read: {error.strerror or error}") from error
    return reader.summary()


def find_sources(folder: Path) -> list[Path]:
    """Return files of a folder that may hold metrics: metric files, then event files, then logs, each newest first."""
    from ..event_values import OF_ARGUMENTS

    found: list[tuple[int, float, Path]] = []
    visited = 0
    for root, folders, files in os.walk(folder):
        too_deep = len(Path(root).parts) - len(folder.parts) >= _MAX_DEPTH
        folders[:] = [] if too_deep else sorted(f for f in folders if not f.startswith(".") and f not in _HIDDEN)
        if any(_EVENTS in name for name in files):
            folders[:] = [name for name in folders if not OF_ARGUMENTS.fullmatch(name)]
        for name in files[: _MAX_VISITED - visited]:
            rank = _rank(name)
            if rank is not None:
                path = Path(root, name)
                found.append((rank, -path.stat().st_mtime, path))
        visited = min(visited + len(files), _MAX_VISITED)
    return [path for _, _, path in sorted(found)[:_MAX_CANDIDATES]]


def best_of(sources: Sequence[Path]) -> Path | None:
    """Return the first file with a training loss, else the first that says anything, else None.

    A file left behind by an earlier run gives way to the newest one.
    """
    found: tuple[Path, ParsedLog] | None = None
    for path in sources:
        told = _glance(path)
        if told.train_loss is not None:
            found = path, told
            break
        if found is None and told.format is not None:
            found = path, told
    if found is None:
        return None
    newest = newest_of(sources)
    left_behind = newest is not None and _modified(newest) - _modified(found[0]) > _LEFT_SECONDS
    if newest is None or not left_behind or newest == found[0]:
        return found[0]
    told = _glance(newest)
    return newest if told.train_loss is not None and _are_far_apart(told, found[1]) else found[0]


def newest_of(sources: Iterable[Path]) -> Path | None:
    """Return the file that was modified last."""
    return max(sources, key=_modified, default=None)


def _modified(path: Path) -> float:
    told = storage.stat_of(path)
    return told.st_mtime if told is not None else 0.0


def _glance(path: Path) -> ParsedLog:
    with suppress(UsageError, OperationError):  # gone, or not readable
        return _read(path, _GLANCE_BYTES)
    return ParsedLog()


def _are_far_apart(one: ParsedLog, other: ParsedLog) -> bool:
    """True if two files seem to be of different runs: epochs apart, or one at more than twice the other's step."""
    if one.epoch is not None and other.epoch is not None:
        return abs(one.epoch - other.epoch) > _EPOCHS_APART
    if one.step is None or other.step is None or not min(one.step, other.step):
        return False
    return max(one.step, other.step) > 2 * min(one.step, other.step)


def _best_of(folder: Path) -> MetricFile:
    found = best_of(find_sources(folder))
    if found is None:
        raise UsageError(
            f"{folder} holds nothing that reads like a training log or metric file", "name the file itself"
        )
    return detect(found)


def _rank(name: str) -> int | None:
    lower = name.lower()
    if lower in _METRIC_NAMES:
        return 0 if lower != "trainer_state.json" else 2
    if _EVENTS in lower:
        return 2
    for kind in metric_files():
        if lower.endswith(kind.suffixes):
            return 3 if kind.priority is Priority.GENERAL else 1
    return 3 if lower == "nohup.out" or "heartbeat" in lower else None
