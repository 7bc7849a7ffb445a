"""All curves of one run, fed with the records of ``metrics.jsonl`` in their order of arrival."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from ..model.snapshot import SeriesView
from .pyramid import CAPACITY
from .series import Points, Series

NAN = math.nan
MOST_SERIES = 400
"""Names beyond this are not kept: a program that makes up a name a step must not fill the memory."""
MOST_CACHED = 8
NOT_METRICS = frozenset(
    {
        "time",
        "attempt",
        "epoch",
        "step",
        "epochs",
        "steps",
        "epoch_step",
        "epoch_steps",
        "first_epoch",
        "nonfinite",
        "rank",
        "schema",
    }
)


class SeriesStore:
    """Curves by metric name.

    A point without a step lies at the newest step known before it, so that a validation loss reported once an epoch
    shares the axis of the training loss; where no step is ever told, the epoch is the axis, else the point's number.
    """

    def __init__(self, *, capacity: int = CAPACITY, only: frozenset[str] | None = None) -> None:
        self._capacity = capacity
        self._only = only
        self._series: dict[str, Series] = {}
        self._step = NAN
        self._axes: dict[str, str] = {}
        self._views: dict[object, tuple[int, dict[str, SeriesView]]] = {}
        self.count = 0
        """Records taken in."""
        self.refused = 0
        """Names that came after ``MOST_SERIES`` others."""

    def __len__(self) -> int:
        return len(self._series)

    @property
    def names(self) -> list[str]:
        """Metric names in their order of appearance."""
        return list(self._series)

    def get(self, name: str) -> Series | None:
        """One metric's curve."""
        return self._series.get(name)

    def add(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Take in records; keys that are no metrics and values that are no numbers are passed over."""
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
        """Take in many points at once: numbers only, NaN for what is unknown.

        Args:
            steps: each at least as high as the one before; None where nobody told them.
        """
        count = len(epochs)
        steps = array("d", [self._step]) * count if steps is None else steps
        self._step = steps[-1]
        place = Points(steps, epochs, times, ())
        for name, values in columns.items():
            if self._wanted(name):
                self._add_values(name, attempt, place, values, rising=True)
        self.count += count

    def view(self, name: str, **options: Any) -> SeriesView | None:
        """One curve for the screen; see :meth:`Series.view`."""
        found = self._series.get(name)
        if found is None:
            return None
        if "axis" not in options and name in self._axes:
            options["axis"] = self._axes[name]
        return found.view(**options)

    def views(self, names: Iterable[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Several curves (all by default); the very same objects while no record was added."""
        key = (None if names is None else tuple(names), *sorted(options.items()))
        made_at, views = self._views.get(key, (-1, {}))
        if made_at != self.count:
            wanted = self._series if names is None else [name for name in names if name in self._series]
            views = {name: view for name in wanted if (view := self.view(name, **options)) is not None}
            if len(self._views) >= MOST_CACHED:
                self._views.clear()
            self._views[key] = (self.count, views)
        return dict(views)

    def _add_uniform(self, keys: tuple[str, ...], records: list[Mapping[str, Any]]) -> None:
        """Records with the same keys in the same order: turned into columns at once."""
        columns = dict(zip(keys, zip(*(record.values() for record in records), strict=True), strict=True))
        names = [key for key in keys if key not in NOT_METRICS and self._wanted(key)]
        if not names:
            self._follow(columns)
            return
        steps, epochs, times = self._positions(columns, len(records))
        attempts = columns.get("attempt") or (0,) * len(records)
        for attempt, start, stop in _stretches(attempts):
            place = Points(steps[start:stop], epochs[start:stop], times[start:stop], ())
            for name in names:
                self._add_column(name, attempt, place, columns[name][start:stop])

    def _add_column(self, name: str, attempt: int, place: Points, raw: Sequence[Any]) -> None:
        values = numbers(raw)
        if values is not None:
            self._add_values(name, attempt, place, values)

    def _add_values(
        self, name: str, attempt: int, place: Points, values: Sequence[float], *, rising: bool = False
    ) -> None:
        found = self._series.get(name)
        if found is None:
            if len(self._series) >= MOST_SERIES:
                self.refused += 1
                return
            found = self._series[name] = Series(name, self._capacity)
        steps = place.steps
        if steps[-1] != steps[-1]:
            steps = self._substitute(name, place, found.count)
        found.extend(attempt, Points(steps, place.epochs, place.times, values), rising=rising)

    def _substitute(self, name: str, place: Points, count: int) -> Sequence[float]:
        """An axis for points whose step nobody told."""
        if place.epochs[-1] == place.epochs[-1]:
            self._axes[name] = "epoch"
            return place.epochs
        return array("d", range(count, count + len(place.steps)))

    def _positions(self, columns: Mapping[str, Sequence[Any]], count: int) -> tuple[Sequence[float], ...]:
        unknown = array("d", [NAN]) * count
        epochs, times = (numbers(columns[key]) if key in columns else unknown for key in ("epoch", "time"))
        steps = numbers(columns["step"]) if "step" in columns else None
        if steps is None:
            steps = array("d", [self._step]) * count
        elif math.isnan(sum(steps)):
            steps = self._carried(steps)
        self._step = steps[-1]
        return steps, unknown if epochs is None else epochs, unknown if times is None else times

    def _carried(self, steps: Sequence[float]) -> array[float]:
        out, newest = array("d"), self._step
        for step in steps:
            newest = step if step == step else newest
            out.append(newest)
        return out

    def _follow(self, columns: Mapping[str, Sequence[Any]]) -> None:
        steps = numbers(columns["step"]) if "step" in columns else None
        if steps is not None and steps[-1] == steps[-1]:
            self._step = steps[-1]

    def _wanted(self, name: str) -> bool:
        return self._only is None or name in self._only


def numbers(raw: Sequence[Any]) -> array[float] | None:
    """A column of doubles, NaN for null and for what is no number; None when nothing in it is a number or null."""
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


def _stretches(attempts: Sequence[Any]) -> list[tuple[int, int, int]]:
    """(attempt, start, stop) of equal neighbours."""
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
