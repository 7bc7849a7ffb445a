"""What happened to a run, newest first."""

from __future__ import annotations

from functools import cache, reduce
from pathlib import Path

from ...core.model.snapshot import RunEvent
from ...core.present import short_paths
from ...core.runs.story import story
from ...wire.rundir import asker
from ..rows import Row, Span, clean, clip, row
from . import ListPanel, Panel, RunFacts, at_moment, moments, nothing_yet

_TONES = {"crash": "bad", "checkpoint": "good", "restart": "warn", "request": "strong", "launched": "strong"}
_me = cache(asker)


def event_rows(facts: RunFacts, width: int) -> list[Row]:
    """What has happened, newest first; up to the moment shown, if any."""
    snapshot = facts.snapshot
    if not snapshot.events:
        return [nothing_yet("nothing has happened yet", unread=snapshot.brief)]
    until = facts.moment.time if facts.moment is not None else None
    told = story(snapshot.events, _me(), was_cancelled=snapshot.was_cancelled)
    events = [one for one in told[::-1] if until is None or one.time <= until]
    times = moments((event.time for event in events), snapshot.seen)
    begun_from = (one.details.get("checkpoint") for one in snapshot.events)
    folders = {snapshot.dir, *(Path(path).parent for path in begun_from if isinstance(path, str))}
    texts = [reduce(short_paths, sorted(folders, reverse=True), event.text) for event in events]
    lines = [_event_row(event, time, text, width) for event, time, text in zip(events, times, texts, strict=True)]
    return [*at_moment(facts, "until"), *lines]


def _event_row(event: RunEvent, moment: str, text: str, width: int) -> Row:
    parts = Span(" "), Span(moment, "dim"), Span(clean(text, 400), _TONES.get(event.event, ""))
    return row(*clip(parts, width))


_DRAWN_FROM = (
    "snapshot.events",
    "snapshot.state",
    "snapshot.exit",
    "snapshot.job",
    "snapshot.dir",
    "snapshot.brief",
    "hour",
    "moment",
)
PANEL = Panel(order=60, help="what happened to it, newest first", widget=lambda: ListPanel(event_rows, _DRAWN_FROM))
