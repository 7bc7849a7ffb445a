"""The whole history of a curve in bounded memory: a fixed number of buckets that widen as it grows.

Each bucket keeps the minimum, maximum, sum and count of its finite points and the count of the others, so a spike or a
NaN survives among ten million points. When all buckets are full, neighbours are merged and the width doubles. Points
arrive as columns because slices are reduced in C, single points are not; the functions at the end turn records into
such columns.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import chain, groupby, islice
from operator import add, sub
from typing import Any, NamedTuple

CAPACITY = 2048
NAN = math.nan
_CALM_SHARE = 0.15
"""A curve that turns at a smaller share of its points is smooth; pure noise turns at two thirds of them."""
Sums = tuple[float, float, float, float, float]
"""Low, high, total, good and bad of some points; low and high are NaN if none is finite."""
_EMPTY: Sums = (NAN, NAN, 0.0, 0.0, 0.0)


class Columns(NamedTuple):
    """Buckets as parallel columns. ``step``, ``epoch``, ``time`` and ``last`` describe the last point of a bucket."""

    step: array[float]
    epoch: array[float]
    time: array[float]
    last: array[float]
    """The value of that point, as measured."""
    low: array[float]
    high: array[float]
    total: array[float]
    good: array[float]
    """Number of finite points in the bucket."""
    bad: array[float]
    """Number of NaN and infinite points in the bucket."""


class Pyramid:
    """At most ``capacity`` min/max buckets, each of the same number of points."""

    def __init__(self, capacity: int = CAPACITY, window: tuple[float, float] | None = None) -> None:
        """``window``: keep only points between these two steps; steps must then not decrease."""
        self._window = window
        self._capacity = max(2, capacity - capacity % 2)
        self._columns = no_columns()
        self._open = 0
        """Number of points in the unfinished bucket."""
        self._place = (NAN, NAN, NAN, NAN)
        """Step, epoch, time and value of the last of those points."""
        self._sum = _EMPTY
        """The sums of those points."""
        self.width = 1
        """Number of points in a full bucket."""
        self._extremes = (math.inf, -math.inf)
        """Minimum and maximum of the full buckets."""

    @property
    def extremes(self) -> tuple[float, float]:
        """The lowest and highest finite values; ``(inf, -inf)`` if there are none."""
        low, high = self._extremes
        return min(low, self._sum[0]), max(high, self._sum[1])

    def __len__(self) -> int:
        return len(self._columns[0]) + bool(self._open)

    def extend(
        self, steps: Sequence[float], epochs: Sequence[float], times: Sequence[float], values: Sequence[float]
    ) -> None:
        """Add points in order of arrival; unknown values are NaN."""
        if self._window is not None:
            inside = slice(bisect_left(steps, self._window[0]), bisect_right(steps, self._window[1]))
            steps, epochs, times, values = steps[inside], epochs[inside], times[inside], values[inside]
        position, count = self._fill_open(steps, epochs, times, values), len(values)
        while count - position >= self.width:
            if len(self._columns[0]) >= self._capacity:
                self._double()
                continue
            room = self._capacity - len(self._columns[0])
            take = min(room, (count - position) // self.width)
            self._append_buckets(take, position, steps, epochs, times, values)
            position += take * self.width
        if position < count:
            self._wait(steps[-1], epochs[-1], times[-1], values[position:])

    def columns(self) -> Columns:
        """Return copies of all buckets, the unfinished one last."""
        copies = [column[:] for column in self._columns]
        if self._open:
            for column, value in zip(copies, (*self._place, *self._sum), strict=True):
                column.append(value)
        return Columns(*copies)

    def _wait(self, step: float, epoch: float, time: float, values: Sequence[float]) -> None:
        """Put points into the unfinished bucket; ``step``, ``epoch`` and ``time`` are those of the last one."""
        self._open += len(values)
        self._place = step, epoch, time, values[-1]
        held, more = self._sum, reduce_points(values)
        low, high = _lower(held[0], more[0]), _higher(held[1], more[1])
        self._sum = low, high, _plus(held[2], more[2]), held[3] + more[3], held[4] + more[4]

    def _fill_open(
        self, steps: Sequence[float], epochs: Sequence[float], times: Sequence[float], values: Sequence[float]
    ) -> int:
        """Fill up the unfinished bucket; return how many points that took."""
        take = min(self.width - self._open, len(values))
        if not self._open or not take:
            return 0
        self._wait(steps[take - 1], epochs[take - 1], times[take - 1], values[:take])
        if self._open == self.width:
            if len(self._columns[0]) >= self._capacity:
                self._double()  # the bucket is half a bucket of the new width, so it stays open
                return take + self._fill_open(steps[take:], epochs[take:], times[take:], values[take:])
            for column, value in zip(self._columns, (*self._place, *self._sum), strict=True):
                column.append(value)
            self._widen(1)
            self._open, self._sum = 0, _EMPTY
        return take

    def _append_buckets(
        self,
        number: int,
        start: int,
        steps: Sequence[float],
        epochs: Sequence[float],
        times: Sequence[float],
        values: Sequence[float],
    ) -> None:
        width, stop = self.width, start + number * self.width
        ends = slice(start + width - 1, stop, width)
        for column, source in zip(self._columns[:4], (steps, epochs, times, values), strict=True):
            column.extend(source[ends])
        if width == 1:
            self._append_single(values[start:stop])
        else:
            reduced = [reduce_points(values[at : at + width]) for at in range(start, stop, width)]
            for column, made in zip(self._columns[4:], zip(*reduced, strict=True), strict=True):
                column.extend(made)
        self._widen(number)

    def _widen(self, number: int) -> None:
        """Update the extremes from the newest buckets. Comparisons with NaN are false, so NaN changes nothing."""
        least, most = self._extremes
        self._extremes = min(least, *self._columns.low[-number:]), max(most, *self._columns.high[-number:])

    def _append_single(self, values: Sequence[float]) -> None:
        low, high, total, good, bad = self._columns[4:]
        finite = [1.0 if math.isfinite(value) else 0.0 for value in values]
        shown = [value if ok else NAN for value, ok in zip(values, finite, strict=True)]
        low.extend(shown)
        high.extend(shown)
        total.extend(value if ok else 0.0 for value, ok in zip(values, finite, strict=True))
        good.extend(finite)
        bad.extend(1.0 - ok for ok in finite)

    def _double(self) -> None:
        self._columns = join_pairs(Columns(*self._columns))
        self.width *= 2


def no_columns() -> Columns:
    """Return empty columns."""
    return Columns(*(array("d") for _ in Columns._fields))


def reduce_points(values: Sequence[float]) -> Sums:
    """Return the sums of one or more points."""
    total = sum(values)
    if math.isfinite(total):
        return min(values), max(values), total, float(len(values)), 0.0
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return NAN, NAN, 0.0, 0.0, float(len(values))
    # Near the largest float the mean is wrong, but an infinite sum would look as if there were no points.
    total = sum(finite)
    total = total if math.isfinite(total) else max(finite)
    return min(finite), max(finite), total, float(len(finite)), float(len(values) - len(finite))


def join_pairs(columns: Columns) -> Columns:
    """Merge each pair of neighbouring buckets; an odd last one stays as it is."""
    step, epoch, time, last, low, high, total, good, bad = columns
    # NaN and overflow are rare and checked for once: built-in functions merge ten times as fast as our own.
    empty = math.isnan(sum(low))
    summed = _pairwise(add, total)
    return Columns(
        _second(step),
        _second(epoch),
        _second(time),
        _second(last),
        _pairwise(_lower if empty else min, low),
        _pairwise(_higher if empty else max, high),
        summed if math.isfinite(sum(summed)) else _pairwise(_plus, total),
        _pairwise(add, good),
        _pairwise(add, bad),
    )


def _second(column: array[float]) -> array[float]:
    return column[1::2] + column[len(column) - len(column) % 2 :]


def _pairwise(join: Callable[[float, float], float], column: array[float]) -> array[float]:
    return array("d", map(join, column[::2], column[1::2])) + column[len(column) - len(column) % 2 :]


def _lower(one: float, other: float) -> float:
    """Return the lesser of two numbers, ignoring NaN."""
    return one if one <= other or other != other else other


def _higher(one: float, other: float) -> float:
    """Return the greater of two numbers, ignoring NaN."""
    return one if one >= other or other != other else other


def _plus(one: float, other: float) -> float:
    return one + other if math.isfinite(one + other) else max(one, other)


def split(columns: Columns, bound: float) -> tuple[Columns, Columns]:
    """Split into the buckets before step ``bound`` and those from it on. Steps must not decrease."""
    if bound == math.inf:
        return columns, no_columns()
    cut = next((i for i, step in enumerate(columns.step) if step >= bound), len(columns.step))
    return Columns(*(c[:cut] for c in columns)), Columns(*(c[cut:] for c in columns))


def joined(parts: Sequence[Columns]) -> Columns:
    """Concatenate the columns of all parts."""
    return Columns(*(array("d", chain.from_iterable(columns)) for columns in zip(*parts, strict=True)))


def thinned(columns: Columns, most: int) -> Columns:
    """Reduce to at most ``most`` buckets; borders move only when the number halves, so a chart does not flicker."""
    while len(columns.step) > most:
        columns = join_pairs(columns)
    return columns


def means(columns: Columns) -> array[float]:
    """Return the mean of each bucket; NaN where most of its points are not finite."""
    places = zip(columns.total, columns.good, columns.bad, strict=True)
    return array("d", [total / good if good and good >= bad else math.nan for total, good, bad in places])


def averaged(values: Sequence[float], smoothing: float) -> tuple[array[float], float]:
    """Return the moving average of a curve, and the smoothing that was used: at most ``smoothing``.

    The average looks back over at most a thirtieth of the curve, because it lags by that much: otherwise a falling
    training curve could appear above a validation curve that is really higher. A curve that hardly ever turns has no
    noise to average away.
    """
    moves = list(map(sub, islice(values, 1, None), values))
    calm = sum(map(_turns, moves, islice(moves, 1, None))) < _CALM_SHARE * len(moves)
    strength = 0.0 if calm else min(smoothing, max(0.0, 1 - 30 / max(1, len(values))))
    return debiased_average(values, strength), strength


def _turns(move: float, next_move: float) -> bool:
    return move * next_move < 0


def debiased_average(values: Sequence[float], smoothing: float) -> array[float]:
    """Return the exponential moving average, corrected for start-up bias (Kingma and Ba 2014, section 3).

    It is NaN where the curve has a gap.
    """
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


def numbers(raw: Sequence[Any]) -> array[float] | None:
    """Convert to a column of doubles: NaN for None and for non-numbers; None if it holds neither numbers nor None."""
    try:
        return array("d", raw)
    except (TypeError, OverflowError):
        pass
    if not any(value is None or _is_number(value) for value in raw):
        return None
    return array("d", [_double(value) for value in raw])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _double(value: Any) -> float:
    try:
        return float(value) if _is_number(value) else NAN
    except OverflowError:
        return NAN


def stretches(attempts: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Return (attempt, start, stop) of each run of equal values."""
    if attempts.count(attempts[0]) == len(attempts):
        return [(_attempt(attempts[0]), 0, len(attempts))]
    out, start = [], 0
    for value, group in groupby(attempts):
        stop = start + sum(1 for _ in group)
        out.append((_attempt(value), start, stop))
        start = stop
    return out


def _attempt(value: Any) -> int:
    return value if isinstance(value, int) else 0
