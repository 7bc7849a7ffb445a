"""Comparing where two readings of one series stand: goes on, was drawn again, or starts from the beginning."""

from __future__ import annotations

from .history import Series
from .points import Counters, Number, Reading


def goes_back(series: Series, now: Counters, *, new_epoch: bool) -> bool:
    """Whether counters return to their start, which neither a resumed run nor a next epoch explains.

    ``new_epoch``: an epoch was announced since the last reading, so that steps may well begin again.
    """
    before, start = series.counters, series.start
    if now.epoch is not None and before.epoch is not None and now.epoch != before.epoch:
        first = start.epoch if start.epoch is not None else 0
        return now.epoch < before.epoch and (now.epoch <= max(1, first) or now.epoch < 0.5 * before.epoch)
    step, last = now.shown_step, before.shown_step
    if step is None or last is None or step >= last or step > max(or_zero(start.shown_step), 0.1 * last):
        return False
    if now.epoch is not None and before.epoch is not None:
        return True
    planned = before.shown_steps
    return not new_epoch and (planned is None or last < 0.9 * planned)


def follows(now: Counters, before: Counters) -> bool:
    """Whether a reading is plainly the next one: a later epoch, or a later step."""
    if now.epoch is not None and before.epoch is not None and now.epoch != before.epoch:
        return now.epoch > before.epoch
    if now.shown_step is None or before.shown_step is None:
        return now.shown_step is None and before.shown_step is None
    return now.shown_step > before.shown_step


def same_place(reading: Reading, before: Counters) -> bool:
    """Whether a bar was only drawn again where it stood (an average that runs through an epoch stands still in it)."""
    now = reading.counters
    return now.epoch == before.epoch and (reading.running or now == before)


def first_known(*values: Number | None) -> Number | None:
    """The first value that is known."""
    return next((value for value in values if value is not None), None)


def or_zero(value: Number | None) -> Number:
    """For comparisons alone: an unknown counter compares like the very start."""
    return 0 if value is None else value


def same_value(a: float, b: float) -> bool:
    """Equal, where NaN equals NaN."""
    return a == b or (a != a and b != b)
