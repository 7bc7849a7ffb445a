"""What happened to a run, as its events.jsonl tells it."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from ...wire import heartbeat
from ..follow import LineTail
from ..model.snapshot import RunEvent
from .files import parse_lines

MOST_EVENTS = 500
_KNOWN = ("time", "attempt", "event", "text")


class EventReader:
    """Follows the file, of which the newest are kept; nothing is opened before the first look."""

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
                        details={name: value for name, value in record.items() if name not in _KNOWN},
                    )
                )
            if not growth.more:
                return
            growth = self._tail.read()
