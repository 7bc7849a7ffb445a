"""A text log behind the interface of metric files: the reader of last resort."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from ....wire import storage
from ...follow import FollowedFile
from ..points import MetricPoint, ParsedLog, Priority
from ..reader import LogReader
from . import CHUNK


class ConsoleLog:
    """Reads any text file; one that shrank or was replaced is read again from its start."""

    name: ClassVar[str] = "log"
    priority: ClassVar[Priority] = Priority.GENERAL
    suffixes: ClassVar[tuple[str, ...]] = (".log", ".out", ".txt", ".err")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = LogReader()
        self._file = FollowedFile(path)
        self._restarts = 0

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """Return True: any file can be read as a log."""
        return True

    @property
    def position(self) -> int:
        return self._file.offset

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """Return the points of what was written since the last call, or of the next ``limit`` bytes."""
        points: list[MetricPoint] = []
        while chunk := self._file.take(limit or CHUNK):
            if self._file.restarts != self._restarts:
                self._restarts, self._reader = self._file.restarts, LogReader()
            points += self._reader.feed(chunk)
            if limit is not None:
                break
        return points

    def read_through(self, limit: int | None = None) -> ParsedLog:
        """Return the summary of the whole file, or of its first ``limit`` bytes, without keeping any points."""
        with storage.open_file(self.path) as file:
            while (limit is None or file.tell() < limit) and (chunk := file.read(CHUNK)):
                self._reader.take(chunk)
        self._reader.close()
        return self._reader.summary()

    def close(self) -> list[MetricPoint]:
        """Return any new points, and that of an unfinished last line if it is complete."""
        return self.poll() + self._reader.close()

    def summary(self) -> ParsedLog:
        return self._reader.summary()


FILE = ConsoleLog
