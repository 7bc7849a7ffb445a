"""What the readers of stores share that are no single file: the attributes of a `MetricFile` around rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from ..points import UNTOLD, MetricPoint, ParsedLog, Point, Priority
from ..rows import Rows, one_by_one

MOST_AT_ONCE = 1 << 18


class Curves:
    """The curves of one run of a store."""

    name: ClassVar[str] = "store"
    priority: ClassVar[Priority] = Priority.EXACT
    suffixes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0
        """Bytes of its files that have been read, as far as they can be told."""
        self.rows = Rows(self.name)
        self.failure: str | None = None

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """No file alone is one."""
        return False

    def take(self, limit: int) -> Sequence[Point]:
        """The points that are new."""
        raise NotImplementedError

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """The points that are new, one by one."""
        return list(one_by_one(self.take(limit or MOST_AT_ONCE)))

    def close(self) -> list[MetricPoint]:
        """Nothing is held back."""
        return self.poll()

    def summary(self) -> ParsedLog:
        """What was told so far."""
        return self.rows.summary(UNTOLD, self.failure)
