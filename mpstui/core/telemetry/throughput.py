"""Notices that a training became slower than it was: the best sign of throttling that there is.

macOS has reported a nominal thermal level and full clock while the GPU ran at a third of it
(feedback-assistant/reports#830), but steps per second cannot hide that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from mpstui.core.telemetry.robust import Point

# A first step compiles and fills caches; a block of medians hides a slow checkpoint or validation.
WARM_UP_POINTS = 3
BLOCK_POINTS = 10
SLOW_RATIO = 0.8


@dataclass(frozen=True, slots=True)
class Pace:
    """The present speed against the run's own best sustained one, both in steps per second.

    ``slow_since`` is the time of the first point of the present slow stretch, None while it is not slow.
    """

    current: float
    sustained: float
    ratio: float
    slow_since: float | None

    @property
    def is_slow(self) -> bool:
        """Whether the speed fell below four fifths of what was sustained before."""
        return self.slow_since is not None


def pace(points: Sequence[Point], slow_ratio: float = SLOW_RATIO) -> Pace | None:
    """Judge steps per second over ``points`` (time, steps per second) of one phase, in order of time.

    The yardstick is the best median of any block of ten points: a median over all would sink with a long slowdown and
    call it normal. None before there are two blocks to compare.
    """
    steady = points[WARM_UP_POINTS:]
    if len(steady) < 2 * BLOCK_POINTS:
        return None
    blocks = _blocks(steady)
    medians = [median(speed for _, speed in block) for block in blocks]
    current, sustained = medians[-1], max(medians)
    if sustained <= 0:
        return None
    slow = [value < slow_ratio * sustained for value in medians]
    first = len(slow) - next((age for age, is_slow in enumerate(reversed(slow)) if not is_slow), len(slow))
    return Pace(current, sustained, current / sustained, blocks[first][0][0] if slow[-1] else None)


def _blocks(points: Sequence[Point]) -> list[Sequence[Point]]:
    """Whole blocks counted from the newest point, the oldest first."""
    return [points[end - BLOCK_POINTS : end] for end in range(len(points), BLOCK_POINTS - 1, -BLOCK_POINTS)][::-1]
