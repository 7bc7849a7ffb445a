"""The lowest and the highest value of every metric of a run, for the list: its own records read through, once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..follow import SLICE_BYTES, Budget, LineTail
from ..series.series import SeriesStore
from .files import parse_lines

CAPACITY = 64
"""Buckets a metric, of which a resumed attempt may measure some again."""
Extremes = Mapping[str, tuple[float | None, float | None]]


class ExtremesReader:
    """Follows ``metrics.jsonl``; nothing is told before all of it was read."""

    def __init__(self, path: Path) -> None:
        self._tail = LineTail(path)
        self._store: SeriesStore | None = SeriesStore(capacity=CAPACITY)
        self._told: Extremes = {}
        self.complete = False

    @property
    def pending_bytes(self) -> int:
        """What is still to be read."""
        return 0 if self.complete else self._tail.unread_bytes

    @property
    def found(self) -> Extremes:
        """By name; a metric that never was finite has none."""
        if self.complete and self._store is not None:
            self._told = self._store.extremes()
        return self._told

    def read(self, budget: Budget) -> None:
        """Read on; where all was read once, what has been added since."""
        while self._store is not None:
            growth = self._tail.read(SLICE_BYTES)
            if growth.restarted:
                self._store = SeriesStore(capacity=CAPACITY)
            if growth.data:
                self._store.add(parse_lines(growth.data))
            self.complete = self.complete or not growth.more
            if not growth.more or budget.spent:
                return

    def rest(self) -> None:
        """Nothing more will come: keep what was found alone."""
        if self.complete:
            self._told, self._store = self.found, None
