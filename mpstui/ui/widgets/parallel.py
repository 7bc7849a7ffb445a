"""Runs as lines through an axis for each setting and one for the result: what does a result depend on? Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ...core import present as shown
from ...core.runs.comparison import Column
from ...core.series.direction import Better
from ..charting.canvas import Canvas
from ..charting.scale import value_scale
from ..rows import Row, Span, clean, cut, fit, row, width_of, wrap
from .overlay import LABELS

_BY_RESULT = ("good", "train", "mark", "off")
"""The looks of the best quarter of the runs, and of the other quarters in turn."""
FRONT = "title"
_LEAST_AXIS, _RIGHT, _LEAST_LINES = 12, 12, 5


class Stretch(NamedTuple):
    """A part of a run's line between two axes: cells across, and heights from 0 at the bottom to 1 at the top."""

    run: int
    left: int
    right: int
    begin: float
    end: float
    role: str

    def line_at(self, column: int, lines: int) -> int:
        """Return the line of characters that it passes through."""
        share = (column - self.left) / max(1, self.right - self.left)
        return round((1 - (self.begin + (self.end - self.begin) * share)) * (lines - 1))


class _Axis(NamedTuple):
    name: str
    places: tuple[float | None, ...]
    """For each run, 0 at the bottom to 1 at the top; None if it has no value."""
    ticks: dict[float, str]


class Drawn(NamedTuple):
    """What is drawn: axes, their columns, the lines between them, and how many axes did not fit."""

    axes: list[_Axis]
    columns: list[int]
    stretches: list[Stretch]
    looks: dict[int, str]
    hidden: int


def parallel(
    settings: Sequence[Column], result: Column, width: int, height: int, first: int | None = None
) -> tuple[Drawn | None, list[Row]]:
    """Return the axes and lines for a view of ``height`` lines, or a sentence that says why there is none.

    Args:
        first: index of the run that is drawn in front of the others.
    """
    if not settings:
        same = "these runs were started with the same settings: no setting differs that could be drawn"
        return None, [row((f" {line}", "dim")) for line in wrap(same, width - 1, height)]
    fitting = (width - _RIGHT) // _LEAST_AXIS
    if fitting < 1 or height < _LEAST_LINES + 1:
        needs = f"needs {_RIGHT + _LEAST_AXIS} columns and {_LEAST_LINES + 1} lines for the chart"
        return None, [row((cut(f" the parallel view {needs}; here it has {width} and {height}", width), "dim"))]
    axes = [*(_axis(one) for one in settings[:fitting]), _axis(result)]
    columns = [round(1 + place * (width - _RIGHT - 2) / (len(axes) - 1)) for place in range(len(axes))]
    looks, stretches = _looks(result), []
    for run in sorted(range(len(result.values)), key=lambda run: run == first):
        role = FRONT if run == first else looks.get(run, "off")
        for (left, start), (right, end) in pairwise(zip(columns, axes, strict=True)):
            begin, stop = start.places[run], end.places[run]
            if begin is not None and stop is not None:
                stretches.append(Stretch(run, left, right, begin, stop, role))
    return Drawn(axes, columns, stretches, looks, len(settings) - fitting), []


def parallel_rows(drawn: Drawn, width: int, height: int, *, blocks: bool = False, bare: bool = False) -> list[Row]:
    """Return the view in characters; ``bare``: without the lines, which a picture shows."""
    lines = height - 1
    canvas = Canvas(width, lines, blocks)
    across, high = canvas.width // width, canvas.height - 1
    for one in drawn.stretches:
        begin, end = round((1 - one.begin) * high), round((1 - one.end) * high)
        canvas.line(one.left * across, begin, one.right * across, end, one.role)
    canvas.in_front = FRONT
    over: list[dict[int, Span]] = [{} for _ in range(lines)]
    for column, axis in zip(drawn.columns, drawn.axes, strict=True):
        texts = _at_lines(axis, lines)
        for line in range(lines):
            over[line][column] = Span("│" if line not in texts else "┤", "dim")
            for offset, character in enumerate(texts.get(line, "")):
                over[line][column + 1 + offset] = Span(character, "dim")
    _name_results(over, drawn.columns[-1], drawn.axes[-1], drawn.looks, lines)
    _name_lines(over, drawn.stretches, lines)
    if bare:
        canvas.leave_out_curves()
    heads = _heads(drawn.axes, drawn.columns, width, drawn.hidden)
    return [heads, *(row(*canvas.spans(line, over=over[line])) for line in range(lines))]


def _name_lines(over: list[dict[int, Span]], stretches: Sequence[Stretch], lines: int) -> None:
    """Label each run's line once between each two axes: where few others pass, preferably in the middle."""
    passing = Counter(
        (column, one.line_at(column, lines)) for one in stretches for column in range(one.left, one.right)
    )
    for one in reversed(stretches):
        middle = (one.left + one.right) // 2
        places = [(column, one.line_at(column, lines)) for column in range(one.left + 2, one.right - 5)]
        free = [(column, line) for column, line in places if column not in over[line]]
        if free:
            column, line = min(free, key=lambda place: (passing[place], abs(place[0] - middle)))
            over[line][column] = Span(LABELS[one.run], f"{one.role} strong")


def _axis(column: Column) -> _Axis:
    """Make an axis: numbers by size, by decades if they span several; words at evenly spaced heights, in order."""
    numbers = [_number(value) for value in column.values]
    name = clean(column.name, 60)
    if any(number is None and value is not None for number, value in zip(numbers, column.values, strict=True)):
        words = list(dict.fromkeys(str(value) for value in (column.values[place] for place in column.order()) if value))
        at = {word: 1 - (place + 0.5) / len(words) for place, word in enumerate(words)}
        places = tuple(None if value is None else at[str(value)] for value in column.values)
        return _Axis(name, places, {place: clean(word, 40) for word, place in at.items()})
    known = sorted({number for number in numbers if number is not None})
    if not known:
        return _Axis(name, tuple(None for _ in numbers), {})
    low, high = known[0], known[-1]
    scale = value_scale(known, None)
    bottom, top = scale.position(low) or 0.0, scale.position(high) or 0.0

    def height(number: float) -> float:
        share = ((scale.position(number) or 0.0) - bottom) / (top - bottom) if top > bottom else 0.5
        return 1 - share if column.better is Better.LOWER else share

    values = {height(number): shown.number(number, digits=3) if column.better else f"{number:g}" for number in known}
    return _Axis(name, tuple(None if number is None else height(number) for number in numbers), values)


def _number(value: str | float | None) -> float | None:
    try:
        found = None if value is None else float(value)
    except ValueError:
        return None
    return found if found is not None and math.isfinite(found) else None


def _looks(result: Column) -> dict[int, str]:
    """Return the role of each run that has a result: by rank, if it is known which direction is better."""
    known = [place for place in result.order() if _number(result.values[place]) is not None]
    if result.better is None:
        return dict.fromkeys(known, "train")
    return {place: _BY_RESULT[rank * len(_BY_RESULT) // len(known)] for rank, place in enumerate(known)}


def _at_lines(axis: _Axis, lines: int) -> dict[int, str]:
    """Return the texts beside an axis: its ends, and between them every value that gets a line of its own."""
    found: dict[int, str] = {}
    ends = (max(axis.ticks, default=0.0), min(axis.ticks, default=0.0))
    for place in sorted(axis.ticks, key=lambda place: (place not in ends, -place)):
        line = round((1 - place) * (lines - 1))
        found.setdefault(line, cut(axis.ticks[place], _LEAST_AXIS - 4))
    return found


def _name_results(over: list[dict[int, Span]], column: int, axis: _Axis, known: dict[int, str], lines: int) -> None:
    """Put the labels of the runs before the axis of results, each at its own height."""
    for place, height in enumerate(axis.places):
        if height is not None:
            cells = over[round((1 - height) * (lines - 1))]
            at = next((at for at in range(column - 1, max(column - 6, 0), -1) if at not in cells), None)
            if at is not None:
                cells[at] = Span(LABELS[place], f"{known.get(place, 'faint')} strong")


def _heads(axes: Sequence[_Axis], columns: Sequence[int], width: int, hidden: int) -> Row:
    """The axes' names above them, and how many more settings a wider window would show."""
    text = ""
    for place, (column, axis) in enumerate(zip(columns, axes, strict=True)):
        room = (columns[place + 1] if place + 1 < len(columns) else width) - column - 1
        text = fit(text, column) + cut(axis.name, room)
    more = f" +{hidden}" if hidden > 0 else ""
    return row((fit(text, width - width_of(more)), "strong"), (more, "warn"))
