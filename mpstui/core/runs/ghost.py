"""The ghost of a live run: the best comparable earlier run, and how the live one does against it. No UI code.

Comparable runs have finished, began earlier, and used the same program on the same data. If both know the length of an
epoch, their curves are aligned by epochs, otherwise by steps, provided their batch settings are the same. Validation is
compared only with validation. Whatever cannot be said honestly is left out of the sentence.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ...wire import liveness
from ...wire.rundir import RunDir
from ..follow import Budget
from ..model.snapshot import RunSnapshot, SeriesView, State
from ..present import moment_of_day, number
from ..series.direction import Better, best, better
from ..series.metric_words import is_evaluation
from .comparison import compared_values, curve_of, metrics_of, value_at
from .local_machine import LocalMachine
from .reader import RunReader
from .run_settings import settings_of

MOST_CANDIDATES = 20
"""How many of the newest runs are considered."""
_FEWEST_STEPS, _FEWEST_VALIDATIONS = 16, 2
"""A curve with fewer columns than this cannot be compared yet (training, validation)."""
_LEVEL = 0.01
"""Values that differ by a smaller share than this are level."""
_PACE_FROM, _STEADY = 0.2, 0.15
"""The final value is predicted from this share of the best run's length on, if the relative distance has varied by no
more than the second value."""
_SAME_LENGTH = 0.02
_DATA_WORDS = ("data", "corpus", "task", "subset")
_BATCH_WORDS = ("batch", "accumul")


class Standing(NamedTuple):
    """How a live curve compares with the best run's at its newest step."""

    step: float
    behind: float
    """How far it is behind, as a share of the best run's value at that step; negative if ahead."""
    at_this_pace: float | None = None
    """The value that it will reach if it keeps its distance."""
    best: float | None = None
    """The best value of the best run, if ``at_this_pace`` is predicted."""
    evaluation: bool = False

    def words(self) -> tuple[str, ...]:
        """Return the same in a few words, the most important first."""
        share = f"{abs(self.behind) * 100:.0f} % {'behind' if self.behind > 0 else 'ahead of'}"
        share = share if abs(self.behind) >= _LEVEL else "level with"
        told = f"{'val ' if self.evaluation else ''}{share} best at this step"
        if self.at_this_pace is None:
            return (told,)
        return told, f"at this pace {number(self.at_this_pace, digits=3)}, best {number(self.best, digits=3)}"


@dataclass(frozen=True, eq=False)
class Ghost:
    """The best earlier run, its curves on the axis of the live one."""

    live: str
    run: str
    name: str
    series: Mapping[str, SeriesView]
    """Its curves, under the names that the live run uses."""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What to say about each metric, most important first, to be joined into one sentence: how far the live run is
    ahead or behind at this step, what value it will reach, when it ends."""
    standings: Mapping[str, Standing] = field(default_factory=dict)
    """The same comparison by metric, in fields instead of words."""

    def as_json(self) -> dict[str, Any]:
        """Return the run and, by metric, how the live one stands against it."""
        told = ("step", "behind", "at_this_pace", "best")
        metrics = {name: {key: getattr(one, key) for key in told} for name, one in self.standings.items()}
        return {"run": self.run, "name": self.name, "metrics": metrics}


class GhostFinder:
    """Reads the candidates for the best run one after another, and keeps only the best of them in memory."""

    def __init__(self) -> None:
        self._machine = LocalMachine(table=liveness.system_process_table(), boot_id=liveness.boot_id())
        self._bests: dict[str, Mapping[str, float]] = {}
        """For each run that has been read, its best value of each metric."""
        self._kept: RunSnapshot | None = None
        self._reader: tuple[str, RunReader] | None = None
        self.pending = False
        """Whether there is more to read."""

    def look(self, live: RunSnapshot, others: Sequence[RunSnapshot], seconds: float) -> Ghost | None:
        """Read on for up to ``seconds``; return the best run once all have been read, until then None."""
        candidates = comparable(live, others)
        metric = _ranking(live)
        self.pending = False
        if metric is None or not candidates:
            return None
        unread = next((one for one in candidates if one.run not in self._bests), None)
        if unread is None:
            values = {one.run: self._bests[one.run].get(metric) for one in candidates}
            known = {run: value for run, value in values.items() if value is not None}
            if not known:
                return None
            winner = (max if better(metric) is Better.HIGHER else min)(known, key=lambda run: known[run])
            if self._kept is not None and self._kept.run == winner:
                return race(live, self._kept)
            unread = next(one for one in candidates if one.run == winner)
        self.pending = True
        self._read(unread.run, unread.dir, metric, seconds)
        return None

    def find(self, live: RunSnapshot, others: Sequence[RunSnapshot], seconds: float) -> Ghost | None:
        """Read for about ``seconds`` at most; return None if the best run is not known by then."""
        end = time.monotonic() + seconds
        while (found := self.look(live, others, 0.1)) is None and self.pending and time.monotonic() < end:
            pass
        return found

    def _read(self, run: str, folder: Path, metric: str, seconds: float) -> None:
        if self._reader is None or self._reader[0] != run:
            self._reader = run, RunReader(RunDir(folder), self._machine)
        reader, budget = self._reader[1], Budget(seconds)
        found = reader.refresh(full=True, budget=budget)
        while reader.pending_bytes and not budget.spent:
            reader.read_on(budget)
        if reader.pending_bytes:
            return
        found = reader.refresh(full=True, budget=budget)
        self._reader = None
        curves = ((name, curve_of(found, name)) for name in metrics_of([found]))
        values = ((name, best(view)) for name, view in curves if view is not None)
        bests = {name: value for name, value in values if value is not None}
        known = curve_of(found, metric)
        if known is not None and known.name in bests:
            bests[metric] = bests[known.name]
        before = self._bests.get(self._kept.run, {}).get(metric) if self._kept is not None else None
        self._bests[run], value = bests, bests.get(metric)
        ahead = value is not None and (before is None or (value > before) == (better(metric) is Better.HIGHER))
        if ahead or (self._kept is not None and self._kept.run == run):
            self._kept = found


def comparable(live: RunSnapshot, others: Sequence[RunSnapshot]) -> list[RunSnapshot]:
    """Return the newest finished runs that began before this one, with the same program on the same data."""
    if live.started is None or live.profile is None or not live.state.active:
        return []
    mine = _telling(live, _DATA_WORDS)
    found = [
        one
        for one in others
        if one.state is State.FINISHED
        and one.profile == live.profile
        and one.run != live.run
        and one.started is not None
        and one.started < live.started
        and one.numbers.data == live.numbers.data
        and _telling(one, _DATA_WORDS) == mine
        and _stretch(live, one) is not None
    ]
    return sorted(found, key=lambda one: one.started or 0.0, reverse=True)[:MOST_CANDIDATES]


def _telling(snapshot: RunSnapshot, words: Sequence[str]) -> dict[str, str]:
    """Return the settings whose names contain one of these words."""
    return {name: value for name, value in settings_of(snapshot).items() if any(word in name.lower() for word in words)}


def _stretch(live: RunSnapshot, other: RunSnapshot) -> float | None:
    """Return how many steps of the live run correspond to one step of the other; None if unknown."""
    lengths = live.numbers.epoch_steps, other.numbers.epoch_steps
    if lengths[0] and lengths[1]:
        return lengths[0] / lengths[1]
    return 1.0 if _telling(live, _BATCH_WORDS) == _telling(other, _BATCH_WORDS) else None


def _ranking(live: RunSnapshot) -> str | None:
    """Return the metric that decides which run is best: a validation metric if there is one, a loss before others."""
    known = [name for name in metrics_of([live]) if better(name) is not None]
    return min(known, key=lambda name: (not is_evaluation(name), better(name) is Better.HIGHER), default=None)


def race(live: RunSnapshot, other: RunSnapshot) -> Ghost:
    """Return the other run's curves on the axis of the live one, and how the live one stands against it."""
    stretch = _stretch(live, other) or 1.0
    series, words, standings = {}, {}, {}
    ends, planned = ("", None) if live.numbers.done else (_end(live), live.numbers.steps)
    for name, mine in live.series.items():
        view = curve_of(other, name)
        if view is None or view.axis != mine.axis or view.evaluation != mine.evaluation:
            continue
        if view.axis == "step" and stretch != 1.0:
            view = replace(view, x=[x * stretch for x in view.x])
        series[name] = view
        told = standing(mine, view, planned)
        if told is not None:
            standings[name] = told
            words[name] = (*told.words(), f"ends about {ends}") if ends else told.words()
    return Ghost(live.run, other.run, other.name, series, words, standings)


def standing(mine: SeriesView, ghost: SeriesView, planned: float | None = None) -> Standing | None:
    """Return how a curve compares with the best run's at its newest step and where it will end; None if unknown.

    Args:
        planned: the last step that the live run will reach, if known.
    """
    way = better(mine.name)
    fewest = _FEWEST_VALIDATIONS if mine.evaluation else _FEWEST_STEPS
    if way is None or not mine.complete or not ghost.complete or len(mine.x) < fewest:
        return None
    x, now = mine.x[-1], compared_values(mine)[-1]
    best_now = value_at(ghost, x)
    if best_now is None or not math.isfinite(best_now) or not math.isfinite(now) or abs(best_now) < 1e-12:
        return None
    behind = (now - best_now) / abs(best_now) * (1 if way is Better.LOWER else -1)
    told, best_value = Standing(x, behind, evaluation=mine.evaluation), best(ghost)
    foretold = _foretold(mine, ghost, x) if planned and abs(planned - ghost.x[-1]) <= _SAME_LENGTH * planned else None
    if foretold is None or best_value is None:
        return told
    end = best_value + foretold * abs(best_value)
    if way is Better.HIGHER and best_value <= 1 < end:  # a share cannot exceed the whole
        return told
    return told._replace(at_this_pace=end, best=best_value)


def _foretold(mine: SeriesView, ghost: SeriesView, x: float) -> float | None:
    """Return the share by which a curve will miss the best value if it keeps its present distance."""
    if x < _PACE_FROM * ghost.x[-1]:
        return None
    shares = []
    for place in range(1, 9):
        at = x * (0.5 + place / 16)
        here, there = value_at(mine, at), value_at(ghost, at)
        if here is None or there is None or not (math.isfinite(here) and math.isfinite(there)) or abs(there) < 1e-12:
            return None
        shares.append((here - there) / abs(there))
    return median(shares[4:]) if max(shares) - min(shares) <= _STEADY else None


def _end(live: RunSnapshot) -> str:
    """Return the time of day at which the run will end, rounded up to 5 minutes if far off; empty if unknown."""
    left = live.numbers.eta_seconds
    if left is None or not math.isfinite(left) or live.seen <= 0:
        return ""
    step = 300 if left > 1800 else 60
    end = math.ceil((live.seen + left) / step) * step
    return time.strftime("%H:%M", time.localtime(end)) if left < 43_200 else moment_of_day(end, 0.0)
