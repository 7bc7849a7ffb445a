"""The chart of one metric as rows of characters: a line through the averaged values before the range of the raw ones,
validation as a dotted line with a point where it was measured.

Every column shades the minimum to the maximum of what falls into it, so a spike of one step survives any width. A value
that is not finite is a gap, never bridged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...core.present import NOT_FINITE, number, whole
from ...core.runs.comparison import compared_values
from ..rows import EMPTY, Row, Span, clean, clip, fit, row, spread, width_of, wrap
from .canvas import POINT, Canvas, draw_line, draw_range
from .data import ChartData, Reading, reading
from .scale import Frame, Scale, nice_step, tick_label, value_scale

GUTTER = 7
"""Cells of the value axis, its line included."""
SLOW_MARK = "▔"
_LEAST_SAID = 7
"""Lines from which on one is spared for the best earlier run; two from twice as many on."""
SMALLEST_WIDTH, SMALLEST_HEIGHT = GUTTER + 8, 4
_CELLS_PER_X_TICK, _LINES_PER_Y_TICK = 14, 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartView:
    """How a person looks at a chart. Positions are in units of the data's own axis."""

    log: bool | None = None
    """None: whatever tells the curve better."""
    by_epoch: bool = False
    by_time: bool = False
    left: float | None = None
    """None: from the beginning."""
    right: float | None = None
    """None: follow the newest point."""
    cursor: float | None = None
    ghost: bool = True
    """Draw the best earlier run behind a live one."""
    blocks: bool = False
    """Draw with block characters, for fonts without braille."""
    smoothing: float | None = None
    """Weight of the past in the average, per column of the curve; None: less for a short curve."""


def frame(data: ChartData, view: ChartView, width: int, height: int) -> Frame | None:
    """The axes for this size; None where there is nothing to draw or no place for it."""
    extent = data.extent()
    if extent is None or width < SMALLEST_WIDTH or height < SMALLEST_HEIGHT:
        return None
    left = extent[0] if view.left is None else view.left
    right = extent[1] if view.right is None else view.right
    if right <= left:
        right = left + 1
    if view.right is None:
        # The edge moves on in steps of a few columns: most new points then repaint one column, not the whole chart.
        step = nice_step((right - left) / 40)
        right = math.ceil(right / step) * step
    values: list[float] = []
    for curve in data.curves:
        for position, low, high in zip(curve.x, curve.low, curve.high, strict=True):
            if left <= position <= right:
                values += (low, high)
    for ghost in data.ghosts:
        pairs = zip(ghost.x, compared_values(ghost), strict=False)
        values += [value for position, value in pairs if left <= position <= right]
    lines = height - 2 - len(said_lines(data, width, height))
    return Frame(Scale(left, right), value_scale(values, view.log), width - GUTTER, lines)


def said_lines(data: ChartData, width: int, height: int) -> list[str]:
    """What is said of the best earlier run, in the most words that a chart of this size has a line for, or two."""
    most, cells = (height >= _LEAST_SAID) + (height >= 2 * _LEAST_SAID), width - 3
    return next((lines for text in data.said if (lines := wrap(text, cells, most + 1)) and len(lines) <= most), [])


def draw(data: ChartData, view: ChartView, width: int, height: int) -> list[Row]:
    """The whole chart: a legend that is also the read-out, the curves with their axis, the ticks of x."""
    space = frame(data, view, width, height)
    if space is None:
        missing = "the history is being read …" if data.unread else f"no {clean(data.name, 40)} reported yet"
        text = "too small for a chart" if data.curves else missing
        return [EMPTY] * max(0, (height - 1) // 2) + [row((fit(text, min(width, len(text))).center(width), "dim"))]
    canvas = Canvas(space.columns, space.lines, view.blocks)
    for ghost in data.ghosts:
        draw_line(canvas, ghost, compared_values(ghost), space, "ghost", dotted=ghost.evaluation)
    if data.train is not None:
        for piece in data.train.superseded:
            draw_line(canvas, piece, piece.mean, space, "faint")
        draw_line(canvas, data.train, data.train.smooth, space, "train")
        draw_range(canvas, data.train, space, "train-range", "train")
    if data.evaluation is not None:
        draw_line(canvas, data.evaluation, data.evaluation.mean, space, "val", dotted=True)
        draw_range(canvas, data.evaluation, space, "val-range", "val")
    under, labels = _under(data, view, space), y_labels(space)
    above = _slow_columns(data, space) | under
    body = [row(*labels[line], *canvas.spans(line, under if line else above)) for line in range(space.lines)]
    told = said_lines(data, width, height)
    said = [row((" ┄ " if line is told[0] else "   ", "ghost"), (line, "dim")) for line in told]
    return [legend(data, view, space, width), *said, *body, x_axis(data, view, space)]


def _under(data: ChartData, view: ChartView, space: Frame) -> dict[int, Span]:
    under: dict[int, Span] = {}
    for mark in (mark for curve in data.curves for mark in curve.attempt_marks):
        column = space.column_of(mark)
        if column is not None:
            under[column] = Span("┊", "mark")
    column = space.column_of(view.cursor) if view.cursor is not None else None
    if column is not None:
        under[column] = Span("│", "cursor")
    return under


def _slow_columns(data: ChartData, space: Frame) -> dict[int, Span]:
    """A band along the upper edge over the steps that were slow; narrower than a cell is still one cell."""
    if data.axis != "step":
        return {}
    columns: dict[int, Span] = {}
    for piece in data.slow:
        if piece.first <= space.x.high and piece.last >= space.x.low:
            first = space.column_of(max(piece.first, space.x.low)) or 0
            last = space.column_of(min(piece.last, space.x.high)) or 0
            columns |= dict.fromkeys(range(first, last + 1), Span(SLOW_MARK, "warn"))
    return columns


def y_labels(space: Frame) -> list[tuple[Span, Span]]:
    """What stands before each line: its value where it has a tick, and the axis."""
    blank = Span(" " * (GUTTER - 1), "dim"), Span("│", "faint")
    labels = [blank] * space.lines
    most = max(2, int(space.lines / _LINES_PER_Y_TICK))
    for tick in space.y.ticks(most):
        position = space.y.position(tick)
        if position is None or not -1e-6 <= position <= 1 + 1e-6:
            continue
        line = min(space.lines - 1, int((1 - position) * (space.lines - 1) + 0.5))
        labels[line] = Span(fit(tick_label(tick), GUTTER - 1, "right"), "dim"), Span("┤", "faint")
    return labels


def x_axis(data: ChartData, view: ChartView, space: Frame) -> Row:
    """The line below the chart: the ticks of x."""
    unit = _epoch_unit(data, view)
    shown = Scale(space.x.low / unit, space.x.high / unit)
    cells = [" "] * (space.columns + GUTTER)
    taken_to = -1
    for tick in shown.ticks(max(2, space.columns // _CELLS_PER_X_TICK)):
        column = space.column_of(tick * unit)
        label = tick_label(tick)
        if column is None:
            continue
        start = max(0, min(GUTTER + column - len(label) // 2, len(cells) - len(label)))
        if start > taken_to:
            cells[start : start + len(label)] = label
            taken_to = start + len(label) + 1
    return row(("".join(cells), "dim"))


def _epoch_unit(data: ChartData, view: ChartView) -> float:
    known = data.steps_per_epoch
    return known if view.by_epoch and data.axis == "step" and known and known > 0 else 1.0


def legend(data: ChartData, view: ChartView, space: Frame, width: int) -> Row:
    """Which line is which and what it is worth: where the cursor stands, else now. Words give way to numbers."""
    unread = [curve.read_share for curve in data.curves if not curve.complete]
    zoom = f"still reading, {min(unread) * 100:.0f} % · " if unread else ""
    zoom += "zoom · " if view.left is not None or view.right is not None else ""
    scale = "log · " if space.y.log else "linear · "
    for words, told in ((True, zoom + scale), (True, zoom), (True, ""), (False, zoom), (False, "")):
        parts, place = _worths(data, view, space, words=words)
        where = f"{told}{_where(place, data, view, space)} "
        if sum(width_of(span.text) for span in parts) + len(where) < width:
            break
    return spread(clip(tuple(parts), width), (Span(where, "dim"),), width)


def _where(place: str, data: ChartData, view: ChartView, space: Frame) -> str:
    """The axis, and the place on it that is told of."""
    name = "epoch" if _epoch_unit(data, view) != 1.0 else clean(data.axis, 12)
    if not place and view.right is not None:
        place = _place(space.x.high, data, view)
    return f"{name}s {place}" if "–" in place and name in ("step", "epoch", "sample") else f"{name} {place}".rstrip()


def _worths(data: ChartData, view: ChartView, space: Frame, *, words: bool) -> tuple[list[Span], str]:
    """Each curve and what it is worth, and where the first of them is read."""
    parts, place = [Span(f" {clean(data.name, 30)} ", "strong")], ""
    for curve, role, glyph in ((data.train, "train", " ━ "), (data.evaluation, "val", f"  {POINT} ")):
        if curve is None or not len(curve.x):
            continue
        parts += [Span(glyph, role), Span(f"{role} " if words else "")]
        if view.cursor is None:
            smooth = curve.smooth[-1] if len(curve.smooth) else math.nan
            now = data.now if role == "train" else ""
            parts += [Span(now or (number(curve.last) if curve.last is not None else NOT_FINITE))]
            averaged = role == "train" and curve.smoothing > 0
            parts += [Span(f" · avg {curve.smoothing:.2g}  {number(smooth)}" if averaged and words else "", "dim")]
            continue
        found = reading(curve, space, view.cursor)
        first, last = _place(found.first, data, view), _place(found.last, data, view)
        there = last if first == last else f"{first}–{last}"
        parts += [Span(_worth(found)), Span(f" at {there}" if place and there != place else "", "dim")]
        place = place or there
    if data.slow and data.axis == "step":
        parts += [Span(f"  {SLOW_MARK} ", "warn"), Span("slow" if words else "", "dim")]
    return parts, place


def _worth(found: Reading) -> str:
    """A value, or the least, the mean and the greatest of several, as far as they differ."""
    several = (number(found.low), number(found.mean), number(found.high))
    told = "–".join(several) if found.low < found.high else several[0]
    return f"{told}, {NOT_FINITE}" if found.broken and found.mean == found.mean else told


def _place(x: float, data: ChartData, view: ChartView) -> str:
    """A step is whole; of epochs and times a share counts."""
    unit = _epoch_unit(data, view)
    return whole(round(x) if unit == 1.0 and data.axis == "step" else round(x / unit, 2))
