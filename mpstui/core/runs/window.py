"""A part of a run's curves read again from its files, point for point: what a chart shows after zooming in.

The curves of a whole history are held in so many buckets, each with as many points as necessary. A window of steps is
read again: of our own records only the stretches of the file that reach into it are parsed, of the others only the
first and last line are looked at; a log is understood from its beginning, provided it is not too long.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ...wire.rundir import RunDir
from ..follow import SLICE_BYTES, Budget, LineTail
from ..model.snapshot import RunSnapshot, SeriesView
from ..series.pyramid import CAPACITY, debiased_average
from ..series.series import SeriesStore
from .external import ExternalMetrics
from .files import parse_lines

LONGEST_LOG_BYTES = 64 << 20
"""Logs that are longer than this together are not read again to show a part of them."""


class Window(NamedTuple):
    """Steps of some metrics of one run."""

    run: str
    names: tuple[str, ...]
    left: float
    right: float


class Edge(NamedTuple):
    """Where a record stands; if it has no step it tells nothing, and its stretch is parsed."""

    step: float
    attempt: Any


class Stretch(NamedTuple):
    """Complete lines of a file of records that were looked at before."""

    start: int
    end: int
    first: Edge
    last: Edge
    turns: bool
    """Steps go back in it, or just before it, or another attempt begins."""

    def reaches(self, window: Window) -> bool:
        return self.turns or (self.first.step <= window.right and self.last.step >= window.left)


class Stretches:
    """The stretches of the file that was read last: the next window reads only those that reach into it."""

    def __init__(self) -> None:
        self._file: tuple[Path, int, int] | None = None
        self._found: list[Stretch] = []

    def of(self, path: Path) -> list[Stretch]:
        """What is known about a file; nothing if it is another one, or has become shorter."""
        try:
            status = path.stat()
        except OSError:
            return []
        file = path, status.st_dev, status.st_ino
        if file != self._file or (self._found and status.st_size < self._found[-1].end):
            self._file, self._found = file, []
        return self._found

    def forget(self) -> None:
        """The file no longer agrees with the curves: it may have been rewritten."""
        self._file = None


class WindowReader:
    """Reads a window in slices; ``curves`` is what was found, empty if the files no longer contain it."""

    def __init__(self, snapshot: RunSnapshot, window: Window, known: Stretches | None = None) -> None:
        """``known``: what earlier windows have found out about the file."""
        self.window = window
        self._known = known if known is not None else Stretches()
        self.curves: Mapping[str, SeriesView] = {}
        self.done = False
        self._snapshot = snapshot
        self._reading = self._readings()

    def read(self, budget: Budget) -> None:
        """Continue with at least one slice."""
        while not self.done:
            self.done = next(self._reading, None) is None
            if budget.spent:
                return

    def _readings(self) -> Iterator[bool]:
        """Look for the curves in one source after the other; each iteration is one slice."""
        run = RunDir(self._snapshot.dir)
        attempts = range(1, self._snapshot.attempt + 1)
        printed = [run.attempt(number).output for number in attempts] or [Path(self._snapshot.run)]
        for source, paths in ((self._records, [run.metrics]), (self._logs, printed)):
            store = SeriesStore(only=frozenset(self.window.names), window=(self.window.left, self.window.right))
            yield from source(paths, store)
            found = store.views(self.window.names, most=CAPACITY)
            for name, view in found.items():
                curve = self._snapshot.series.get(name)
                if curve is not None and name not in self.curves and belongs(curve, view, self.window):
                    self.curves = {**self.curves, name: view}
            if len(self.curves) == len(self.window.names):
                return
            self._known.forget()

    def _records(self, paths: Sequence[Path], store: SeriesStore) -> Iterator[bool]:
        known = self._known.of(paths[0])
        for stretch in [one for one in known if one.reaches(self.window)]:
            again = LineTail(paths[0], start=stretch.start).read(stretch.end - stretch.start)
            store.add(parse_lines(again.data[: stretch.end - stretch.start]))
            yield True
        tail = LineTail(paths[0], start=known[-1].end if known else 0)
        while True:
            growth = tail.read(SLICE_BYTES)
            if growth.restarted:
                return  # what was read of it is gone
            if growth.data:
                before = known[-1].last if known else Edge(-math.inf, 0)
                first, last = _edge(growth.data[: growth.data.find(b"\n") + 1]), _edge(_last_line(growth.data))
                turns = first.attempt != last.attempt or first.step < before.step or last.step < first.step
                known.append(Stretch(growth.offset, growth.offset + len(growth.data), first, last, turns))
                if known[-1].reaches(self.window):
                    store.add(parse_lines(growth.data))
            if not growth.more:
                return
            yield True

    def _logs(self, paths: Sequence[Path], store: SeriesStore) -> Iterator[bool]:
        many = len(paths) > 1
        if self._snapshot.store is None:
            there = [path for path in paths if path.is_file()]
            made = [
                ExternalMetrics(path, time.time, attempt=number if many else 0, store=store)
                for number, path in enumerate(there, 1)
            ]
        else:
            from .stored_metrics import metrics_of  # only for what a tracker keeps

            made = metrics_of(Path(self._snapshot.run), time.time, store)
        for log in made:
            log.file.poll()
        if sum(log.file.size for log in made) > LONGEST_LOG_BYTES:
            return
        for log in made:
            while log.poll():
                before = log.file.offset
                log.read(Budget(0.0))
                if log.file.offset == before or log.store is not store:
                    break
                yield True


def _edge(line: bytes) -> Edge:
    record: Mapping[str, Any] = next(iter(parse_lines(line)), {})
    step = record.get("step")
    return Edge(float(step) if isinstance(step, (int, float)) else math.nan, record.get("attempt"))


def _last_line(data: bytes) -> bytes:
    return data[data.rfind(b"\n", 0, -1) + 1 :]


def belongs(curve: SeriesView, part: SeriesView, window: Window) -> bool:
    """Whether ``part`` is what the curve holds there: no value beyond its own, each column's last point in place.

    This detects files that were rewritten or cut, or that have another metric under that name.
    """
    cut = _cut(curve, part, window)
    if cut is None or part.axis != "step" or curve.axis != "step":
        return False
    before, until, first, last = cut
    alone = max(part.points, default=0.0) <= 1
    for at in (before, until) if alone else ():
        place = bisect_right(part.x, curve.x[at]) - 1 if at >= 0 else -1
        if at >= 0 and (part.x[place] != curve.x[at] or not _same(part.values[place], curve.values[at])):
            return False
    held = [curve.low[at] for at in range(before + 1, until + 1) if curve.low[at] == curve.low[at]]
    tops = [curve.high[at] for at in range(before + 1, until + 1) if curve.high[at] == curve.high[at]]
    inside = range(first + 1, last - 1)
    low, high = min(held, default=-math.inf), max(tops, default=math.inf)
    return not any(part.low[at] < low or part.high[at] > high for at in inside)


def _same(one: float, other: float) -> bool:
    return one == other or (one != one and other != other)


def _cut(curve: SeriesView, part: SeriesView, window: Window) -> tuple[int, int, int, int] | None:
    """The last column before the part and the last within it; the first of the part's own, and one beyond the last."""
    if not part.x or not curve.x:
        return None
    whole_from_start = curve.begin >= window.left
    before = -1 if whole_from_start else bisect_left(curve.x, window.left)
    until = bisect_right(curve.x, min(window.right, part.x[-1])) - 1
    if until <= before:
        return None
    first = 0 if before < 0 else bisect_right(part.x, curve.x[before])
    last = bisect_right(part.x, curve.x[until])
    return (before, until, first, last) if last > first else None


def in_detail(curve: SeriesView, part: SeriesView, window: Window) -> SeriesView:
    """The curve with the columns that were read again, point for point; the curve itself if they do not belong."""
    cut = _cut(curve, part, window)
    if cut is None or not belongs(curve, part, window):
        return curve
    before, until, first, last = cut

    def both(outer: Sequence[float], inner: Sequence[float]) -> list[float]:
        return [*outer[: before + 1], *inner[first:last], *outer[until + 1 :]]

    mean = both(curve.mean, part.mean)
    inside = part.x[first], part.x[last - 1]
    gaps = [x for x in curve.gaps if not inside[0] <= x <= inside[1]] + [
        x for x in part.gaps if inside[0] <= x <= inside[1]
    ]
    return replace(
        curve,
        x=both(curve.x, part.x),
        low=both(curve.low, part.low),
        high=both(curve.high, part.high),
        mean=mean,
        smooth=debiased_average(mean, curve.smoothing),
        times=both(curve.times, part.times),
        values=both(curve.values, part.values),
        points=both(curve.points, part.points),
        gaps=sorted(gaps),
    )
