"""``events.jsonl``: what happened to a run, newest kept."""

from __future__ import annotations

from collections import deque

from ...wire import heartbeat
from ...wire.rundir import RunDir
from ..follow.file import LineTail
from ..model.snapshot import RunEvent
from .points import parse_lines

MOST_EVENTS = 500
_KNOWN = ("time", "attempt", "event", "text")


class EventReader:
    """Follows one run's events; nothing is opened before the first look."""

    def __init__(self, run: RunDir) -> None:
        self.events: deque[RunEvent] = deque(maxlen=MOST_EVENTS)
        self._run = run
        self._tail: LineTail | None = None

    def read(self) -> bool:
        """Take in what was added; True when something was."""
        self._tail = self._tail or LineTail(self._run.events)
        growth = self._tail.read()
        while growth.data or growth.restarted:
            if growth.restarted:
                self.events.clear()
            self.events.extend(_event(record) for record in parse_lines(growth.data))
            if not growth.more:
                return True
            growth = self._tail.read()
        return False


def _event(record: dict[str, object] | object) -> RunEvent:
    found = record if isinstance(record, dict) else {}
    return RunEvent(
        time=heartbeat.number(found.get("time")) or 0.0,
        attempt=heartbeat.integer(found.get("attempt")) or 0,
        event=heartbeat.text(found.get("event")) or "note",
        text=heartbeat.text(found.get("text")) or "",
        details={name: value for name, value in found.items() if name not in _KNOWN},
    )
