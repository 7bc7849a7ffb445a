"""Axes: map a value to its position and back, with round ends and ticks. Pure, no Textual."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_GREATEST = 1e300
"""Larger values (and NaN) are off the chart: the steps of such an axis would overflow."""
_SMALLEST_POSITIVE = 1e-200
"""Smaller values count as zero on a log axis: ratios of denormal numbers would overflow."""
_DEEPEST_LOG = 1e-15
"""A log axis extends this far below its greatest value."""
_LOG_WORTH_IT = 30.0
"""A curve that spans this ratio reads better on a log axis."""


_LABEL_CELLS = 6
_DIGITS, _MOST_DIGITS = 4, 12
"""Digits of a tick label: usually, and at most where fewer would not tell it from the next one."""
_FEWEST_LINES, _MANY_LINES = 10, 12
"""From this many lines on, labelled values are whole lines apart; with fewer, that would cost too much height."""
_LINES_APART, _FEW_LINES_APART = (3, 4, 5, 6), (2, 3, 4)
_COST_OF_ODD_START, _COST_OF_A_LINE_BETWEEN = 1.3, 0.04
"""How much taller an axis must draw the curve if it begins between labelled values, or has fewer of them."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``, both finite and different; ``log`` needs both above 0."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    """Distance between labelled values, if chosen with the axis; None: as many as there is room for."""
    span: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "span", math.log(self.high / self.low) if self.log else self.high - self.low)

    def position(self, value: float) -> float | None:
        """Return 0 at ``low``, 1 at ``high``; None if the axis cannot hold it (NaN, or not above 0 on a log axis)."""
        if not abs(value) < _GREATEST:
            return None
        if not self.log:
            return (value - self.low) / self.span
        if value <= _SMALLEST_POSITIVE:
            return None
        return math.log(max(value / self.low, _SMALLEST_POSITIVE)) / self.span  # the ratio may have been rounded to 0

    def ticks(self, most: int) -> list[float]:
        """Return round values inside the axis: decades (with 2 and 5 if they fit) if log, else steps of 1, 2 or 5."""
        if most < 1:
            return []
        if self.log:
            return _log_ticks(self.low, self.high, most)
        if self.step is not None:
            return self._multiples(self.step)
        for parts in (max(1, most - 1), most, most + 1):
            ticks = self._multiples(nice_step((self.high - self.low) / parts))
            if 2 <= len(ticks) <= most + 1:
                return ticks
        return [self.low, self.high]

    def _multiples(self, step: float) -> list[float]:
        first, last = math.ceil(self.low / step - 1e-6), math.floor(self.high / step + 1e-6)
        return [0.0 if index == 0 else index * step for index in range(first, last + 1)]


class Frame(NamedTuple):
    """The axes, and the size of the drawing area in cells."""

    x: Scale
    y: Scale
    columns: int
    lines: int
    pinned: Scale | None = None
    """The value axis of a pinned curve; the same object if both share it."""

    def column_of(self, x: float) -> int | None:
        """Return the cell column of ``x``; None if outside."""
        position = self.x.position(x)
        return round(position * (self.columns - 1)) if position is not None and -1e-9 <= position <= 1 + 1e-9 else None

    def x_at(self, column: int) -> float:
        """Return the x in the middle of a cell column."""
        return self.x.low + self.x.span * (column / max(1, self.columns - 1))


def value_scale(values: Iterable[float], log: bool | None, lines: int = 0) -> Scale:
    """Return an axis for these values; ``log``: None chooses, True falls back to linear if nothing is above 0.

    The ends are rounded outwards to a few round numbers, so that small movements of the curve keep the axis.

    Args:
        lines: the number of lines over which a linear axis spreads its labelled values evenly; 0: not by lines.
    """
    finite = [value for value in values if abs(value) < _GREATEST]
    positive = [value for value in finite if value > _SMALLEST_POSITIVE]
    if not finite:
        return Scale(0.0, 1.0)
    spans_decades = len(positive) == len(finite) and max(positive) / min(positive) >= _LOG_WORTH_IT
    if positive and (spans_decades if log is None else log):
        low, high = max(min(positive), max(positive) * _DEEPEST_LOG), max(positive)
        if high / low < 1.001:
            low, high = low / 2, high * 2
        fine = high / low < 1000
        return Scale(_decade_step(low, fine, down=True), _decade_step(high, fine, down=False), log=True)
    low, high = min(finite), max(finite)
    if high - low < 1e-12 * max(abs(low), abs(high), 1e-300):
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, high + margin
    if lines >= _FEWEST_LINES:
        return _in_whole_lines(low, high, lines)
    step = nice_step((high - low) / 8)
    return Scale(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step)


def _in_whole_lines(low: float, high: float, lines: int) -> Scale:
    """Return the linear axis whose labelled values are whole lines apart: ``1 2 3``, evenly spaced.

    It begins at such a value unless that makes the curve much flatter, so that it stays the same as the curve moves.
    """
    found: list[tuple[float, Scale]] = []
    for every in _LINES_APART if lines >= _MANY_LINES else _FEW_LINES_APART:
        step, fits = (high - low) * every / (lines - 1) / 1.01, False
        while not fits:
            step = nice_step(step * 1.01)
            first, last = (math.floor(low / step * every + 1e-9), math.ceil(high / step * every - 1e-9))
            named = first // every * every
            fits = named + lines > last
            cost = step / every * (1 + _COST_OF_A_LINE_BETWEEN * every)
            for start, odd in ((named, 1.0), (first, _COST_OF_ODD_START)):
                end = start + lines - 1
                if last <= end and end // every + -start // every >= 1:
                    found.append((cost * odd, Scale(start * step / every, end * step / every, step=step)))
    return min(found, key=lambda one: one[0])[1]


def _decade_step(value: float, fine: bool, *, down: bool) -> float:
    """Return the closest round number at or below ``value`` if ``down``, else at or above; ``fine``: more choices."""
    decade = 10.0 ** math.floor(math.log10(value))
    steps = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0) if fine else (1.0, 2.0, 5.0, 10.0)
    scaled = value / decade
    if down:
        return decade * max((step for step in steps if step <= scaled * 1.000001), default=1.0)
    return decade * min((step for step in steps if step >= scaled * 0.999999), default=10.0)


def nice_step(rough: float) -> float:
    """Return 1, 2 or 5 times a power of ten, the smallest that is at least ``rough``."""
    if not math.isfinite(rough) or rough <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next((power * step for step in (1.0, 2.0, 5.0) if power * step >= rough * 0.999999), power * 10)


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1.0, 2.0, 3.0, 5.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [10.0**decade * step for decade in range(first, last + 1) for step in steps]
        inside = [tick for tick in ticks if low * 0.999999 <= tick <= high * 1.000001]
        if 2 <= len(inside) <= most:
            return inside
    stride = max(1, math.ceil((last - first + 1) / most))
    decades = [10.0**decade for decade in range(first, last + 1, stride)]
    inside = [tick for tick in decades if low * 0.999999 <= tick <= high * 1.000001]
    return inside if len(inside) >= 2 else [low, high]


def tick_labels(ticks: Sequence[float], room: int) -> list[str]:
    """Format the ticks of an axis with enough digits to tell them apart, in at most ``room`` cells each."""
    labels = [tick_label(tick) for tick in ticks]
    for digits in range(_DIGITS + 1, _MOST_DIGITS):
        if len(set(labels)) == len(labels):
            break
        finer = [tick_label(tick, digits) for tick in ticks]
        if max(map(len, finer)) > room:
            break
        labels = finer
    return labels


def tick_label(value: float, digits: int = _DIGITS) -> str:
    """Format a tick in at most 6 cells: ``0.05``, ``1``, ``200``, ``1e-5``, ``50k``; longer with more digits."""
    magnitude = abs(value)
    for scale, unit in ((1e6, "M"), (1e3, "k")):
        if scale * (10 if unit == "k" else 1) <= magnitude < 1e9:
            return f"{value / scale:.{digits}g}{unit}"
    plain = f"{value:.{digits}g}"
    if magnitude == 0 or 0.001 <= magnitude < 1e9 or ("e" not in plain and len(plain) <= _LABEL_CELLS):
        return plain
    begin, power = f"{value:.{digits - 3}e}".split("e")
    return f"{begin.rstrip('0').removesuffix('.')}e{int(power)}"
