"""``metrics.jsonl``: the newest values at once, the whole history in slices, a sample of it until then."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..follow.file import SLICE_BYTES, Budget, LineTail, hundredths, last_lines
from ..model.snapshot import SeriesView
from ..series.store import NOT_METRICS, SeriesStore

NEWEST_BYTES = 1 << 16
SMALL_BYTES = 1 << 17
"""A file up to this size is read whole where another one is sampled."""
SAMPLES = 120
SAMPLE_BYTES = 2048
NEWEST_LINES = 4
LONG_LINES = 8
"""Where lines are so long that samples miss them, fewer samples this many times longer are taken."""
SKETCH_CAPACITY = 256
SKETCH_GROWTH = 1.05
"""A sketch is drawn again when the file has grown by this factor."""


class PointReader:
    """Follows one metrics file.

    ``newest`` holds the last reported value of every key. Curves are a *sketch* (some hundred lines spread over the
    file) until :meth:`read_history` has been through all of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.newest: dict[str, Any] = {}
        self._tail = LineTail(path)
        self._history: LineTail | None = None
        self._store = SeriesStore()
        self._sketch = SeriesStore(capacity=SKETCH_CAPACITY)
        self._sketched_bytes = 0
        self._complete = False

    @property
    def changed_at(self) -> float | None:
        """When the file was last written, Unix seconds; None: there is no file."""
        return self._tail.changed_at

    @property
    def complete(self) -> bool:
        """Whether the curves hold every point."""
        return self._complete

    @property
    def owed_bytes(self) -> int:
        """How much of a history that is being read is still to come."""
        return 0 if self._complete or self._history is None else max(0, self._history.size - self._history.offset)

    @property
    def has_history(self) -> bool:
        """Whether the whole history is held, or being read."""
        return self._history is not None

    def read_newest(self) -> list[Mapping[str, Any]]:
        """Records that were added, oldest first; after a long absence only the newest of them."""
        self._skip_backlog()
        growth = self._tail.read(NEWEST_BYTES * 4)
        if growth.restarted:
            self._forget()
        records = parse_lines(growth.data)
        for record in records:
            self.newest.update(record)
        return records

    def sketch(self, names: frozenset[str] | None = None) -> None:
        """Bring the sketch up to date if the file has outgrown it."""
        size = self._size()
        if not size or (self._sketch.count and self._sketched_bytes <= size < self._sketched_bytes * SKETCH_GROWTH):
            return
        records = sample_records(self.path, size)
        self._sketch = SeriesStore(capacity=SKETCH_CAPACITY, only=names)
        self._sketch.add(records)
        self._sketched_bytes = size
        if not self.newest:
            for record in records:
                self.newest.update(record)

    def read_history(self, budget: Budget) -> bool:
        """Go on reading from the beginning; True when something was added."""
        if self._history is None:
            self._history = LineTail(self.path)
        added = False
        while True:
            growth = self._history.read(SLICE_BYTES)
            if growth.restarted:
                self._store = SeriesStore()
            if growth.data:
                added = True
                self._store.add(parse_lines(growth.data))
            if not growth.more:
                self._complete = True
                return added
            if budget.spent:
                return added

    def drop_history(self) -> None:
        """Give the memory back; a later :meth:`read_history` starts anew."""
        self._history, self._store, self._complete = None, SeriesStore(), False

    def views(self, names: Sequence[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Curves by name, from the history where it is complete, else from the sketch."""
        if self._complete:
            return self._store.views(names, complete=True, **options)
        read, size = (self._history.offset, self._history.size) if self._history is not None else (0, 0)
        return self._sketch.views(names, complete=False, read_share=hundredths(read, size), **options)

    def _skip_backlog(self) -> None:
        size = self._size()
        if size - self._tail.offset > NEWEST_BYTES * 4:
            self._tail = LineTail(self.path, start=_line_start(self.path, size - NEWEST_BYTES))

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def _forget(self) -> None:
        self.newest.clear()
        self._sketch = SeriesStore(capacity=SKETCH_CAPACITY)
        self._sketched_bytes = 0
        self.drop_history()


def parse_lines(data: bytes) -> list[Mapping[str, Any]]:
    """The objects among the JSON lines of ``data``; a damaged line costs itself alone."""
    lines = data.split(b"\n")
    try:
        found = json.loads(b"[" + b",".join(line for line in lines if line.strip()) + b"]")
    except (ValueError, RecursionError):
        found = [_object(line) for line in lines]
    return [record for record in found if type(record) is dict]


def sample_records(path: Path, size: int) -> list[Mapping[str, Any]]:
    """Some hundred records spread evenly over a file of ``size`` bytes, the first and the newest among them."""
    if size <= SMALL_BYTES:
        found = last_lines(path, size).splitlines(keepends=True)
        every = 1 + len(found) // SAMPLES
        return parse_lines(b"".join(found if every == 1 else [*found[:-NEWEST_LINES:every], *found[-NEWEST_LINES:]]))
    lines = _spread_lines(path, size, SAMPLES, SAMPLE_BYTES)
    if len(lines) < SAMPLES // 2:
        lines = _spread_lines(path, size, SAMPLES // LONG_LINES, SAMPLE_BYTES * LONG_LINES)
    return parse_lines(b"".join(lines) + last_lines(path, SAMPLE_BYTES * 2))


def _spread_lines(path: Path, size: int, count: int, length: int) -> list[bytes]:
    """The first complete line in each of ``count`` stretches of ``length`` bytes."""
    lines = []
    try:
        with path.open("rb") as file:
            for i in range(count):
                at = i * (size - length) // count
                data = os.pread(file.fileno(), length, at)
                start = data.find(b"\n") + 1 if at else 0
                lines.append(data[start : data.find(b"\n", start) + 1])
    except OSError:
        return []
    return [line for line in lines if line]


def reported_metrics(newest: Mapping[str, Any]) -> dict[str, float | None]:
    """The metric values of the newest state, without counters and texts."""
    plain = (None, int, float)
    return {
        name: value
        for name, value in newest.items()
        if name not in NOT_METRICS and (value is None or (isinstance(value, plain[1:]) and not isinstance(value, bool)))
    }


def _line_start(path: Path, offset: int) -> int:
    with path.open("rb") as file:
        data = os.pread(file.fileno(), NEWEST_BYTES, max(0, offset))
    return max(0, offset) + data.find(b"\n") + 1


def _object(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
