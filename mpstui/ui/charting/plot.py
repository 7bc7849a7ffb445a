"""The chart of one metric as rows of characters: a line through the averaged values in front of the range of the raw
ones; validation as a dotted line with a point at each measurement.

Every column shades the range from minimum to maximum of the values in it, so a spike of one step survives any width.
Values that are not finite leave a gap, which is never bridged.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from ...core.model.snapshot import Piece, SeriesView
from ...core.present import NOT_FINITE, number, whole
from ...core.runs.comparison import compared_values
from ..rows import EMPTY, Row, Span, clean, clip, fit, row, spread, width_of, wrap
from .canvas import DOTTED, POINT, WHOLE, Canvas, draw_line, draw_range
from .data import ChartData, Reading, none_reported, reading
from .scale import Frame, Scale, nice_step, tick_labels, value_scale

GUTTER = 7
"""Cells of the value axis, including its line."""
SLOW_MARK = "▔"
_LEAST_SAID = 7
"""From this height on, one line is spared for the best earlier run; from twice this height on, two."""
SMALLEST_WIDTH, SMALLEST_HEIGHT = GUTTER + 8, 4
_LEAST_SHARE = 1 / 3
_PIN_EVERY = 28
"""Cells between two labels on a pinned curve."""
_EDGES, _EDGES_OF_PICTURES = 40, 12
"""The right edge moves by at least the span divided by this; each move sends a picture again."""
_CELLS_PER_X_TICK, _LINES_PER_Y_TICK = 14, 2.5


class ChartView(NamedTuple):
    """How the user looks at a chart. Positions are in units of the x axis."""

    log: bool | None = None
    """True if the value axis is logarithmic; None: whichever shows the curve better."""
    by_epoch: bool = False
    by_time: bool = False
    left: float | None = None
    """Left edge of the window; None: the beginning."""
    right: float | None = None
    """Right edge of the window; None: follow the newest point."""
    cursor: float | None = None
    ghost: bool = True
    """Draw the best earlier run behind a live one."""
    blocks: bool = False
    """Draw with block characters, for fonts without braille."""
    smoothing: float | None = None
    """Weight of the past in the average, per column of the curve; None: chosen by the length of the curve."""
    clip: bool = False
    """Fit the axis to the usual values, and mark where others lie beyond it."""


def frame(data: ChartData, view: ChartView, width: int, height: int, *, bare: bool = False) -> Frame | None:
    """Return the axes for this size; None if there is nothing to draw or no room. ``bare``: see :func:`draw`."""
    extent = data.extent()
    if extent is None or width < SMALLEST_WIDTH or height < SMALLEST_HEIGHT:
        return None
    left = extent[0] if view.left is None else view.left
    right = extent[1] if view.right is None else view.right
    if right <= left:
        right = left + 1
    if view.right is None:
        # The edge moves on by a few columns at a time: most new points then repaint one column, not the whole chart.
        step = nice_step((right - left) / (_EDGES_OF_PICTURES if bare else _EDGES))
        right = math.ceil(right / step) * step
    values: list[float] = []
    drawn: list[SeriesView | Piece] = [*data.curves, *data.before]
    for curve in drawn:
        inside = [place for place, x in enumerate(curve.x) if left <= x <= right]
        lows, highs = [curve.low[place] for place in inside], [curve.high[place] for place in inside]
        values += usual(lows, highs) if view.clip else [*lows, *highs]
    for ghost in data.ghosts:
        pairs = zip(ghost.x, compared_values(ghost), strict=False)
        values += [value for position, value in pairs if left <= position <= right]
    lines = height - 2 - len(said_lines(data, width, height))
    axis = value_scale(values, view.log, lines)
    theirs = pinned_values(data.pinned, left, right) if data.pinned is not None else []
    if not theirs:
        return Frame(Scale(left, right), axis, width - GUTTER, lines)
    both = value_scale([*values, *theirs], view.log, lines)
    own = value_scale(theirs, None, lines)
    # Share an axis if both curves remain readable: neither may shrink to less than a third of the height.
    shares = (abs((both.position(one.high) or 0.0) - (both.position(one.low) or 0.0)) for one in (axis, own))
    if min(shares) >= _LEAST_SHARE:
        return Frame(Scale(left, right), both, width - GUTTER, lines, both)
    return Frame(Scale(left, right), axis, width - 2 * GUTTER, lines, own)


def pinned_values(curve: SeriesView, left: float, right: float) -> list[float]:
    """Return the averaged values of a pinned curve between two places; only these are drawn."""
    pairs = zip(curve.x, curve.smooth, strict=False)
    return [value for x, value in pairs if left <= x <= right and math.isfinite(value)]


def said_lines(data: ChartData, width: int, height: int) -> list[str]:
    """Return the text about the best earlier run that fits into the line or two reserved for it."""
    most, cells = (height >= _LEAST_SAID) + (height >= 2 * _LEAST_SAID), width - 3
    return next((lines for text in data.said if (lines := wrap(text, cells, most + 1)) and len(lines) <= most), [])


def draw(data: ChartData, view: ChartView, width: int, height: int, *, bare: bool = False) -> list[Row]:
    """Return the whole chart: a legend, also with the values at the cursor, the curves with their axis, the x ticks.

    Args:
        bare: leave out curves, cursor and restarts, which a picture shows (``pixels.py``).
    """
    space = frame(data, view, width, height, bare=bare)
    if space is None:
        none = none_reported(clean(data.name, 40), ended=data.ended)
        missing = "the history is being read …" if data.unread else none
        text = "too small for a chart" if data.curves else missing
        return [EMPTY] * max(0, (height - 1) // 2) + [row((fit(text, min(width, len(text))).center(width), "dim"))]
    canvas = Canvas(space.columns, space.lines, view.blocks)
    for ghost in data.ghosts:
        draw_line(canvas, ghost, compared_values(ghost), space, "ghost", dashes=DOTTED if ghost.evaluation else WHOLE)
    if data.train is not None:
        for piece in data.train.superseded:
            draw_line(canvas, piece, piece.mean, space, "off")
        alone = len(data.train.x) == 1  # a single braille dot would be overlooked
        draw_line(canvas, data.train, data.train.smooth, space, "train", dashes=DOTTED if alone else WHOLE)
        draw_range(canvas, data.train, space, "train-range", "train")
    if data.evaluation is not None:
        draw_line(canvas, data.evaluation, data.evaluation.mean, space, "val", dashes=DOTTED)
        draw_range(canvas, data.evaluation, space, "val-range", "val")
    names = {}
    if data.pinned is not None and space.pinned is not None:
        draw_line(canvas, data.pinned, data.pinned.smooth, space._replace(y=space.pinned), "pinned")
        names = canvas.labels({"pinned": Span("2", "pinned strong")}, _PIN_EVERY)
    under, labels = {} if bare else _under(data, view, space), y_labels(space)
    above, notes = _slow_columns(data, space) | under, _placed_notes(canvas, _notes(data, view, space))
    beyond = _beyond(data, space) if view.clip else {}
    if bare:
        canvas.leave_out_curves()
    body = []
    for line in range(space.lines):
        behind, before = (under if line else above) | notes.get(line, {}), names.get(line, {}) | beyond.get(line, {})
        body.append(row(*labels[line], *canvas.spans(line, behind, before), *_right_label(space, line)))
    told = said_lines(data, width, height)
    said = [row((" ┄ " if line is told[0] else "   ", "ghost"), (line, "dim")) for line in told]
    return [legend(data, view, space, width), *said, *body, x_axis(data, view, space)]


def _under(data: ChartData, view: ChartView, space: Frame) -> dict[int, Span]:
    under: dict[int, Span] = {}
    for mark in data.curves[0].attempt_marks:  # those of validation would be a little later, at its first measurement
        column = space.column_of(mark)
        if column is not None:
            under[column] = Span("┊", "mark")
    column = space.column_of(view.cursor) if view.cursor is not None else None
    if column is not None:
        under[column] = Span("│", "cursor")
    return under


_MOST_NOTES = 20
"""Most notes about single points that are not finite."""


class Note(NamedTuple):
    """A short text at a place on the chart."""

    column: int
    text: str
    role: str


def _notes(data: ChartData, view: ChartView, space: Frame) -> list[Note]:
    """Return notes for what happened: values that are not finite, and attempts that took over."""
    curve = data.curves[0]
    taken = ((space.column_of(mark), word) for mark, word in data.takeovers())
    notes = [Note(at + 1, word, "mark") for at, word in taken if at is not None]
    broken, single = curve.broken(), max(curve.points, default=1.0) <= 1
    before = [gap for gap in curve.gaps if broken is None or gap < broken[1]][:_MOST_NOTES]
    for gap in [*([broken[1]] if broken is not None else []), *before]:
        first, at = gap if single else curve.begins(bisect_left(curve.x, gap)), space.column_of(gap)
        where = "–".join(dict.fromkeys(_place(x, data, view) for x in (first, gap)))
        word = "from" if broken is not None and gap == broken[1] else "at"
        if at is not None:
            notes.append(Note(at, f"✗ {NOT_FINITE} {word} {clean(data.axis, 16)} {where}", "bad"))
    return sorted(notes, key=lambda note: note.role != "bad")


def _placed_notes(canvas: Canvas, notes: Sequence[Note]) -> dict[int, dict[int, Span]]:
    """Put each note in the lowest line with room for it, if need be without its text; of several at the same place only
    the first."""
    placed: dict[int, dict[int, Span]] = {}
    for note in notes:
        for text in (note.text, note.text[:1] if note.role == "bad" else ""):
            last = min(note.column, canvas.columns - 1)  # no room is left after a mark in the last column
            start = note.column if note.column + len(text) <= canvas.columns else last - len(text) + 1
            cells = range(start, start + len(text))
            free = (
                line
                for line in range(canvas.lines - 1, -1, -1)
                if start >= 0 and canvas.is_free(line, cells) and placed.get(line, {}).keys().isdisjoint(cells)
            )
            if text and (line := next(free, None)) is not None:
                drawn = zip(cells, text, strict=True)
                placed.setdefault(line, {}).update((column, Span(one, note.role)) for column, one in drawn)
                break
    return placed


def usual(lows: Sequence[float], highs: Sequence[float]) -> list[float]:
    """Return the minimum and maximum, without the outermost one percent at each end if that is far from the rest."""
    least = sorted(value for value in lows if abs(value) < math.inf)
    most = sorted(value for value in highs if abs(value) < math.inf)
    if not least or not most:
        return []
    low, high = least[math.ceil(0.01 * (len(least) - 1))], most[math.floor(0.99 * (len(most) - 1))]
    near = max(high - low, 0.0) / 2
    return [least[0] if low - least[0] <= near else low, most[-1] if most[-1] - high <= near else high]


def _beyond(data: ChartData, space: Frame) -> dict[int, dict[int, Span]]:
    """Return marks at the edges where values lie beyond the axis; the farthest one is labelled with its value."""
    marks: dict[int, dict[int, Span]] = {}
    for line, sign, role in ((0, "▲", "warn"), (space.lines - 1, "▼", "warn")):
        found: dict[int, float] = {}
        for curve in data.curves:
            for x, value in zip(curve.x, curve.low if line else curve.high, strict=True):
                out = space.y.low - value if line else value - space.y.high
                column = space.column_of(x) if out > 0 and not (line and space.y.log and value <= 0) else None
                if column is not None:
                    found[column] = (min if line else max)(value, found.get(column, value))
        if found:
            cells = {column: Span(sign, role) for column in found}
            farthest = (min if line else max)(found, key=lambda column: found[column])
            text = number(found[farthest])
            start = farthest + 1 if farthest + len(text) < space.columns else farthest - len(text)
            cells |= {start + place: Span(one, role) for place, one in enumerate(text) if start >= 0}
            marks.setdefault(line, {}).update(cells)
    return marks


def _slow_columns(data: ChartData, space: Frame) -> dict[int, Span]:
    """Return a band along the upper edge over slow steps, at least one cell wide."""
    if data.axis != "step":
        return {}
    columns: dict[int, Span] = {}
    for piece in data.slow:
        if piece.first <= space.x.high and piece.last >= space.x.low:
            first = space.column_of(max(piece.first, space.x.low)) or 0
            last = space.column_of(min(piece.last, space.x.high)) or 0
            columns |= dict.fromkeys(range(first, last + 1), Span(SLOW_MARK, "warn"))
    return columns


def _right_label(space: Frame, line: int) -> tuple[Span, ...]:
    """Return what follows a line if a pinned curve has an axis of its own."""
    if space.pinned is None or space.pinned is space.y:
        return ()
    axis, label = y_labels(space._replace(y=space.pinned))[line][::-1]
    mark = Span("├" if label.text.strip() else "│", "faint")
    return mark, Span(fit(label.text.strip(), GUTTER - 1), "pinned") if axis.text == "┤" else Span(" " * (GUTTER - 1))


def y_ticks(space: Frame) -> list[float]:
    """Return the labelled values of the value axis."""
    return space.y.ticks(max(2, int(space.lines / _LINES_PER_Y_TICK)))


def y_labels(space: Frame) -> list[tuple[Span, Span]]:
    """Return what precedes each line: its tick label, if any, and the axis."""
    blank = Span(" " * (GUTTER - 1), "dim"), Span("│", "faint")
    labels = [blank] * space.lines
    ticks = y_ticks(space)
    for tick, label in zip(ticks, tick_labels(ticks, GUTTER - 1), strict=True):
        position = space.y.position(tick)
        if position is None or not -1e-6 <= position <= 1 + 1e-6:
            continue
        line = min(space.lines - 1, int((1 - position) * (space.lines - 1) + 0.5))
        labels[line] = Span(fit(label, GUTTER - 1, "right"), "dim"), Span("┤", "faint")
    return labels


def x_axis(data: ChartData, view: ChartView, space: Frame) -> Row:
    """Return the line below the chart, with the x ticks."""
    unit = _epoch_unit(data, view)
    shown = Scale(space.x.low / unit, space.x.high / unit)
    cells = [" "] * (space.columns + GUTTER)
    taken_to = -1
    ticks = shown.ticks(max(2, space.columns // _CELLS_PER_X_TICK))
    for tick, label in zip(ticks, tick_labels(ticks, _CELLS_PER_X_TICK - 2), strict=True):
        column = space.column_of(tick * unit)
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
    """Return the legend, with each curve's value at the cursor or now. Words are dropped before numbers."""
    unread = [curve.read_share for curve in data.curves if not curve.complete]
    zoom = f"still reading, {min(unread) * 100:.0f} % · " if unread else ""
    zoom += "zoom · " if view.left is not None or view.right is not None else ""
    zoom += "clipped · " if view.clip else ""
    scale = "log · " if space.y.log else "linear · "
    for words, told in ((True, zoom + scale), (True, zoom), (True, ""), (False, zoom), (False, "")):
        parts, place = _worths(data, view, space, words=words)
        where = f"{told}{_where(place, data, view, space)} "
        if sum(width_of(span.text) for span in parts) + len(where) < width:
            break
    return spread(clip(tuple(parts), width), (Span(where, "dim"),), width)


def _where(place: str, data: ChartData, view: ChartView, space: Frame) -> str:
    """Return the x axis's name, and the position whose values are shown."""
    name = "epoch" if _epoch_unit(data, view) != 1.0 else clean(data.axis, 16)
    if not place and view.right is not None:
        place = _place(space.x.high, data, view)
    several = "–" in place and name in ("step", "epoch", "sample", "point")
    return f"{name}s {place}" if several else f"{name} {place}".rstrip()


def _worths(data: ChartData, view: ChartView, space: Frame, *, words: bool) -> tuple[list[Span], str]:
    """Return each curve with its value, and the position at which the first was read."""
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
            parts += [Span(f" · avg {number(smooth)} ({curve.smoothing:.2g})" if averaged and words else "", "dim")]
            continue
        found = reading(curve, space, view.cursor)
        first, last = _place(found.first, data, view), _place(found.last, data, view)
        there = last if first == last else f"{first}–{last}"
        parts += [Span(_worth(found)), Span(f" at {there}" if place and there != place else "", "dim")]
        place = place or there
    if data.pinned is not None and space.pinned is not None:
        newest = number(data.pinned.last) if data.pinned.last is not None else NOT_FINITE
        worth = newest if view.cursor is None else _worth(reading(data.pinned, space, view.cursor))
        parts += [Span("  2 ", "pinned strong"), Span(f"{clean(data.pinned.name, 30)} " if words else ""), Span(worth)]
    hidden = sum(map(_not_positive, data.curves)) if space.y.log else 0
    if hidden:
        exactly = all(max(curve.points, default=0.0) <= 1 for curve in data.curves)
        many = f"{hidden:,}" if exactly else f"at least {hidden:,}"
        parts += [Span("  ▾ ", "warn"), Span(f"{many} value{'s' * (hidden > 1)} ≤ 0" if words else many, "dim")]
    if data.slow and data.axis == "step":
        parts += [Span(f"  {SLOW_MARK} ", "warn"), Span("slow" if words else "", "dim")]
    return parts, place


def _not_positive(curve: SeriesView) -> int:
    """Return how many columns hold a value that a log axis cannot show."""
    if curve.minimum is not None and curve.minimum > 0:
        return 0
    return sum(low <= 0 for low in curve.low)


def _worth(found: Reading) -> str:
    """Format a value; for several, the minimum, mean and maximum as far as they differ."""
    several = (number(found.low), number(found.mean), number(found.high))
    told = "–".join(several) if found.low < found.high else several[0]
    return f"{told}, {NOT_FINITE}" if found.broken and found.mean == found.mean else told


def _place(x: float, data: ChartData, view: ChartView) -> str:
    """Format an x position: steps are whole numbers, epochs and times have fractions."""
    unit = _epoch_unit(data, view)
    return whole(round(x) if unit == 1.0 and data.axis == "step" else round(x / unit, 2))
