"""The text log itself, behind the interface of the metric files: what is read when no other format fits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from ..points import MetricPoint, ParsedLog
from ..reader import LogReader

_CHUNK = 1 << 20


class ConsoleLog:
    """Any text file; a file that shrank or was replaced is read again from its start."""

    name: ClassVar[str] = "log"
    priority: ClassVar[int] = 1000

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = LogReader()
        self._offset = 0
        self._inode = -1

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """Everything is a log, in the end."""
        return True

    @property
    def position(self) -> int:
        """Bytes read."""
        return self._offset

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """The points of what was written since the last call, or of the next ``limit`` bytes."""
        points: list[MetricPoint] = []
        with self._path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size < self._offset or (self._inode != -1 and status.st_ino != self._inode):
                self._reader, self._offset = LogReader(), 0
            self._inode = status.st_ino
            file.seek(self._offset)
            end = None if limit is None else self._offset + limit
            while (end is None or self._offset < end) and (chunk := file.read(_CHUNK if end is None else limit)):
                self._offset += len(chunk)
                points += self._reader.feed(chunk)
        return points

    def read_through(self, limit: int | None = None) -> ParsedLog:
        """The summary of the whole file, or of its first ``limit`` bytes; keeps no points, whatever the log's size."""
        with self._path.open("rb") as file:
            while (limit is None or file.tell() < limit) and (chunk := file.read(_CHUNK)):
                self._reader.skim(chunk)
        self._reader.close()
        return self._reader.summary()

    def close(self) -> list[MetricPoint]:
        """With the last line, if it is whole."""
        return self.poll() + self._reader.close()

    def summary(self) -> ParsedLog:
        """What the log says so far."""
        return self._reader.summary()


FILE = ConsoleLog
