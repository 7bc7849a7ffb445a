"""Reads part of a run's curves again from its files, point by point, for a chart that was zoomed in.

The whole history is held in a fixed number of buckets, each of many points. To show a window of steps in detail, the
files are read again: of our own records, only the stretches that overlap the window are parsed, of the others only
their first and last lines. A log must be parsed from its beginning, provided it is not too long.
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
"""Logs whose total length exceeds this are not read again."""


class Window(NamedTuple):
    """A range of steps of some metrics of a run."""

    run: str
    names: tuple[str, ...]
    left: float
    right: float


class Edge(NamedTuple):
    """The step and attempt of a record; without a step (NaN), its stretch is always parsed."""

    step: float
    attempt: Any


class Stretch(NamedTuple):
    """A stretch of complete lines, already seen, in a file of records."""

    start: int
    end: int
    first: Edge
    last: Edge
    turns: bool
    """True if the step decreases in it or just before it, or if another attempt begins."""

    def reaches(self, window: Window) -> bool:
        return self.turns or (self.first.step <= window.right and self.last.step >= window.left)


class Stretches:
    """The known stretches of the file read last, so that the next window reads only those it overlaps."""

    def __init__(self) -> None:
        self._file: tuple[Path, int, int] | None = None
        self._found: list[Stretch] = []

    def of(self, path: Path) -> list[Stretch]:
        """Return the known stretches of a file; none if it is another file, or has become shorter."""
        try:
            status = path.stat()
        except OSError:
            return []
        file = path, status.st_dev, status.st_ino
        if file != self._file or (self._found and status.st_size < self._found[-1].end):
            self._file, self._found = file, []
        return self._found

    def forget(self) -> None:
        """Forget the file, which no longer agrees with the curves: it may have been rewritten."""
        self._file = None


class WindowReader:
    """Reads a window in slices; ``curves`` holds what was found, and is empty if the files no longer contain it."""

    def __init__(self, snapshot: RunSnapshot, window: Window, known: Stretches | None = None) -> None:
        """``known``: stretches of the file found by earlier windows."""
        self.window = window
        self._known = known if known is not None else Stretches()
        self.curves: Mapping[str, SeriesView] = {}
        self.done = False
        self._snapshot = snapshot
        self._reading = self._readings()

    def read(self, budget: Budget) -> None:
        """Continue reading, with at least one slice."""
        while not self.done:
            self.done = next(self._reading, None) is None
            if budget.spent:
                return

    def _readings(self) -> Iterator[bool]:
        """Look for the curves in one source after the other; each iteration reads one slice."""
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
                return  # the file was replaced: what was read no longer counts
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
    """True if ``part`` agrees with the curve: no value is out of its range, and the last points of columns match.

    This detects files that were rewritten or truncated, or that contain another metric of that name.
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
    """Return the curve's last column before the part and its last within it, then the range of the part's columns."""
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
    """Return the curve with the columns of ``part`` in place of its own, or unchanged if they do not agree."""
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
