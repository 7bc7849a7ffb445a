"""How far a run is, and on what: without what draws a run's own screen, which the list need not import."""

from __future__ import annotations

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot
from ...core.present import epoch_progress, epoch_text, step_text, total_progress
from ..rows import Row, Span, bar, clean, fit, row, width_of

_LABEL, _COUNT, _SHARE = 7, 15, 8
_ROOM_FOR_BOTH = 70
"""Columns from which on a line has place for two remarks, or for the counts of steps and epochs."""


def device_text(snapshot: RunSnapshot) -> str:
    """``mps · Apple M2 Max · bf16``; what is not known is left out, an unknown device is n/a, one not read yet …"""
    device = snapshot.numbers.device
    unknown = "device …" if snapshot.loading or snapshot.unread else "device n/a"
    parts = [device.type or unknown, device.name, device.precision]
    return " · ".join(clean(part, 40) for part in parts if part)


def progress(snapshot: RunSnapshot, width: int, height: int = 1) -> list[Row]:
    """How far within the epoch and in all; of a run that goes on also how fast, and how long still.

    One line tells of both where nobody knows how far the epoch is, and there is room. One that ended without a total
    has no bars.

    Args:
        height: so many lines at least, where it is about more than what ended so.
    """
    numbers = snapshot.numbers
    active = snapshot.state.active and not numbers.done
    done = total_progress(numbers)
    # At the end of everything the count within the epoch has begun anew, for an epoch that will not come.
    within = 1.0 if done == 1.0 else epoch_progress(numbers)
    steps = f"{shown.short_count(numbers.step)}/{shown.short_count(numbers.steps)}"
    counted = step_text(numbers) if numbers.steps is None else steps
    if not active and within is None and done is None:  # no total was told: there is nothing left to draw a bar of
        told = [("epoch", epoch_text(numbers)), ("steps", counted)]
        known = [row(" ", (fit(label, _LABEL), "dim"), text) for label, text in told if text != shown.UNKNOWN]
        return known or [row((fit(" no step was told", width), "dim"))]
    # That nobody knows when it ends is told; of the rest what is not known is left out.
    left = f"left {shown.duration(numbers.eta_seconds)}"
    epoch_left, speed, samples = (
        "" if value is None else told.format(write(value))
        for value, told, write in (
            (numbers.epoch_eta_seconds, "left {}", shown.duration),
            (numbers.steps_per_second, "{} step/s", shown.rate),
            (numbers.samples_per_second, "{} smp/s", shown.rate),
        )
    )
    epoch = epoch_text(numbers)
    if within is None and height < 2 and (epoch == shown.UNKNOWN or width >= _ROOM_FOR_BOTH):
        both = counted if epoch == shown.UNKNOWN else f"{counted} · epoch {epoch}"
        return [_bar("steps", both, done, (left, speed, samples) if active else (), width)]
    return [
        _bar("epoch", epoch, within, (epoch_left, speed) if active else (), width),
        _bar("steps", counted, done, (left, samples) if active else (), width),
    ]


def _bar(label: str, counted: str, share: float | None, notes: tuple[str, ...], width: int) -> Row:
    notes = tuple(note for note in notes if note) if len(notes) > 2 else notes
    tail = "".join(fit(note, 14) for note in notes[: 3 if width >= 112 else 2 if width >= _ROOM_FOR_BOTH else 1])
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
