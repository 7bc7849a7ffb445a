"""Who this run is and how it is: name, state, device, precision, attempt, age."""

from __future__ import annotations

from ...core.model.snapshot import RunSnapshot
from ...core.present import format as shown
from ...core.present.states import badge
from ..panels import RunPanel
from ..rows import Row, Span, clean, clip, row, spread


def header(snapshot: RunSnapshot, width: int, now: float, warning: str = "") -> list[Row]:
    """Two lines: the name and the state; then the facts, or beside the device what is going wrong."""
    wrong = _held(snapshot) or warning
    return [_title(snapshot, width), _warned(snapshot, width, wrong) if wrong else _facts(snapshot, width, now)]


def _held(snapshot: RunSnapshot) -> str:
    """Who holds a run whose processes stand still, unless it was the person who pressed the key for it."""
    if not snapshot.is_frozen:
        return ""
    if not snapshot.paused:
        return f"{snapshot.health_note}; p lets it go on"
    return snapshot.reason if snapshot.reason.startswith("paused: ") else ""


def _warned(snapshot: RunSnapshot, width: int, warning: str) -> Row:
    parts = [Span(" "), Span(clean(snapshot.numbers.device.type or "device n/a", 20)), Span("  ·  ", "faint")]
    return row(*clip((*parts, Span(f"! {clean(warning, 200)}", "warn")), width))


def _title(snapshot: RunSnapshot, width: int) -> Row:
    look = badge(snapshot)
    state = f"{look.glyph} {look.word}"
    place = snapshot.queue.sentence() if snapshot.queue else ""
    note = clean(snapshot.health_note or place, 40) or _ending(snapshot)
    right = [Span(f"{state} ", f"{look.tone} strong")]
    room = width - len(state) - 8
    if note and len(note) < room // 2:
        right = [Span(f"{note}  ", "dim"), *right]
    return spread([Span(" "), Span(clean(snapshot.name), "title")], right, width)


def _ending(snapshot: RunSnapshot) -> str:
    return clean(snapshot.exit.sentence(), 60) if snapshot.exit is not None and not snapshot.state.active else ""


def device_text(snapshot: RunSnapshot) -> str:
    """``mps · Apple M2 Max · bf16``; what is not known is left out, an unknown device is n/a."""
    device = snapshot.numbers.device
    parts = [device.type or "device n/a", device.name, device.precision]
    return " · ".join(clean(part, 40) for part in parts if part)


def _facts(snapshot: RunSnapshot, width: int, now: float) -> Row:
    parts = [Span(" "), Span(device_text(snapshot))]
    attempt = f"attempt {snapshot.attempt}" if snapshot.attempt else ""
    if snapshot.device_asked == "auto" or snapshot.device_asked == snapshot.numbers.device.type:
        asked = ""
    else:
        asked = f"asked for {clean(snapshot.device_asked, 10)}" if snapshot.device_asked else ""
    data = f"data {clean(snapshot.numbers.data, 60)}" if snapshot.numbers.data else ""
    recipe = f"recipe {clean(snapshot.recipe, 20)}" if snapshot.recipe else ""
    age, whole_age = _ages(snapshot, now)
    for fact in (attempt, asked, age, data, whole_age, recipe, clean(snapshot.run, 80)):
        more = [*parts, Span("  ·  ", "faint"), Span(fact, "dim")]
        if fact and row(*more).width < width:
            parts = more
    return row(*clip(tuple(parts), width))


def _ages(snapshot: RunSnapshot, now: float) -> tuple[str, str]:
    """How long the attempt has been running, or ran; and where there were others, how long it all took."""
    started, until = snapshot.started, snapshot.ended if snapshot.ended is not None else now
    if started is None:
        return "", ""
    attempt_started = started if snapshot.attempt_started is None else snapshot.attempt_started
    verb = "up" if snapshot.ended is None else "ran"
    age = f"{verb} {_lasted(until - attempt_started, snapshot)}"
    return age, f"all attempts {_lasted(until - started, snapshot)}" if attempt_started > started else ""


def _lasted(seconds: float, snapshot: RunSnapshot) -> str:
    return shown.duration(shown.settled(seconds) if snapshot.ended is None else seconds)


class RunHeader(RunPanel):
    """The two lines as a panel."""

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`header`."""
        if self.facts is None:
            return []
        return header(self.facts.snapshot, width, self.facts.snapshot.seen, self.facts.warning)
