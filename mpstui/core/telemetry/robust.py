"""Trends of noisy series that a few outliers cannot bend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
"""Time in seconds and a value."""

# Pairs grow with the square of the points: 60 points are 1770 pairs, well under a millisecond each way.
MAX_POINTS = 60
# One-sided 1 % level of the normal distribution: a series without a trend is called growing once in a hundred times.
_SIGNIFICANT_Z = 2.326
_FEWEST_POINTS = 8


def thinned(points: Sequence[Point], most: int = MAX_POINTS) -> list[Point]:
    """At most ``most`` of ``points``, evenly spread, first and last included."""
    if len(points) <= most:
        return list(points)
    step = (len(points) - 1) / (most - 1)
    return [points[round(index * step)] for index in range(most)]


def slope(points: Sequence[Point]) -> float | None:
    """Theil-Sen slope per second: the median of the slopes between all pairs; None below eight points."""
    chosen = thinned(points)
    slopes = [(v1 - v0) / (t1 - t0) for (t0, v0), (t1, v1) in combinations(chosen, 2) if t1 > t0]
    return median(slopes) if len(chosen) >= _FEWEST_POINTS and slopes else None


def is_growing(points: Sequence[Point]) -> bool:
    """Mann-Kendall test for an upward trend at the 1 % level (ties counted as no evidence)."""
    values = [value for _, value in thinned(points)]
    count = len(values)
    if count < _FEWEST_POINTS:
        return False
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return (score - 1) / deviation > _SIGNIFICANT_Z
