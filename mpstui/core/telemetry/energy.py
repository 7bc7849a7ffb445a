"""Electric energy of a run and of its epochs, from measured watts, with the share of the time that was measured.

Nothing is filled in: an interval counts only if the power at both of its ends is known and they are close together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

MAX_GAP_SECONDS = 30.0
_JOULES_PER_WATT_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class PowerPoint:
    """Watts at ``time`` (Unix seconds); None where power was unknown."""

    time: float
    watts: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Measured energy between two moments.

    ``watt_hours`` covers ``measured_fraction`` of the span and is a lower bound where that is below 1; it is None if
    nothing was measured. ``cost`` is in the currency of the price given.
    """

    start: float
    end: float
    watt_hours: float | None
    measured_fraction: float
    cost: float | None = None

    @property
    def mean_watts(self) -> float | None:
        """Mean power over the measured time."""
        seconds = (self.end - self.start) * self.measured_fraction
        return self.watt_hours * _JOULES_PER_WATT_HOUR / seconds if self.watt_hours is not None and seconds else None


def energy(
    points: Sequence[PowerPoint],
    start: float,
    end: float,
    price_per_kilowatt_hour: float | None = None,
    max_gap_seconds: float = MAX_GAP_SECONDS,
) -> Energy:
    """Energy from ``start`` to ``end`` by the trapezoidal rule over ``points`` in order of time."""
    joules = seconds = 0.0
    for before, after in pairwise(points):
        piece = _clipped(before, after, start, end, max_gap_seconds)
        joules += piece[0]
        seconds += piece[1]
    span = end - start
    watt_hours = joules / _JOULES_PER_WATT_HOUR if seconds > 0 else None
    return Energy(
        start=start,
        end=end,
        watt_hours=watt_hours,
        measured_fraction=min(1.0, seconds / span) if span > 0 else 0.0,
        cost=_cost(watt_hours, price_per_kilowatt_hour),
    )


def energy_by_epoch(
    points: Sequence[PowerPoint],
    epoch_starts: Iterable[float],
    end: float,
    price_per_kilowatt_hour: float | None = None,
) -> tuple[Energy, ...]:
    """One figure an epoch, given when each epoch began and when the last one ended (or now)."""
    bounds = [*epoch_starts, end]
    return tuple(energy(points, before, after, price_per_kilowatt_hour) for before, after in pairwise(bounds))


def _clipped(before: PowerPoint, after: PowerPoint, start: float, end: float, max_gap: float) -> tuple[float, float]:
    """Joules and seconds of the part of one interval that lies in the span."""
    length = after.time - before.time
    if before.watts is None or after.watts is None or not 0 < length <= max_gap:
        return 0.0, 0.0
    first, last = max(before.time, start), min(after.time, end)
    if last <= first:
        return 0.0, 0.0
    rise = (after.watts - before.watts) / length
    middle = before.watts + rise * ((first + last) / 2 - before.time)
    return middle * (last - first), last - first


def _cost(watt_hours: float | None, price_per_kilowatt_hour: float | None) -> float | None:
    if watt_hours is None or price_per_kilowatt_hour is None:
        return None
    return watt_hours / 1000 * price_per_kilowatt_hour
