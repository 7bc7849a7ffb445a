"""Step times out of reported points: the warm-up left out, the rest in stretches, their median and spread."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WARM_UP_STEPS = 3
WARM_UP_SECONDS = 1.0
"""After the first step kernels are still being chosen, shaders compiled and caches filled for a while."""
_SHORTEST_STRETCH_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some steps in a row that were timed together."""

    steps: float
    seconds: float
    samples: float | None = None

    @property
    def step_seconds(self) -> float:
        """Seconds a step took on the average."""
        return self.seconds / self.steps


@dataclass(frozen=True, slots=True)
class Spread:
    """A quantity measured several times."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Median and range; None without a value."""
        return cls(statistics.median(values), min(values), max(values), len(values)) if values else None


def stretches(points: Sequence[Mapping[str, Any]]) -> list[Stretch]:
    """What was timed after the warm-up, each stretch at least a quarter of a second long.

    Args:
        points: records with ``time`` (Unix seconds) and ``step``, in order; ``steps_per_second`` and
            ``samples_per_second`` of any of them tell how many samples a step has.
    """
    warm = _warm(points)
    found: list[Stretch] = []
    if not warm:
        return found
    start, size = warm[0], samples_per_step(points)
    for point in warm[1:]:
        steps, seconds = point["step"] - start["step"], point["time"] - start["time"]
        if steps > 0 and seconds >= _SHORTEST_STRETCH_SECONDS:
            found.append(Stretch(steps, seconds, None if size is None else steps * size))
            start = point
    return found


def samples_per_step(points: Sequence[Mapping[str, Any]]) -> float | None:
    """Samples of an optimizer step as the trainer's own speeds tell it; None when it never told both."""
    for point in reversed(points):
        samples, steps = point.get("samples_per_second"), point.get("steps_per_second")
        if samples and steps:
            return float(samples / steps)
    return None


def warming(points: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the warm-up still lasts."""
    return not _warm(points)


def _warm(points: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    for at, point in enumerate(points):
        if point["step"] >= WARM_UP_STEPS and point["time"] - points[0]["time"] >= WARM_UP_SECONDS:
            return points[at:]
    return ()
