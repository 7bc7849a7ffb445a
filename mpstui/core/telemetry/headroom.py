"""How near memory is to its limits, and when it will reach them: from trends that a few outliers cannot bend."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Literal, TypeAlias

from ..model.snapshot import Moment
from .model import GpuSample, PressureLevel, SystemSample, TreeSample

Point: TypeAlias = tuple[float, float]
"""Time in seconds and a value."""

# The number of pairs grows with the square: 60 points make 1770 pairs, well under a millisecond for either test.
MAX_POINTS = 60
# One-sided 1 % level of the normal distribution: a series without a trend is called growing once in a hundred times.
_SIGNIFICANT_Z = 2.326
_FEWEST_POINTS = 8


def thinned(points: Sequence[Point], most: int = MAX_POINTS) -> list[Point]:
    """Return at most ``most`` of ``points``, evenly spread, the first and the last included."""
    if len(points) <= most:
        return list(points)
    step = (len(points) - 1) / (most - 1)
    return [points[round(index * step)] for index in range(most)]


def slope(points: Sequence[Point]) -> float | None:
    """Return the Theil-Sen slope per second: the median slope between all pairs; None below eight points."""
    chosen = thinned(points)
    slopes = [(v1 - v0) / (t1 - t0) for (t0, v0), (t1, v1) in combinations(chosen, 2) if t1 > t0]
    return median(slopes) if len(chosen) >= _FEWEST_POINTS and slopes else None


def is_growing(points: Sequence[Point]) -> bool:
    """Mann-Kendall test for an upward trend at the 1 % level (ties counted as no evidence)."""
    values = [value for _, value in thinned(points)]
    count = len(values)
    if count < _FEWEST_POINTS:
        return False
    score, before = 0, list[float]()
    for value in values:  # the score: pairs that rise minus pairs that fall
        place = bisect_left(before, value)
        score += place - (len(before) - bisect_right(before, value))
        before.insert(place, value)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return (score - 1) / deviation > _SIGNIFICANT_Z


def since_jump(points: Sequence[Point]) -> Sequence[Point]:
    """Return the points after the last jump (an eighth of them with over half of the gain): jumps predict nothing."""
    while len(points) >= _FEWEST_POINTS:
        chosen = thinned(points)
        step = max(1, len(chosen) // 8)
        steepest, end = max((chosen[i][1] - chosen[i - step][1], chosen[i][0]) for i in range(step, len(chosen)))
        if steepest <= (chosen[-1][1] - chosen[0][1]) / 2:
            break
        points = [point for point in points if point[0] >= end]
    return points


Limit = Literal["device", "footprint", "system"]
Amounts: TypeAlias = tuple[int | None, int | None]

LIMIT_WORDS: dict[Limit, str] = {
    "device": "Device memory",
    "footprint": "The footprint of the training",
    "system": "System memory",
}
SWAP_ALARM_BYTES = 2**30
SWAP_ALARM_SECONDS = 60.0
TIGHT_FRACTION = 0.9
# A limit more than a day away at the current slope is not worth a warning.
HORIZON_SECONDS = 24 * 3600.0
# Trends cover the last ten minutes: longer ones would average over an epoch's validation.
TREND_SECONDS = 600.0
# Memory grows for a while after a start, and what happened in a gap is unknown.
LEAST_TREND_SECONDS = 120.0
GAP_SECONDS = 60.0
# As a fraction of the limit, over TREND_SECONDS: the memory of a whole machine fluctuates by less.
LEAST_GAIN = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPoint:
    """What was known at ``time`` (seconds), in bytes.

    ``allocated`` and ``driver`` come from the trainer's own allocator. ``device_used`` is what counts against ``limit``
    if that is more: on a card with its own memory, what all processes use. ``system_limit`` is the machine's memory, or
    the limit of a tighter control group. ``cpu_percent`` and ``gpu_percent`` say how busy the machine was (of several
    cards, the busiest).
    """

    time: Moment
    device_used: int | None = None
    allocated: int | None = None
    driver: int | None = None
    limit: int | None = None
    footprint: int | None = None
    system_used: int | None = None
    system_limit: int | None = None
    swap_used: int | None = None
    pressure: PressureLevel | None = None
    cpu_percent: float | None = None
    gpu_percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Where the nearest limit is.

    ``used_fraction`` is 1 at the limit and may exceed it (MPS allows more than the recommended maximum).
    ``seconds_to_limit`` is the time to whichever limit is reached first at the current slope, None unless memory is
    really growing and that limit is less than a day away. ``soonest`` names that limit: it need not be the nearest,
    whose use may not grow. ``growth_bytes_per_second`` is for the soonest limit, else for the nearest.
    ``warnings`` are sentences for a person.
    """

    nearest: Limit
    used_fraction: float
    used_bytes: int
    limit_bytes: int
    growth_bytes_per_second: float | None = None
    seconds_to_limit: float | None = None
    soonest: Limit | None = None
    warnings: tuple[str, ...] = ()


_LIMITS: dict[Limit, Callable[[MemoryPoint], Amounts]] = {
    "device": lambda point: (_first(point.device_used, point.driver, point.allocated), point.limit),
    "footprint": lambda point: (point.footprint, point.limit),
    "system": lambda point: (point.system_used, point.system_limit),
}


def memory_point(
    system: SystemSample,
    tree: TreeSample | None = None,
    heartbeat_memory: Mapping[str, int | None] | None = None,
    card: GpuSample | None = None,
) -> MemoryPoint:
    """Return one point from what the machine, the trainer's processes and its heartbeat's ``memory`` say.

    ``card`` is the trainer's card: if it has memory of its own, all that is used of it counts.
    """
    reported = heartbeat_memory or {}
    own_memory = card is not None and card.memory_total_bytes is not None
    return MemoryPoint(
        time=system.time,
        device_used=card.memory_used_bytes if card and own_memory else None,
        allocated=reported.get("allocated"),
        driver=reported.get("driver"),
        limit=card.memory_total_bytes if card and own_memory else reported.get("limit"),
        footprint=_first(tree.footprint_bytes if tree else None, reported.get("footprint")),
        system_used=system.memory_used_of_usable_bytes,
        system_limit=system.usable_memory_bytes,
        swap_used=system.swap_used_bytes,
        pressure=system.pressure,
    )


def headroom(points: Sequence[MemoryPoint], unified: bool = True) -> Headroom | None:
    """Return the nearest limit, judged from ``points`` in order of time; None unless a limit and its use are known.

    ``unified``: device and system share memory, so that the footprint counts against the device's limit.
    """
    if not points:
        return None
    now = points[-1]
    names: list[Limit] = ["device", "footprint", "system"] if unified else ["device", "system"]
    known = [
        (used / limit, name, used, limit) for name in names for used, limit in (_LIMITS[name](now),) if used and limit
    ]
    if not known:
        return None
    fraction, nearest, used, limit = max(known)
    recent = _watched([point for point in points if point.time >= now.time - TREND_SECONDS])
    growths: dict[Limit, float] = {}
    times: list[tuple[float, Limit]] = []
    for _, name, used_of_it, its_limit in known:
        series = since_jump(_known((point.time, _LIMITS[name](point)[0]) for point in recent))
        growth = slope(series) if is_growing(series) else None
        if growth is None or growth <= 0:
            continue
        growths[name] = growth
        seconds = max(0, its_limit - used_of_it) / growth
        foretells = series[-1][0] - series[0][0] >= LEAST_TREND_SECONDS and seconds <= HORIZON_SECONDS
        if foretells and growth >= LEAST_GAIN * its_limit / TREND_SECONDS:
            times.append((seconds, name))
    seconds_to_limit, soonest = min(times, default=(None, None))
    return Headroom(
        nearest=nearest,
        used_fraction=fraction,
        used_bytes=used,
        limit_bytes=limit,
        growth_bytes_per_second=growths.get(soonest or nearest),
        seconds_to_limit=seconds_to_limit,
        soonest=soonest,
        warnings=tuple(_warnings(recent, nearest, fraction)),
    )


def _watched(points: Sequence[MemoryPoint]) -> Sequence[MemoryPoint]:
    """Return the points since the last gap."""
    gaps = (
        place for place in range(len(points) - 1, 0, -1) if points[place].time - points[place - 1].time > GAP_SECONDS
    )
    return points[next(gaps, 0) :]


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _known(points: Iterable[tuple[float, int | None]]) -> list[Point]:
    return [(time, float(value)) for time, value in points if value is not None]


def _warnings(recent: Sequence[MemoryPoint], nearest: Limit, fraction: float) -> Iterable[str]:
    now = recent[-1]
    if now.pressure == "critical":
        yield "The system is critically short of memory."
    elif now.pressure == "warn":
        yield "The system is short of memory."
    if fraction >= TIGHT_FRACTION:
        yield f"{LIMIT_WORDS[nearest]} is at {fraction:.0%} of its limit."
    swap = [
        used
        for time, used in _known((point.time, point.swap_used) for point in recent)
        if time >= now.time - SWAP_ALARM_SECONDS
    ]
    if swap and swap[-1] - min(swap) >= SWAP_ALARM_BYTES:
        grown = (swap[-1] - min(swap)) / 2**30
        yield f"Swap grew by {grown:.1f} GiB within {SWAP_ALARM_SECONDS:.0f} s: the machine may freeze."
    # pytorch#132596
    footprint = _known((point.time, point.footprint) for point in recent)
    driver = _known((point.time, point.driver) for point in recent)
    if driver and is_growing(footprint) and not is_growing(driver):
        yield "The process grows while its device memory does not: something outside the allocator leaks."
