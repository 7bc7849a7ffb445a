"""What the readers of record files share: a tracker, and following a file that grows, shrinks or is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from ...follow.file import FollowedFile
from ..points import LineReading, MetricPoint, ParsedLog
from ..records import read_record
from ..tracker import Tracker

_CHUNK = 1 << 20
MAX_LINE = 1 << 20
"""Bytes of one record; a longer line is passed over."""


class Records:
    """A tracker fed with flat records."""

    name: ClassVar[str] = "records"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tracker = Tracker()

    def summary(self) -> ParsedLog:
        """What the file says so far."""
        found = self._tracker.summary()
        return found if found == ParsedLog() else replace(found, format=self.name)

    def _place(self, reading: LineReading | None) -> list[MetricPoint]:
        point = None if reading is None else self._tracker.place(reading)
        return [] if point is None else [point]

    def _record(self, record: Mapping[str, object]) -> list[MetricPoint]:
        return self._place(read_record(record, self.name))


class GrowingLines(Records):
    """Complete lines of a file that grows; a file that shrank or was replaced is read again from its start."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = FollowedFile(path)
        self._restarts = 0
        self._pending = b""

    @property
    def position(self) -> int:
        """Bytes read."""
        return self._file.offset

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """The points of the lines completed since the last call, or of the next ``limit`` bytes."""
        points: list[MetricPoint] = []
        for line in self._lines(limit):
            points += self._line(line)
        return points

    def close(self) -> list[MetricPoint]:
        """The point of a last line without newline, if it is whole."""
        points = self.poll()
        rest, self._pending = self._pending, b""
        return points + (self._line(rest) if rest and self._is_whole(rest) else [])

    def _line(self, line: bytes) -> list[MetricPoint]:
        raise NotImplementedError

    def _is_whole(self, line: bytes) -> bool:
        raise NotImplementedError

    def _start_over(self) -> None:
        """The file is another one now."""
        self._pending, self._tracker = b"", Tracker()

    def _lines(self, limit: int | None) -> Iterator[bytes]:
        while chunk := self._file.take(limit or _CHUNK):
            if self._file.restarts != self._restarts:
                self._restarts = self._file.restarts
                self._start_over()
            *lines, self._pending = (self._pending + chunk).split(b"\n")
            yield from lines
            if len(self._pending) > MAX_LINE:
                self._pending = self._pending[:MAX_LINE]
            if limit is not None:
                return
