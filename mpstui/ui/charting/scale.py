"""Axes: from a value to a position between 0 and 1, and the ticks a person can read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

_GREATEST = 1e300
"""More (and NaN) is off the chart: the steps of such an axis overflow."""
_SMALLEST_POSITIVE = 1e-200
"""Less is zero to a log axis: ratios of denormal numbers overflow."""
_DEEPEST_LOG = 1e-15
"""A log axis reaches this far below its greatest value."""
_LOG_WORTH_IT = 30.0
"""A curve that spans this ratio is told better by decades."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``, both finite and apart; ``log`` needs both above 0."""

    low: float
    high: float
    log: bool = False
    span: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "span", math.log(self.high / self.low) if self.log else self.high - self.low)

    def position(self, value: float) -> float | None:
        """0 at ``low``, 1 at ``high``; None for what the axis cannot hold (NaN, or not above 0 on a log axis)."""
        if not abs(value) < _GREATEST:
            return None
        if not self.log:
            return (value - self.low) / self.span
        if value <= _SMALLEST_POSITIVE:
            return None
        return math.log(max(value / self.low, _SMALLEST_POSITIVE)) / self.span  # a ratio can be rounded to 0

    def value(self, position: float) -> float:
        """The inverse of :meth:`position`."""
        if self.log:
            return self.low * math.exp(self.span * position)
        return self.low + (self.high - self.low) * position

    def ticks(self, most: int) -> list[float]:
        """Round values inside the axis: decades (with 2 and 5 where there is room) on a log one, 1-2-5 steps else."""
        if most < 1:
            return []
        return _log_ticks(self.low, self.high, most) if self.log else _linear_ticks(self.low, self.high, most)


def value_scale(values: Iterable[float], log: bool | None) -> Scale:
    """The axis for these values; ``log`` None chooses, True falls back to linear where nothing is above 0.

    The ends are rounded outwards to a few round numbers, so that a curve that moves a little leaves the axis alone.
    """
    finite = [value for value in values if abs(value) < _GREATEST]
    positive = [value for value in finite if value > _SMALLEST_POSITIVE]
    wants_log = log if log is not None else _spans_decades(finite, positive)
    if wants_log and positive:
        return _log_scale(min(positive), max(positive))
    return _linear_scale(min(finite), max(finite)) if finite else Scale(0.0, 1.0)


def _spans_decades(finite: list[float], positive: list[float]) -> bool:
    return bool(finite) and len(positive) == len(finite) and max(positive) / min(positive) >= _LOG_WORTH_IT


def _log_scale(low: float, high: float) -> Scale:
    low = max(low, high * _DEEPEST_LOG)
    if high / low < 1.001:
        low, high = low / 2, high * 2
    fine = high / low < 1000
    return Scale(_decade_step(low, fine, down=True), _decade_step(high, fine, down=False), log=True)


def _decade_step(value: float, fine: bool, *, down: bool) -> float:
    """The nearest round number of its decade below (or above) ``value``."""
    decade = 10.0 ** math.floor(math.log10(value))
    steps = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0) if fine else (1.0, 2.0, 5.0, 10.0)
    scaled = value / decade
    if down:
        return decade * max((step for step in steps if step <= scaled * 1.000001), default=1.0)
    return decade * min((step for step in steps if step >= scaled * 0.999999), default=10.0)


def _linear_scale(low: float, high: float) -> Scale:
    if high - low < 1e-12 * max(abs(low), abs(high), 1e-300):
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, high + margin
    step = nice_step((high - low) / 8)
    return Scale(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step)


def nice_step(rough: float) -> float:
    """The 1, 2 or 5 times a power of ten that is at least ``rough``."""
    if not math.isfinite(rough) or rough <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next((power * step for step in (1.0, 2.0, 5.0) if power * step >= rough * 0.999999), power * 10)


def _linear_ticks(low: float, high: float, most: int) -> list[float]:
    for parts in (max(1, most - 1), most, most + 1):
        step = nice_step((high - low) / parts)
        first = math.ceil(low / step - 1e-9)
        last = math.floor(high / step + 1e-9)
        ticks = [0.0 if index == 0 else index * step for index in range(first, last + 1)]
        if 2 <= len(ticks) <= most + 1:
            return ticks
    return [low, high]


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


def tick_label(value: float) -> str:
    """A tick in at most 6 cells: ``0.05``, ``1``, ``200``, ``1e-05``, ``50k``."""
    magnitude = abs(value)
    if magnitude != 0 and (magnitude < 0.001 or magnitude >= 1e9):
        return f"{value:.0e}" if f"{value:.0e}" == f"{value:.1e}".replace(".0", "") else f"{value:.1e}"
    for scale, unit in ((1e6, "M"), (1e3, "k")):
        if magnitude >= scale * (10 if unit == "k" else 1):
            return f"{value / scale:.4g}{unit}"
    return f"{value:.4g}"
