"""What happened to a run, newest first."""

from __future__ import annotations

from pathlib import Path

from ...core.model.snapshot import RunEvent
from ...core.present import short_paths, without_echoes
from ..rows import Row, Span, clean, clip, fit, row
from . import ListPanel, Panel, RunFacts, moments, nothing_yet

_TONES = {
    "crash": "bad",
    "exit": "strong",
    "checkpoint": "good",
    "request": "key",
    "ack": "key",
    "restart": "warn",
    "launched": "strong",
}


def event_rows(facts: RunFacts, width: int) -> list[Row]:
    snapshot = facts.snapshot
    if not snapshot.events:
        return [nothing_yet("nothing has happened yet", unread=snapshot.brief)]
    events = without_echoes(snapshot.events)[::-1]
    times = moments((event.time for event in events), snapshot.seen)
    return [_event_row(event, time, snapshot.dir, width) for event, time in zip(events, times, strict=True)]


def _event_row(event: RunEvent, moment: str, folder: Path, width: int) -> Row:
    """Files are named from the run's folder, checkpoints by their names alone: the step stays in view."""
    path = event.details.get("path") if event.event == "checkpoint" else None
    text = event.text.replace(path, Path(path).name) if isinstance(path, str) else short_paths(event.text, folder)
    kind = Span(fit(clean(event.event, 20), 11), _TONES.get(event.event, ""))
    return row(*clip((Span(" "), Span(moment, "dim"), kind, Span(clean(text, 400))), width))


_DRAWN_FROM = ("snapshot.events", "snapshot.dir", "snapshot.brief", "hour")
PANEL = Panel(order=60, help="what happened to it, newest first", widget=lambda: ListPanel(event_rows, _DRAWN_FROM))
