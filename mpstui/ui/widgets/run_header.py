"""Above the panels of a run: who it is and how it is, and how far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot, State
from ...core.present import badge
from ..panels import RunPanel
from ..rows import Row, Span, clean, clip, row, spread
from .machine_strip import machine_strip
from .progress import device_text, progress

if TYPE_CHECKING:
    from ...core.telemetry.model import SystemSample

_DOT = Span("  ·  ", "faint")


class RunHeader(RunPanel):
    """Two lines: name and state, then the facts or what is going wrong."""

    def rows(self, width: int, height: int) -> list[Row]:
        if self.facts is None:
            return []
        facts = self.facts
        return header(facts.snapshot, width, facts.snapshot.seen, facts.warning, facts.past)


class Progress(RunPanel):
    """Two bars with the same columns, the epoch and everything; or one line for both (:func:`progress`)."""

    needed = 1
    """How many lines: a run that once told of its epoch keeps the second one, so that nothing moves up and down."""

    def grew(self, snapshot: RunSnapshot) -> bool:
        """Whether there is a line more to tell than ever before."""
        before, self.needed = self.needed, max(self.needed, len(progress(snapshot, self.app.size.width)))
        return self.needed > before

    def rows(self, width: int, height: int) -> list[Row]:
        return progress(self.facts.snapshot, width, height) if self.facts else []


def header(
    snapshot: RunSnapshot, width: int, now: float, warning: str = "", past: Sequence[SystemSample] = ()
) -> list[Row]:
    """The name, the machine and the state; then the facts, or beside the device what is going wrong."""
    held = ""
    if snapshot.is_frozen and not snapshot.waits:  # who holds it, unless it was the user who pressed the key for it
        held = snapshot.reason if snapshot.held_for else ""
        held = held if snapshot.paused else f"{snapshot.health_note}; p resumes it"
    nothing = snapshot.reason if snapshot.state is State.WATCHED and snapshot.updated is None else ""
    silent = snapshot.job.silence().lstrip("; ") if snapshot.job is not None and snapshot.state.active else ""
    wrong = held or warning or nothing or silent
    if not wrong:
        return [_title(snapshot, width, past), _facts(snapshot, width, now)]
    device = (Span(clean(snapshot.numbers.device.type or device_text(snapshot), 20)), _DOT)
    warned = (Span(" "), *(() if wrong == nothing else device), Span(f"! {clean(wrong, 200)}", "warn"))
    return [_title(snapshot, width, past), row(*clip(warned, width))]


def _title(snapshot: RunSnapshot, width: int, past: Sequence[SystemSample]) -> Row:
    look = badge(snapshot)
    state = f"{look.glyph} {look.word}"
    way = snapshot.moving.sentence if snapshot.moving is not None else ""
    note = clean(way or snapshot.health_note or snapshot.waits, 60)
    if not note and snapshot.exit is not None and not snapshot.state.active:
        note = clean(snapshot.exit.sentence(), 60)
    right = [Span(f"{state} ", f"{look.tone} strong")]
    if note and len(note) < (width - len(state) - 8) // 2:
        right = [Span(f"{note}  ", "dim"), *right]
    name = Span(clean(snapshot.name), "title")
    strip = machine_strip(past, width - row(name, *right).width - 4) if past else ()
    return spread([Span(" "), name], [*strip, *right], width)


def _facts(snapshot: RunSnapshot, width: int, now: float) -> Row:
    """As many as fit, the most important first."""
    wanted, device, data = snapshot.device_asked, snapshot.numbers.device.type, snapshot.numbers.data
    age, whole_age = _ages(snapshot, now)
    facts = (
        f"attempt {snapshot.attempt}" if snapshot.attempt else "",
        clean(snapshot.job.short(), 60) if snapshot.job else "",
        f"training {beat.training}" if (beat := snapshot.numbers.beat) and beat.training else "",
        f"asked for {clean(wanted, 10)}" if wanted and wanted not in ("auto", device) else "",
        age,
        f"data {clean(data, 60)}" if data else "",
        whole_age,
        f"recipe {clean(snapshot.recipe, 20)}" if snapshot.recipe else "",
        clean(snapshot.run, 80),
    )
    parts = [Span(" "), Span(device_text(snapshot))]
    for fact in facts:
        more = [*parts, _DOT, Span(fact, "dim")]
        if fact and row(*more).width < width:
            parts = more
    return row(*clip(tuple(parts), width))


def _ages(snapshot: RunSnapshot, now: float) -> tuple[str, str]:
    """How long the attempt has been running, or ran; and where there were others, how long it all took."""
    started, ended = snapshot.started, snapshot.ended
    if started is None:
        return "", ""
    attempt_started = started if snapshot.attempt_started is None else snapshot.attempt_started
    until, verb, exact = (now, "up", shown.settled) if ended is None else (ended, "ran", float)
    age = f"{verb} {shown.duration(exact(until - attempt_started))}"
    return age, f"all attempts {shown.duration(exact(until - started))}" if attempt_started > started else ""
