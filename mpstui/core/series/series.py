"""One metric's curve through all attempts of a run.

An attempt that resumes from an older step measures some steps again. The curve then continues from there; what was
measured before is not lost but *superseded*: kept apart, and marked.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import chain, islice
from operator import le
from typing import NamedTuple

from ..model.snapshot import Piece, SeriesView
from .pyramid import CAPACITY, Columns, Pyramid, join_pairs, no_columns

RECENT = 512
"""Newest points kept as they came."""
MOST_SEGMENTS = 12
AXES = {"step": 0, "epoch": 1, "time": 2}
SMOOTHING = 0.8
_NOTHING = no_columns()
_EVALUATION = ("val", "eval", "test", "valid", "dev")


class Points(NamedTuple):
    """Points of one metric in their order of arrival, as columns; NaN for what is unknown or not finite."""

    steps: Sequence[float]
    epochs: Sequence[float]
    times: Sequence[float]
    values: Sequence[float]


class Segment:
    """What one attempt measured without going back."""

    def __init__(self, attempt: int, capacity: int) -> None:
        self.attempt = attempt
        self.first: tuple[float, float, float] | None = None
        self.last_step = -math.inf
        self._capacity = capacity
        self._older = _NOTHING
        self._pyramid = Pyramid(capacity)

    def extend(self, points: Points) -> None:
        """Go on with points whose steps do not fall."""
        if self.first is None:
            self.first = (points.steps[0], points.epochs[0], points.times[0])
        self.last_step = points.steps[-1]
        self._pyramid.extend(*points)

    def columns(self) -> Columns:
        """All of it, as buckets."""
        own = self._pyramid.columns()
        return own if not self._older.step else _joined([self._older, own])

    @property
    def extremes(self) -> tuple[float, float]:
        """The lowest and the highest finite value; infinities the wrong way round where there is none."""
        return self._pyramid.extremes

    def absorb(self, older: Segment) -> None:
        """Take over an older segment's surviving part, as coarse as bounded memory asks for."""
        bound = self.first[0] if self.first else math.inf
        kept, _ = _split(older.columns(), bound)
        self._older = _thinned(_joined([kept, self._older]), self._capacity)
        self.first = older.first


class Series:
    """The history of one metric in bounded memory, whatever its length."""

    def __init__(self, name: str, capacity: int = CAPACITY) -> None:
        self.name = name
        self.count = 0
        self.first: float | None = None
        self.last: float | None = None
        self.last_step = math.nan
        self._capacity = capacity
        self._segments: list[Segment] = []
        self._recent: tuple[array[float] | list[float], ...] = tuple(array("d") for _ in Points._fields)
        self._forgotten = (math.inf, -math.inf)
        """Extremes of the segments that are held no more."""

    @property
    def minimum(self) -> float | None:
        """The lowest finite value of all; None: there was none."""
        low = min(self._forgotten[0], *(segment.extremes[0] for segment in self._segments), math.inf)
        return low if low < math.inf else None

    @property
    def maximum(self) -> float | None:
        """The highest finite value of all; None: there was none."""
        high = max(self._forgotten[1], *(segment.extremes[1] for segment in self._segments), -math.inf)
        return high if high > -math.inf else None

    def extend(self, attempt: int, points: Points, *, rising: bool = False) -> None:
        """Add points of one attempt; a step lower than the one before begins a new segment.

        Args:
            rising: the caller knows that no step is lower than the one before it.
        """
        start = 0
        for cut in [*(() if rising else _falls(points.steps)), len(points.steps)]:
            if cut > start:
                self._extend_segment(attempt, Points(*(column[start:cut] for column in points)))
            start = cut
        self._note(points)

    def view(
        self,
        *,
        axis: str = "step",
        most: int = CAPACITY,
        smoothing: float = SMOOTHING,
        recent: bool = False,
        complete: bool = True,
        read_share: float = 1.0,
    ) -> SeriesView:
        """The curve, thinned to at most ``most`` columns (the cost does not depend on the length of the run).

        Args:
            axis: what x is: ``step``, ``epoch`` or ``time`` (Unix seconds).
            smoothing: weight of the past in the moving average, per column, 0 to below 1; less for a short curve, whose
                average would lag behind all of it.
            recent: the newest points one by one, in place of the whole history.
            complete: False says that not all points have been added yet.
            read_share: how much has been read then, for whoever waits.
        """
        columns, old = (self._recent_columns(), []) if recent else self._surviving()
        columns = _thinned(columns, max(2, most))
        x = _axis(columns, axis)
        mean = _means(columns)
        return SeriesView(
            name=self.name,
            axis=axis,
            x=x,
            low=columns.low,
            high=columns.high,
            mean=mean,
            smooth=debiased_average(mean, min(smoothing, _most_smoothing(len(mean)))),
            count=self.count,
            first=self.first,
            last=self.last,
            minimum=self.minimum,
            maximum=self.maximum,
            attempt_marks=self._marks(axis),
            evaluation=is_evaluation(self.name),
            gaps=[at for at, bad in zip(x, columns.bad, strict=True) if bad],
            superseded=[_piece(part, axis, most) for part in old],
            complete=complete,
            read_share=read_share,
            times=columns.time,
        )

    def _extend_segment(self, attempt: int, points: Points) -> None:
        current = self._segments[-1] if self._segments else None
        if current is None or current.attempt != attempt or points.steps[0] < current.last_step:
            current = Segment(attempt, self._capacity)
            self._segments.append(current)
            if len(self._segments) > MOST_SEGMENTS:
                oldest = self._segments.pop(0)
                low, high = oldest.extremes
                self._forgotten = min(self._forgotten[0], low), max(self._forgotten[1], high)
                self._segments[0].absorb(oldest)
        current.extend(points)

    def _surviving(self) -> tuple[Columns, list[Columns]]:
        """The curve as it stands, and the parts that later attempts measured again."""
        bound, kept, old = math.inf, [], []
        for segment in reversed(self._segments):
            alive, superseded = _split(segment.columns(), bound)
            kept.append(alive)
            if superseded.step:
                old.append(superseded)
            if segment.first is not None and segment.first[0] < bound:
                bound = segment.first[0]
        return (kept[0] if len(kept) == 1 else _joined(kept[::-1])), old[::-1]

    def _recent_columns(self) -> Columns:
        newest = _newest(self._recent)
        pyramid = Pyramid(max(2, len(newest[0])) + 1)
        if newest[0]:
            steps, epochs, times, values = newest
            pyramid.extend(steps, epochs, times, values)
        return pyramid.columns()

    def _marks(self, axis: str) -> list[float]:
        return [s.first[AXES[axis]] for s in self._segments[1:] if s.first is not None]

    def _note(self, points: Points) -> None:
        values = points.values
        self.count += len(values)
        self._keep_recent(points)
        if points.steps:
            self.last_step = points.steps[-1]
        if self.first is None:
            self.first = next(filter(math.isfinite, values), None)
        if values:
            self.last = values[-1] if math.isfinite(values[-1]) else None

    def _keep_recent(self, points: Points) -> None:
        if len(points.values) >= RECENT:
            # As they come: to make arrays of them a thousand times over is a tenth of the time that reading takes.
            self._recent = tuple(list(column[-RECENT:]) for column in points)
            return
        for kept, column in zip(self._recent, points, strict=True):
            kept.extend(column)
        if len(self._recent[0]) > 2 * RECENT:
            self._recent = _newest(self._recent)


def _newest(columns: Sequence[Sequence[float]]) -> tuple[array[float], ...]:
    return tuple(array("d", column[-RECENT:]) for column in columns)


def is_evaluation(name: str) -> bool:
    """Whether a metric's name says that it was measured on validation data."""
    parts = name.lower().replace("/", "_").replace(".", "_").replace("-", "_").split("_")
    return any(part in _EVALUATION for part in parts)


def _most_smoothing(columns: int) -> float:
    """The weight of the past at which the average looks back over a twelfth of the curve."""
    return max(0.0, 1 - 12 / columns) if columns else 0.0


def debiased_average(values: Sequence[float], smoothing: float) -> array[float]:
    """Exponential moving average without start-up bias (Kingma and Ba 2014, section 3); NaN where there is a gap."""
    average, weight, out = 0.0, 0.0, array("d")
    rest = 1.0 - smoothing
    for value in values:
        if value != value:
            out.append(math.nan)
            continue
        average = average * smoothing + value * rest
        weight = weight * smoothing + rest
        out.append(average / weight)
    return out


def _falls(steps: Sequence[float]) -> list[int]:
    """Positions at which the step is lower than the one before."""
    if all(map(le, steps, islice(steps, 1, None))):
        return []
    return [i for i in range(1, len(steps)) if steps[i] < steps[i - 1]]


def _split(columns: Columns, bound: float) -> tuple[Columns, Columns]:
    """Buckets before ``bound`` and from it on. Steps rise within a segment."""
    if bound == math.inf:
        return columns, _NOTHING
    cut = next((i for i, step in enumerate(columns.step) if step >= bound), len(columns.step))
    return Columns(*(c[:cut] for c in columns)), Columns(*(c[cut:] for c in columns))


def _joined(parts: Sequence[Columns]) -> Columns:
    return Columns(*(array("d", chain.from_iterable(columns)) for columns in zip(*parts, strict=True)))


def _thinned(columns: Columns, most: int) -> Columns:
    """At most ``most`` columns; their borders move only when their number halves, so that a chart does not flicker."""
    while len(columns.step) > most:
        columns = join_pairs(columns)
    return columns


def _means(columns: Columns) -> array[float]:
    places = zip(columns.total, columns.good, columns.bad, strict=True)
    return array("d", [total / good if good and good >= bad else math.nan for total, good, bad in places])


def _axis(columns: Columns, axis: str) -> array[float]:
    return columns[AXES[axis]]


def _piece(columns: Columns, axis: str, most: int) -> Piece:
    thin = _thinned(columns, max(2, most))
    return Piece(x=_axis(thin, axis), low=thin.low, high=thin.high, mean=_means(thin))
