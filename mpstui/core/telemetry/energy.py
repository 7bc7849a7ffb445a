"""Electric energy of a run and of its epochs, from measured watts, with the share of the time that was measured.

Nothing is interpolated over gaps: an interval counts only if it is short and the power is known at both its ends. Each
point of the run's history holds the counters so far, so that thinning the history loses none of the energy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from .history import HistoryPoint

Whose: TypeAlias = Literal["machine", "gpu"]
"""Whose watts: the whole machine's, or the sum over its cards. The two are never added to each other."""

MAX_GAP_SECONDS = 30.0
JOULES_PER_WATT_HOUR = 3600.0
# Shares of the time: how much of an interval may be unmeasured, and how uncertain the ends of a stretch may be.
_MOST_UNMEASURED, _MOST_UNCERTAIN = 0.1, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergy:
    """Measured energy of one run.

    ``watt_hours`` is a lower bound if ``measured_fraction`` (of the time since the run was started) is below 1.
    ``epoch_watt_hours`` is the mean over the ``epochs`` that were measured whole; None if there were none.
    """

    whose: Whose
    watt_hours: float
    measured_fraction: float | None = None
    epoch_watt_hours: float | None = None
    epochs: float = 0.0


class EnergyMeter:
    """Integrates power over time by the trapezoidal rule, for the machine and for its cards."""

    def __init__(self, last: HistoryPoint | None = None) -> None:
        """Continue from the newest point of a history; None begins a new one."""
        known = last.values if last else {}
        self._counters: dict[str, float] = {name: known.get(name, 0.0) for whose in _WHOSE for name in _names(whose)}
        self._before: dict[Whose, tuple[float, float]] = {}

    def add(self, time: float, watts: Mapping[Whose, float | None]) -> None:
        """Add the power at ``time`` (Unix seconds); None where it is unknown."""
        for whose, now in watts.items():
            before = self._before.pop(whose, None)
            if now is None:
                continue
            self._before[whose] = time, now
            if before is not None and 0 < time - before[0] <= MAX_GAP_SECONDS:
                joules, seconds = _names(whose)
                self._counters[joules] += (before[1] + now) / 2 * (time - before[0])
                self._counters[seconds] += time - before[0]

    @property
    def counters(self) -> dict[str, float]:
        """Joules and measured seconds by name, without those that are still 0."""
        return {name: round(value, 1) for name, value in self._counters.items() if value > 0}


def run_energy(points: Sequence[HistoryPoint], started: float | None) -> RunEnergy | None:
    """Return the energy of a run from its history, in order of time; None if none was measured.

    It is the whole machine's energy if that was ever measured, else that of its graphics cards.
    """
    if not points:
        return None
    last = points[-1]
    whose = next((name for name in _WHOSE if last.values.get(_names(name)[1], 0.0) > 0), None)
    if whose is None:
        return None
    joules, seconds = (last.values[name] for name in _names(whose))
    span = last.time - started if started is not None else 0.0
    epoch_joules, epochs = _whole_epochs(points, whose)
    return RunEnergy(
        whose=whose,
        watt_hours=joules / JOULES_PER_WATT_HOUR,
        measured_fraction=min(1.0, seconds / span) if span > 0 else None,
        epoch_watt_hours=epoch_joules / epochs / JOULES_PER_WATT_HOUR if epochs else None,
        epochs=epochs,
    )


_WHOSE: tuple[Whose, ...] = ("machine", "gpu")


def _names(whose: Whose) -> tuple[str, str]:
    return f"energy.{whose}_joules", f"energy.{whose}_seconds"


def _whole_epochs(points: Sequence[HistoryPoint], whose: Whose) -> tuple[float, float]:
    """Return joules, and how many epochs they cover: from the first to the last border of each stretch without a gap.

    A border is the first point of a new epoch. A gap is where time was not measured, the attempt changed or the epoch
    went back.
    """
    total, measured = _names(whose)
    stretches: list[list[tuple[HistoryPoint, float]]] = [[]]
    """The borders of each, and how many seconds before each border its epoch may have begun."""
    for before, after in pairwise(points):
        old, new, passed = before.values, after.values, after.time - before.time
        known = "epoch" in old and "epoch" in new and old.get("attempt") == new.get("attempt")
        counted = new.get(measured, 0.0) - old.get(measured, 0.0)
        if not known or new["epoch"] < old["epoch"] or counted < (1 - _MOST_UNMEASURED) * passed:
            stretches.append([])
        elif new["epoch"] > old["epoch"]:
            stretches[-1].append((after, passed))
    joules = epochs = 0.0
    for borders in stretches:
        if len(borders) < 2:
            continue
        (first, before_first), (last, before_last) = borders[0], borders[-1]
        span = last.time - first.time
        if span > 0 and before_first + before_last <= _MOST_UNCERTAIN * span:
            joules += last.values.get(total, 0.0) - first.values.get(total, 0.0)
            epochs += last.values["epoch"] - first.values["epoch"]
    return joules, epochs
