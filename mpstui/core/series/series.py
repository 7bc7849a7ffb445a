"""The curves of one run, built from records in their order of arrival; each curve spans all attempts.

An attempt that resumes from an older step measures some steps again. The curve then continues from there; what had
been measured beyond is not lost but *superseded*: kept separately, and marked.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import groupby, islice
from operator import le
from typing import Any, NamedTuple

from ..model.snapshot import Piece, SeriesView
from .metric_words import NOT_METRICS, is_evaluation
from .pyramid import (
    CAPACITY,
    NAN,
    Columns,
    Pyramid,
    averaged,
    joined,
    means,
    no_columns,
    numbers,
    split,
    stretches,
    thinned,
)

MOST_SEGMENTS = 12
AXES = {"step": 0, "sample": 0, "point": 0, "epoch": 1, "time": 2}
SMOOTHING = 0.8
_NOTHING = no_columns()
MOST_SERIES = 6000
"""Further names are dropped: a program that invents a name for each step must not fill the memory."""
FINE_SERIES, COARSE_CAPACITY = 400, 256
"""This many curves get the full resolution of a screen; further ones, which nobody looks at one by one, hold less."""
LONGEST_NAME = 200
"""In characters. No metric that could be shown has a longer name."""
MOST_CACHED = 8


class Points(NamedTuple):
    """Points of one metric in order of arrival, as columns; NaN where unknown or not finite."""

    steps: Sequence[float]
    epochs: Sequence[float]
    times: Sequence[float]
    values: Sequence[float]


class Peak(NamedTuple):
    """A minimum or maximum, and where it was first measured."""

    value: float
    step: float = NAN
    epoch: float = NAN
    time: float = NAN

    @classmethod
    def of(cls, points: Points, index: int) -> Peak:
        return cls(points.values[index], points.steps[index], points.epochs[index], points.times[index])


class Segment:
    """A stretch of one attempt in which the step never decreases."""

    def __init__(self, attempt: int, capacity: int, window: tuple[float, float] | None = None) -> None:
        self.attempt = attempt
        self.first: tuple[float, float, float] | None = None
        self.last_step = -math.inf
        self.lowest = Peak(math.inf)
        self.highest = Peak(-math.inf)
        self._capacity = capacity
        self._older = _NOTHING
        self.pyramid = Pyramid(capacity, window)

    def extend(self, points: Points) -> None:
        """Add points whose steps do not decrease."""
        if self.first is None:
            self.first = (points.steps[0], points.epochs[0], points.times[0])
        self.last_step = points.steps[-1]
        self.pyramid.extend(*points)
        low, high = self.pyramid.extremes
        if low < self.lowest.value:
            self.lowest = Peak.of(points, points.values.index(low))
        if high > self.highest.value:
            self.highest = Peak.of(points, points.values.index(high))

    def columns(self) -> Columns:
        """Return the whole segment as buckets."""
        own = self.pyramid.columns()
        return own if not self._older.step else joined([self._older, own])

    def absorb(self, older: Segment) -> None:
        """Take over the surviving part of an older segment, thinned to fit the capacity."""
        bound = self.first[0] if self.first else math.inf
        kept, _ = split(older.columns(), bound)
        self._older = thinned(joined([kept, self._older]), self._capacity)
        self.first = older.first


class Series:
    """The history of one metric, of any length, in bounded memory."""

    def __init__(self, name: str, capacity: int = CAPACITY, window: tuple[float, float] | None = None) -> None:
        self.name, self._is_evaluation = name, is_evaluation(name)
        self._window = window
        self.count = 0
        self.first: float | None = None
        self.last: float | None = None
        self._capacity = capacity
        self._segments: list[Segment] = []
        self._forgotten = (Peak(math.inf), Peak(-math.inf))
        """Minimum and maximum of the segments that are no longer held."""

    @property
    def _peaks(self) -> tuple[Peak, Peak]:
        """The minimum and maximum of all finite values, each at its first occurrence; infinite if there are none."""
        low, high = self._forgotten
        return (
            min((low, *(segment.lowest for segment in self._segments)), key=lambda peak: peak.value),
            max((high, *(segment.highest for segment in self._segments)), key=lambda peak: peak.value),
        )

    @property
    def minimum(self) -> float | None:
        """The lowest finite value; None if there is none."""
        return _finite(self._peaks[0].value)

    @property
    def maximum(self) -> float | None:
        """The highest finite value; None if there is none."""
        return _finite(self._peaks[1].value)

    def extend(self, attempt: int, points: Points, *, rising: bool = False) -> None:
        """Add points of one attempt; a step lower than the previous one begins a new segment.

        Args:
            rising: the caller guarantees that no step is lower than the previous one.
        """
        start, steps = 0, points.steps
        never_falls = rising or all(map(le, steps, islice(steps, 1, None)))
        falls = [] if never_falls else [i for i in range(1, len(steps)) if steps[i] < steps[i - 1]]
        for cut in [*falls, len(steps)]:
            if cut > start:
                self._extend_segment(attempt, Points(*(column[start:cut] for column in points)))
            start = cut
        values = points.values
        self.count += len(values)
        if values:
            self.last = values[-1] if math.isfinite(values[-1]) else None

    def view(
        self,
        *,
        axis: str = "step",
        most: int = CAPACITY,
        smoothing: float = SMOOTHING,
        complete: bool = True,
        read_share: float = 1.0,
        runs_per_attempt: int = 1,
    ) -> SeriesView:
        """Return the curve, thinned to at most ``most`` columns (the cost does not depend on the length of the run).

        Args:
            axis: what x is, a key of ``AXES``: ``sample`` if the program counts samples, ``point`` if nothing.
            smoothing: weight of the past in the moving average, per column, in [0, 1); reduced for a short curve.
            complete: False if not all points have been added yet; ``read_share`` then says how much has been read.
        """
        whole, old = self._surviving()
        columns = thinned(whole, max(2, most))
        smooth, smoothing = averaged(mean := means(columns), smoothing)
        lowest, highest = self._surviving_peaks(whole) if old else self._peaks
        return SeriesView(
            name=self.name,
            axis=axis,
            x=columns[AXES[axis]],
            low=columns.low,
            high=columns.high,
            mean=mean,
            smooth=smooth,
            smoothing=smoothing,
            count=self.count,
            first=self.first,
            last=self.last,
            minimum=_finite(lowest.value),
            maximum=_finite(highest.value),
            minimum_at=_finite(lowest[1 + AXES[axis]]),
            maximum_at=_finite(highest[1 + AXES[axis]]),
            attempt_marks=[first[AXES[axis]] for _, first in self._later],
            mark_attempts=[attempt // runs_per_attempt for attempt, _ in self._later],
            evaluation=self._is_evaluation,
            gaps=[at for at, bad in zip(columns[AXES[axis]], columns.bad, strict=True) if bad],
            superseded=[_piece(part, axis, most) for part in old],
            complete=complete,
            read_share=read_share,
            times=columns.time,
            epochs=columns.epoch,
            values=columns.last,
            points=columns.good,
            begin=self._segments[0].first[AXES[axis]] if self._segments and self._segments[0].first else NAN,
        )

    @property
    def _later(self) -> list[tuple[int, tuple[float, float, float]]]:
        """The attempt and the starting point of each segment after the first."""
        return [(segment.attempt, segment.first) for segment in self._segments[1:] if segment.first is not None]

    def extremes(self) -> tuple[float | None, float | None]:
        """Return the lowest and highest finite values that no later attempt has superseded."""
        whole, old = self._surviving() if len(self._segments) > 1 else (_NOTHING, [])
        lowest, highest = self._surviving_peaks(whole) if old else self._peaks
        return _finite(lowest.value), _finite(highest.value)

    def _extend_segment(self, attempt: int, points: Points) -> None:
        current = self._segments[-1] if self._segments else None
        if current is None or current.attempt != attempt or points.steps[0] < current.last_step:
            if all(segment.first is None or points.steps[0] <= segment.first[0] for segment in self._segments):
                self.first = None  # everything measured before is superseded
            current = Segment(attempt, self._capacity, self._window)
            self._segments.append(current)
            if len(self._segments) > MOST_SEGMENTS:
                oldest = self._segments.pop(0)
                low, high = self._forgotten
                self._forgotten = min(low, oldest.lowest), max(high, oldest.highest)
                self._segments[0].absorb(oldest)
        current.extend(points)
        if self.first is None:
            self.first = next(filter(math.isfinite, points.values), None)

    def _surviving_peaks(self, whole: Columns) -> tuple[Peak, Peak]:
        """Return the minimum and maximum that are not superseded; inside a bucket their exact place is unknown."""
        bound, alive, found = math.inf, list[Peak](), list[Peak]()
        for segment in reversed(self._segments):
            alive += [peak for peak in (segment.lowest, segment.highest) if peak.step < bound]
            bound = min(bound, segment.first[0] if segment.first is not None else math.inf)
        for wanted, column, none in ((min, whole.low, math.inf), (max, whole.high, -math.inf)):
            value = wanted(filter(math.isfinite, column), default=none)
            place = column.index(value) if math.isfinite(value) else None
            own = Peak(value)
            if place is not None and whole.good[place] + whole.bad[place] == 1:
                own = Peak(value, whole.step[place], whole.epoch[place], whole.time[place])
            found.append(next((peak for peak in reversed(alive) if peak.value == value), own))
        return found[0], found[1]

    def _surviving(self) -> tuple[Columns, list[Columns]]:
        """Return the current curve, and the parts that later attempts have superseded."""
        bound, kept, old = math.inf, [], []
        for segment in reversed(self._segments):
            alive, superseded = split(segment.columns(), bound)
            kept.append(alive)
            if superseded.step:
                old.append(superseded)
            if segment.first is not None and segment.first[0] < bound:
                bound = segment.first[0]
        return (kept[0] if len(kept) == 1 else joined(kept[::-1])), old[::-1]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _piece(columns: Columns, axis: str, most: int) -> Piece:
    thin = thinned(columns, max(2, most))
    return Piece(x=thin[AXES[axis]], low=thin.low, high=thin.high, mean=means(thin))


class SeriesStore:
    """Curves by metric name.

    A point without a step is placed at the last known step, so that a validation loss reported once per epoch shares
    the axis of the training loss. If no step is ever given, the axis is the epoch, or else the index of the point.
    """

    def __init__(
        self, *, capacity: int = CAPACITY, only: Container[str] | None = None, window: tuple[float, float] | None = None
    ) -> None:
        """``window``: keep only points between these two steps."""
        self._window = window
        self._capacity = capacity
        self._only = only
        self._series: dict[str, Series] = {}
        self._step = NAN
        self._axes: dict[str, str] = {}
        self._views: dict[object, tuple[int, dict[str, SeriesView]]] = {}
        self._extremes: tuple[int, Mapping[str, tuple[float | None, float | None]]] = (0, {})
        self.is_full = False
        """True if metrics were dropped because there were too many."""
        self.counted = "step"
        """What the steps of the records count: a key of ``AXES``."""
        self.count = 0
        """Number of records added."""

    def __len__(self) -> int:
        """Number of metrics."""
        return len(self._series)

    def emptied(self) -> SeriesStore:
        """Return a store like this one, but without curves."""
        return SeriesStore(capacity=self._capacity, only=self._only)

    def add(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Add records; keys that are not metrics and values that are not numbers are skipped."""
        for keys, group in groupby(records, key=tuple):
            self._add_uniform(keys, list(group))
        self.count += len(records)

    def add_columns(
        self,
        attempt: int,
        columns: Mapping[str, Sequence[float]],
        *,
        steps: Sequence[float] | None,
        epochs: Sequence[float],
        times: Sequence[float],
    ) -> None:
        """Add many points at once: numbers only, NaN where unknown.

        Args:
            steps: never decreasing; None if unknown.
        """
        count = len(epochs)
        steps = array("d", [self._step]) * count if steps is None else steps
        self._step = steps[-1]
        place = Points(steps, epochs, times, ())
        for name, values in columns.items():
            if self._wanted(name):
                self._add_values(name, attempt, place, values, rising=True)
        self.count += count

    def views(self, names: Iterable[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Return several curves (by default all), see :meth:`Series.view`; cached until a record is added."""
        key = (None if names is None else tuple(names), *sorted(options.items()))
        made_at, views = self._views.get(key, (-1, {}))
        if made_at != self.count:
            wanted = self._series if names is None else [name for name in names if name in self._series]
            views = {n: self._series[n].view(**{"axis": self._axes.get(n, self.counted), **options}) for n in wanted}
            if len(self._views) >= MOST_CACHED:
                self._views.clear()
            self._views[key] = (self.count, views)
        return dict(views)

    def extremes(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return :meth:`Series.extremes` of every metric; the same object until a record is added."""
        if self._extremes[0] != self.count:
            self._extremes = self.count, {name: series.extremes() for name, series in self._series.items()}
        return self._extremes[1]

    def _add_uniform(self, keys: tuple[str, ...], records: list[Mapping[str, Any]]) -> None:
        """Add records that have the same keys in the same order: they become columns in one go."""
        columns = dict(zip(keys, zip(*(record.values() for record in records), strict=True), strict=True))
        names = [key for key in keys if key not in NOT_METRICS and self._wanted(key)]
        steps, epochs, times = self._positions(columns, len(records))  # needed even without metrics: sets the last step
        attempts = columns.get("attempt") or (0,) * len(records)
        for attempt, start, stop in stretches(attempts):
            place = Points(steps[start:stop], epochs[start:stop], times[start:stop], ())
            for name in names:
                values = numbers(columns[name][start:stop])
                if values is not None:
                    self._add_values(name, attempt, place, values)

    def _add_values(
        self, name: str, attempt: int, place: Points, values: Sequence[float], *, rising: bool = False
    ) -> None:
        found = self._series.get(name)
        if found is None:
            if len(self._series) >= MOST_SERIES:
                self.is_full = True
                return
            capacity = self._capacity if len(self._series) < FINE_SERIES else min(self._capacity, COARSE_CAPACITY)
            found = self._series[name] = Series(name, capacity, self._window)
        steps = place.steps
        if steps[-1] != steps[-1]:
            if place.epochs[-1] == place.epochs[-1]:
                self._axes[name], steps = "epoch", place.epochs
            else:
                self._axes[name] = "point"
                steps = array("d", range(found.count + 1, found.count + 1 + len(steps)))
        elif self._axes.get(name) == "point":  # the earlier points came before anything was counted
            del self._axes[name]
        found.extend(attempt, Points(steps, place.epochs, place.times, values), rising=rising)

    def _positions(self, columns: Mapping[str, Sequence[Any]], count: int) -> tuple[Sequence[float], ...]:
        unknown = array("d", [NAN]) * count
        epochs, times = (numbers(columns[key]) if key in columns else unknown for key in ("epoch", "time"))
        steps = numbers(columns["step"]) if "step" in columns else None
        if steps is None:
            steps = array("d", [self._step]) * count
        elif math.isnan(sum(steps)):
            newest = self._step
            steps = array("d", [newest := step if step == step else newest for step in steps])
        self._step = steps[-1]
        return steps, unknown if epochs is None else epochs, unknown if times is None else times

    def _wanted(self, name: str) -> bool:
        return name in self._only if self._only is not None else len(name) <= LONGEST_NAME
