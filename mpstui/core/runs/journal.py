"""Read what a run records line by line: its events and, for the list, the lowest and highest value of every metric."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...wire import heartbeat
from ..follow import SLICE_BYTES, Budget, LineTail
from ..model.snapshot import RunEvent
from ..series.series import SeriesStore
from .files import parse_lines

MOST_EVENTS, MOST_TEXTS = 500, 100
EVENT_FIELDS = ("time", "attempt", "event", "text")
"""Fields of every event; all others are its details."""
CAPACITY = 64
"""Buckets per metric. More than one is needed because a resumed attempt may measure some of them again."""
Extremes = Mapping[str, tuple[float | None, float | None]]


class EventReader:
    """Follows ``events.jsonl`` and keeps the newest events; nothing is opened before the first read.

    Texts that the training logs are counted separately, so that they cannot push out other events.
    """

    def __init__(self, path: Path) -> None:
        self._happened: list[RunEvent] = []
        self._texts: list[RunEvent] = []
        self._path = path
        self._tail: LineTail | None = None

    @property
    def events(self) -> tuple[RunEvent, ...]:
        """Events and texts, in order of time."""
        if not self._texts:
            return tuple(self._happened)
        return tuple(sorted((*self._happened, *self._texts), key=lambda one: one.time))

    def read(self) -> None:
        """Read the events that were added."""
        self._tail = self._tail or LineTail(self._path)
        growth = self._tail.read()
        while growth.data or growth.restarted:
            if growth.restarted:
                self._happened.clear()
                self._texts.clear()
            for record in parse_lines(growth.data):
                event = RunEvent(
                    time=heartbeat.number(record.get("time")) or 0.0,
                    attempt=heartbeat.integer(record.get("attempt")) or 0,
                    event=heartbeat.text(record.get("event")) or "note",
                    text=heartbeat.text(record.get("text")) or "",
                    details={name: value for name, value in record.items() if name not in EVENT_FIELDS},
                )
                (self._texts if event.event == "text" else self._happened).append(event)
            del self._happened[:-MOST_EVENTS], self._texts[:-MOST_TEXTS]
            if not growth.more:
                return
            growth = self._tail.read()


class ExtremesReader:
    """Follows ``metrics.jsonl`` for the extremes of each metric, which are known once all of it has been read."""

    def __init__(self, path: Path) -> None:
        self._tail = LineTail(path)
        self._store: SeriesStore | None = SeriesStore(capacity=CAPACITY)
        self._told: Extremes = {}
        self.complete = False

    @property
    def pending_bytes(self) -> int:
        """How many bytes are still unread."""
        return 0 if self.complete else self._tail.unread_bytes

    @property
    def found(self) -> Extremes:
        """The lowest and highest value by metric; a metric that was never finite has none."""
        if self.complete and self._store is not None:
            self._told = self._store.extremes()
        return self._told

    def read(self, budget: Budget) -> None:
        """Read on; once everything has been read, read only what was added since."""
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
        """Keep only what was found, when nothing more will be added."""
        if self.complete:
            self._told, self._store = self.found, None
