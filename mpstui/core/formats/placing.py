"""Placing lines that were read by their shape: all at once if they simply continue a series, else one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import compress, groupby, pairwise
from operator import itemgetter, le, lt, ne

from .columns import Columns, by_field, columns_of, counts, floats
from .points import Point
from .shape import LineShape
from .thrift import LineChoice
from .tracker import Tracker

_MIN_RUN = 16
"""Shorter runs of lines are placed one by one."""
Run = Sequence[tuple[LineShape, re.Match[bytes]]]
"""Consecutive lines, each with its shape and match."""


class Placer:
    """Places such lines with one tracker and collects their points in ``points``."""

    def __init__(self, tracker: Tracker, choice: LineChoice) -> None:
        self.points: list[Point] = []
        self._tracker = tracker
        self._choice = choice

    def place_run(self, run: Run) -> None:
        """Place lines of any shapes, in order."""
        mixed: list[tuple[LineShape, re.Match[bytes]]] = []
        for shape, part in groupby(run, key=itemgetter(0)):
            lines = list(part)
            if len(lines) < _MIN_RUN or not shape.targets:
                mixed += lines
                continue
            self._place_mixed(mixed)
            mixed = []
            self.place(shape, list(zip(*(match.groups() for _, match in lines), strict=True)))
        self._place_mixed(mixed)

    def _place_mixed(self, run: Run) -> None:
        """Place lines whose shapes alternate."""
        for shape, match in run:
            self._place_rows(shape, [match.groups()])

    def place(self, shape: LineShape, columns: Columns) -> None:
        """Place lines of one shape."""
        start = 0
        for stop in _cuts(shape, columns):
            group = [column[start:stop] for column in columns]
            start = stop
            undecided = self._undecided(shape, group)
            if undecided:
                self._place_rows(shape, [*zip(*(column[:undecided] for column in group), strict=True)])
                group = [column[undecided:] for column in group]
            rest = len(group[0])
            if not rest:
                continue
            if rest >= _MIN_RUN and shape.template.bar:
                self._place_frames(shape, group)
            elif rest < _MIN_RUN or not self._at_once(shape, group):
                self._place_rows(shape, [*zip(*group, strict=True)])

    def _undecided(self, shape: LineShape, columns: Columns) -> int:
        """Return how many lines it takes until all held-back values are decided, or no more can be held back."""
        names, lines = self._tracker.names, 0
        for group, given in zip(("metrics", "eval_metrics"), names.given_to(shape.template), strict=True):
            for name, shown in given.items():
                column = shape.column(f"{group}.{name}") if names.keeps_back(shown) else None
                if column is not None:
                    needed = names.decided_after(shown, floats(columns[column]))
                    lines = max(lines, needed or names.room_for(shown))
        return lines

    def _place_frames(self, shape: LineShape, columns: Columns) -> None:
        """Place the frames of a bar, except those that move on but repeat the loss of the frame before.

        The first frame is always placed, as it may begin another bar, and the last, for the position of the bar.
        """
        counter, loss = _step_column(shape), shape.column("loss")
        steps = [] if counter is None else counts(columns[counter])
        rows = [*zip(*columns, strict=True)]
        if loss is None or shape.template.eval_metrics or not steps or not all(map(lt, steps, steps[1:])):
            self._place_rows(shape, rows)
            return
        self._place_rows(shape, rows[:1])
        anew = [*map(ne, columns[loss][:-2], columns[loss][1:-1])]
        between = [[*compress(column[1:-1], anew)] for column in columns]
        if between[0] and not self._at_once(shape, between):
            self._place_rows(shape, [*zip(*between, strict=True)])
        self._place_rows(shape, rows[-1:])

    def _place_rows(self, shape: LineShape, rows: Sequence[Sequence[bytes]]) -> None:
        """Place lines one by one."""
        if self._choice.exhausted:
            self._choice.pass_over(len(rows) - 1)
            rows = rows[-1:]
        self._choice.spend(len(rows))
        for row in rows:
            point = self._tracker.place(shape.row_reading(row))
            self.points += self._tracker.take_late()
            self.points += () if point is None else (point,)

    def _at_once(self, shape: LineShape, columns: Columns) -> bool:
        """Place many lines at once; return False, with nothing placed, if they do not simply continue a series."""
        loss, step, epoch = shape.column("loss"), _step_column(shape), shape.column("epoch")
        if loss is None:
            return False
        first, last = (shape.row_reading([column[at] for column in columns]) for at in (0, -1))
        counter = epoch if step is None else step
        told = by_field(shape, columns)
        values = told.get("loss") or floats(columns[loss])
        steps = None if counter is None else counts(columns[counter])
        if steps is not None and not all(map(le if step is None else lt, steps, steps[1:])):
            return False
        if shape.template.bar and not all(map(ne, values, values[1:])):
            return False  # an unchanged value may only have been redrawn
        newest = self._tracker.place_run(first, last, values, steps)
        if newest is None:
            return False
        self.points += self._tracker.take_late()
        train, evaluated = self._tracker.names.given_to(last)
        shown = {f"metrics.{name}": train[name] for name in train} | {
            f"eval_metrics.{name}": evaluated[name] for name in evaluated
        }
        told = {shown.get(field, field): column for field, column in told.items()}
        self.points.append(columns_of(newest, values, None if step is None else steps, told))
        return True


def _step_column(shape: LineShape) -> int | None:
    column = shape.column("step")
    return shape.column("epoch_step") if column is None else column


def _cuts(shape: LineShape, columns: Columns) -> Iterator[int]:
    """Yield where each epoch ends, if steps are counted beside it; in any case the end of the lines."""
    epoch = shape.column("epoch")
    if epoch is not None and _step_column(shape) is not None and columns[epoch][0] != columns[epoch][-1]:
        yield from (at for at, (one, other) in enumerate(pairwise(columns[epoch]), 1) if one != other)
    yield len(columns[0])
