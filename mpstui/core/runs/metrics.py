"""The files of a run that hold JSON lines: its metrics, and what happened to it."""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...wire import heartbeat
from ..follow.file import SLICE_BYTES, Budget, LineTail, hundredths, last_lines
from ..model.snapshot import RunEvent, SeriesView
from ..series.series import SeriesStore

NEWEST_BYTES = 1 << 16
SMALL_BYTES = 1 << 17
"""A file up to this size is read whole where another one is sampled."""
SAMPLES = 120
SAMPLE_BYTES = 2048
NEWEST_LINES = 4
LONG_LINES = 8
"""Where lines are so long that samples miss them, fewer samples this many times longer are taken."""
SKETCH_CAPACITY = 256
MOST_EVENTS = 500
_KNOWN_OF_EVENTS = ("time", "attempt", "event", "text")
SKETCH_GROWTH = 1.05
"""A sketch is drawn again when the file has grown by this factor."""


class PointReader:
    """Follows ``metrics.jsonl``: the newest values at once, the whole history in slices, a sample of it until then.

    ``newest`` holds the last reported value of every key. Curves are a *sketch* (some hundred lines spread over the
    file) until :meth:`read_history` has been through all of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.newest: dict[str, Any] = {}
        self.tail = LineTail(path)
        self._history: LineTail | None = None
        self._store = SeriesStore()
        self._sketch = SeriesStore(capacity=SKETCH_CAPACITY)
        self._sketched_bytes = 0
        self.complete = False
        """Whether the curves hold every point."""

    @property
    def pending_bytes(self) -> int:
        """How much of a history that is being read is still to come."""
        return 0 if self.complete or self._history is None else self._history.unread_bytes

    def read_newest(self) -> list[Mapping[str, Any]]:
        """Records that were added, oldest first; after a long absence only the newest of them."""
        size = self._size()
        if size - self.tail.offset > NEWEST_BYTES * 4:
            self.tail = LineTail(self.path, start=size - NEWEST_BYTES)  # half a line at first is no record
        growth = self.tail.read(NEWEST_BYTES * 4)
        if growth.restarted:
            self.newest.clear()
            self._sketch, self._sketched_bytes = SeriesStore(capacity=SKETCH_CAPACITY), 0
            self.drop_history()
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
                self.complete = True
                return added
            if budget.spent:
                return added

    def drop_history(self) -> None:
        """Give the memory back; a later :meth:`read_history` starts anew."""
        self._history, self._store, self.complete = None, SeriesStore(), False

    def views(self, names: Sequence[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Curves by name, from the history where it is complete, else from the sketch."""
        if self.complete:
            return self._store.views(names, complete=True, **options)
        read, size = (self._history.offset, self._history.size) if self._history is not None else (0, 0)
        return self._sketch.views(names, complete=False, read_share=hundredths(read, size), **options)

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


class EventReader:
    """Follows ``events.jsonl``, of which the newest are kept; nothing is opened before the first look."""

    def __init__(self, path: Path) -> None:
        self.events: deque[RunEvent] = deque(maxlen=MOST_EVENTS)
        self._path = path
        self._tail: LineTail | None = None

    def read(self) -> None:
        """Take in what was added."""
        self._tail = self._tail or LineTail(self._path)
        growth = self._tail.read()
        while growth.data or growth.restarted:
            if growth.restarted:
                self.events.clear()
            for record in parse_lines(growth.data):
                self.events.append(
                    RunEvent(
                        time=heartbeat.number(record.get("time")) or 0.0,
                        attempt=heartbeat.integer(record.get("attempt")) or 0,
                        event=heartbeat.text(record.get("event")) or "note",
                        text=heartbeat.text(record.get("text")) or "",
                        details={name: value for name, value in record.items() if name not in _KNOWN_OF_EVENTS},
                    )
                )
            if not growth.more:
                return
            growth = self._tail.read()


def parse_lines(data: bytes) -> list[Mapping[str, Any]]:
    """The objects among the JSON lines of ``data``; a damaged line costs itself alone."""
    lines = data.split(b"\n")
    try:
        found = json.loads(b"[" + b",".join(line for line in lines if line.strip()) + b"]")
    except (ValueError, RecursionError):
        found = []
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):
                found.append(json.loads(line))
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
