"""Shared base of readers of runs that are not a single file: the attributes of a `MetricFile` around rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from ....wire import storage
from ..points import UNTOLD, MetricPoint, ParsedLog, Point, Priority
from ..rows import Rows, one_by_one
from ._sqlite import Database, NotNow

MOST_AT_ONCE = 1 << 18


class Curves:
    """Reads the curves of one run of a store."""

    name: ClassVar[str] = "store"
    priority: ClassVar[Priority] = Priority.EXACT
    suffixes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0
        """Bytes of its files that have been read, as far as known; a changed value means that there may be more."""
        self.rows = Rows(self.name)
        self.failure: str | None = None

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """Return False: no file alone is such a run."""
        return False

    def take(self, limit: int) -> Sequence[Point]:
        """Return the new points."""
        raise NotImplementedError

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """Return the new points, one by one."""
        return list(one_by_one(self.take(limit or MOST_AT_ONCE)))

    def close(self) -> list[MetricPoint]:
        """Return the new points: nothing is held back."""
        return self.poll()

    def summary(self) -> ParsedLog:
        """Return what the run says so far."""
        return self.rows.summary(UNTOLD, self.failure)


class DatabaseCurves(Curves):
    """Reads the curves of one run in a database that another process may be writing."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.path)
        self._database = database
        self._misses = 0

    def take(self, limit: int) -> Sequence[Point]:
        marks = [storage.stamp(file) for file in self._database.files()]
        size = sum(mark[2] for mark in marks if mark is not None)
        try:
            found, rows, is_all = self.next_rows()
        except NotNow:
            self._misses += 1
            self.position = -self._misses  # any new position: signals that there is more to read
            return []
        except OSError as error:
            self.failure = str(error)
            return []
        self.failure = None
        self.position = size if is_all else min(size - 1, max(0, self.position) + rows)
        return found

    def next_rows(self) -> tuple[Sequence[Point], int, bool]:
        """Return the points of the next rows, the number of rows, and whether these were the last. Raises OSError."""
        raise NotImplementedError
