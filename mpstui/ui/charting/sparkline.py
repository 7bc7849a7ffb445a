"""A curve in one row of blocks; what is not finite is a gap."""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
LEVELS = 7
"""The full block is left out: curves in neighbouring rows would run together."""


def sparkline(values: Sequence[float], width: int) -> str:
    """The values in ``width`` cells, the newest at the right; fewer values than cells leave blanks at the left.

    More values than cells are averaged in fixed bins, so that a new value moves few cells. A bin without a finite value
    is a blank. A constant curve runs along the middle.
    """
    if width <= 0:
        return ""
    bins = [_mean(values[start:end]) for start, end in _bins(len(values), width)]
    finite = [value for value in bins if value is not None]
    if not finite:
        return " " * width
    low, high = min(finite), max(finite)
    return "".join(_block(value, low, high) for value in bins).rjust(width)


def _bins(count: int, width: int) -> list[tuple[int, int]]:
    size = max(1, math.ceil(count / width))
    return [(start, min(count, start + size)) for start in range(0, count, size)]


def _mean(values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(value / len(finite) for value in finite) if finite else None


def _block(value: float | None, low: float, high: float) -> str:
    if value is None:
        return " "
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return BLOCKS[3]
    return BLOCKS[min(LEVELS - 1, int((value - low) / span * LEVELS))]
