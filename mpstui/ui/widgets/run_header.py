"""The lines above the panels of a run: which run it is, how it is doing, and its progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot, State
from ...core.present import badge, epoch_progress, epoch_text, step_text, total_progress
from ..rows import Row, Span, bar, clean, clip, fit, row, spread, width_of
from .machine_strip import machine_strip

if TYPE_CHECKING:
    from ...core.telemetry.model import SystemSample

_LABEL, _COUNT, _SHARE = 7, 15, 8
_ROOM_FOR_BOTH = 70
"""From this width on, a line fits two remarks, or the counts of both steps and epochs."""
_NOTE = 14
"""Cells of a remark after a bar."""
_DOT = Span("  ·  ", "faint")


def header(
    snapshot: RunSnapshot, width: int, now: float, warning: str = "", past: Sequence[SystemSample] = ()
) -> list[Row]:
    """The name, the machine and the state; then the facts, or beside the device what is going wrong."""
    held = ""
    if snapshot.is_frozen and not snapshot.waits:  # who holds it, unless the user paused it by key
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
    """As many remarks as fit, the most important first."""
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


def device_text(snapshot: RunSnapshot) -> str:
    """``mps · Apple M2 Max · bf16``; unknown parts are omitted, an unknown device is n/a, one not read yet …"""
    device = snapshot.numbers.device
    unknown = "device …" if snapshot.loading or snapshot.unread else "device n/a"
    parts = [device.type or unknown, device.name, device.precision]
    return " · ".join(clean(part, 40) for part in parts if part)


def _ages(snapshot: RunSnapshot, now: float) -> tuple[str, str]:
    """How long the attempt has been running, or ran; if there were others, also how long all of them took."""
    started, end = snapshot.started, shown.until(snapshot, now)
    if started is None or end is None:
        return "", ""
    attempt_started = started if snapshot.attempt_started is None else snapshot.attempt_started
    verb = shown.lived(snapshot, end, now)
    exact = float if verb == "ran" else shown.settled
    age = f"{verb} {shown.duration(exact(max(0.0, end - attempt_started)))}"
    return (
        age,
        f"all attempts {shown.duration(exact(end - started - snapshot.idle))}" if attempt_started > started else "",
    )


def progress(snapshot: RunSnapshot, width: int, height: int = 1) -> list[Row]:
    """Progress within the epoch and in total; for an active run, also its speed and the time left.

    One line shows both if the progress within the epoch is unknown and there is room. A run that ended without a known
    total has no bars.

    Args:
        height: least number of lines, except for a run that ended without a total.
    """
    numbers = snapshot.numbers
    active = snapshot.state.active and not numbers.done
    done = total_progress(numbers)
    # At the very end the count within the epoch has restarted, for an epoch that will not come.
    within = 1.0 if done == 1.0 else epoch_progress(numbers)
    updates = (
        numbers.beat is not None and numbers.beat.step_from == "updates" and numbers.told_by.get("step") == "agent"
    )
    label = "update" if updates else "steps"  # its steps are those of its environment
    steps = f"{shown.short_count(numbers.step)}/{shown.short_count(numbers.steps)}"
    counted = step_text(numbers) if numbers.steps is None else steps
    if not active and within is None and done is None:  # the total is unknown: there is nothing to draw a bar of
        told = [("epoch", epoch_text(numbers)), (label, counted)]
        known = [row(" ", (fit(label, _LABEL), "dim"), text) for label, text in told if text != shown.UNKNOWN]
        return known or [row((fit(" no step reported", width), "dim"))]
    # An unknown end is shown as such; other unknown values are left out.
    left = f"left {shown.duration(numbers.eta_seconds)}"
    epoch_left, speed, samples = (
        "" if value is None else told.format(write(value))
        for value, told, write in (
            (numbers.epoch_eta_seconds or None, "left {}", shown.duration),  # its evaluation may still be to come
            (numbers.steps_per_second, "{} step/s", shown.rate),
            (numbers.samples_per_second, "{} smp/s", shown.rate),
        )
    )
    epoch = epoch_text(numbers)
    if active and done is None and within is None and epoch == shown.UNKNOWN and numbers.step is None:
        return [row((fit(" no step reported yet", width), "dim"))]
    uncounted = within is None or (epoch == shown.UNKNOWN and numbers.epoch_steps is None)
    if uncounted and height < 2 and (epoch == shown.UNKNOWN or width >= _ROOM_FOR_BOTH):
        both = counted if epoch == shown.UNKNOWN else f"{counted} · epoch {epoch}"
        return [_bar(label, both, done, (left, speed, samples) if active else (), width)]
    if within is None and epoch != shown.UNKNOWN:
        first = _which(epoch, speed if active else "", width)
    else:
        first = _bar("epoch", epoch, within, (epoch_left, speed) if active else (), width)
    return [
        first,
        _bar(label, counted, done, (left, samples) if active else (), width),
    ]


def _which(epoch: str, note: str, width: int) -> Row:
    """The epoch without a bar, if the progress within it is unknown: an empty bar would say nothing."""
    told = fit(epoch, max(width_of(epoch) + 2, width - _NOTE - 3 - _LABEL))
    return row(*clip((Span(" "), Span(fit("epoch", _LABEL), "dim"), Span(told), Span(note, "dim")), width))


def _bar(label: str, counted: str, share: float | None, notes: tuple[str, ...], width: int) -> Row:
    notes = tuple(note for note in notes if note) if len(notes) > 2 else notes
    tail = "".join(fit(note, _NOTE) for note in notes[: 3 if width >= 112 else 2 if width >= _ROOM_FOR_BOTH else 1])
    count = max(_COUNT, width_of(counted) + 2)
    cells = max(4, width - 2 - _LABEL - count - _SHARE - (len(tail) + 2 if tail else 0))
    return row(
        " ",
        (fit(label, _LABEL), "dim"),
        (fit(counted, count - 2), "" if counted != shown.UNKNOWN else "faint"),
        "  ",
        *bar(share, cells),
        (fit(shown.percent(share), _SHARE, "right"), "" if share is not None else "faint"),
        "  ",
        Span(tail, "dim"),
    )
