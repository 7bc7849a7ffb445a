"""The plot of a chart in pixels, for terminals that can show them: same curves, axes and colours as in characters.

Values are placed as the axis labels say: the ends of the axis are in the middle of the first and the last cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from ...core.model.snapshot import Piece, SeriesView
from ...core.runs.comparison import compared_values
from ..graphics import Cell, Colour, Raster
from .canvas import means, ranges
from .data import ChartData
from .plot import ChartView, y_ticks
from .scale import Frame, Scale

_REACH = 0.9
"""Pixels by which a steep line is widened to each side, to look as wide as a flat one."""
_RANGES_PER_CELL = 4
"""Finer detail would be noise, and cost as many bytes as everything else."""
_DASH, _GAP = 0.7, 0.45
"""Lengths in a dashed line, in cell widths."""
_APART = 1.4
"""Points at least this far apart on average, in cell widths, get a dot each."""


def rasterise(
    data: ChartData,
    view: ChartView,
    space: Frame,
    cell: Cell,
    inks: Mapping[str, Colour],
    like: Raster | None = None,
) -> Raster:
    """Return the plot of a chart, without text.

    Args:
        inks: the inks of the theme, by name.
        like: the previous raster.
    """
    raster, pixels = Raster(space.columns, space.lines, cell, inks["ground"], like), in_pixels(space, cell)
    for tick in y_ticks(space):
        _across(raster, pixels, tick, raster.ink(inks["edge"]))
    for name, curve in (("trainrange", data.train), ("valrange", data.evaluation)):
        if curve is not None:
            _fill(raster, pixels, curve, raster.ink(inks[name]))
    for mark in data.curves[0].attempt_marks:
        _upright(raster, pixels, mark, raster.ink(inks["violet"]), every=6)
    if view.cursor is not None:
        _upright(raster, pixels, view.cursor, raster.ink(inks["cursor"]))
    thin, thick = max(1.0, cell.height / 16), max(1.5, cell.height / 10)
    for ghost in data.ghosts:
        _line(raster, pixels, ghost, compared_values(ghost), raster.ink(inks["dim"]), thin, dashed=ghost.evaluation)
    if data.train is not None:
        # With fewer points than columns, ranges would be specks: a line through the measured points joins them.
        _line(raster, pixels, data.train, data.train.mean, raster.ink(inks["trainrange"]), thin)
        for piece in data.train.superseded:
            _line(raster, pixels, piece, piece.mean, raster.ink(inks["faint"]), thin)
        _line(raster, pixels, data.train, data.train.smooth, raster.ink(inks["teal"]), thick)
    if data.pinned is not None and space.pinned is not None:
        beside = in_pixels(space._replace(y=space.pinned), cell)
        _line(raster, beside, data.pinned, data.pinned.smooth, raster.ink(inks["blue"]), thick)
    if data.evaluation is not None:
        ink = raster.ink(inks["amber"])
        _line(raster, pixels, data.evaluation, data.evaluation.mean, ink, thick, dashed=True)
        _dots(raster, pixels, data.evaluation, ink)
    return raster


def rasterise_curves(
    curves: Sequence[tuple[SeriesView, Colour]],
    view: ChartView,
    space: Frame,
    cell: Cell,
    inks: Mapping[str, Colour],
    like: Raster | None = None,
) -> Raster:
    """Draw the curves of several runs over each other, each in its ink; the last one stands out."""
    raster, pixels = Raster(space.columns, space.lines, cell, inks["ground"], like), in_pixels(space, cell)
    for tick in y_ticks(space):
        _across(raster, pixels, tick, raster.ink(inks["edge"]))
    if view.cursor is not None:
        _upright(raster, pixels, view.cursor, raster.ink(inks["cursor"]))
    numbers = [raster.ink(colour) for _, colour in curves]  # before soft edges use up the palette
    for place, ((curve, _), ink) in enumerate(zip(curves, numbers, strict=True), 1):
        width = max(1.5, cell.height / (7 if place == len(curves) > 1 else 13))
        _line(raster, pixels, curve, curve.smooth, ink, width)
    return raster


Place = tuple[float, float]
"""Column and line, in cells."""


def rasterise_segments(
    segments: Iterable[tuple[Place, Place, Colour, bool]], size: tuple[int, int], cell: Cell, ground: Colour
) -> Raster:
    """Draw straight lines in order, each given by its ends, its ink, and whether it stands out."""
    raster, drawn = Raster(*size, cell, ground), list(segments)
    numbers = {colour: raster.ink(colour) for _, _, colour, _ in drawn}
    for (left, top), (right, bottom), colour, thick in drawn:
        begin, end = round(left * cell.width), round(right * cell.width)
        slope = (bottom - top) * cell.height / max(1, end - begin)
        half = max(1.0, cell.height / (7 if thick else 14)) / 2 + abs(slope) * _REACH
        for x in range(begin, end + 1):
            y = top * cell.height + slope * (x - begin)
            raster.stroke(x, y - half, y + half, numbers[colour])
    return raster


def in_pixels(space: Frame, cell: Cell) -> Frame:
    """Return the same axes in pixels, extended by half a cell beyond the middle of the outer cells."""
    wide, high = space.columns * cell.width, space.lines * cell.height
    left, top = (cell.width - 1) / 2, (cell.height - 1) / 2
    across = _stretched(space.x, left / max(1, wide - 1 - 2 * left))
    up = _stretched(space.y, top / max(1, high - 1 - 2 * top))
    return Frame(across, up, wide, high)


def _stretched(axis: Scale, share: float) -> Scale:
    """Return an axis that is longer by a share at both ends."""
    if axis.log:
        factor = math.exp(axis.span * share)
        return Scale(axis.low / factor, axis.high * factor, log=True)
    return Scale(axis.low - axis.span * share, axis.high + axis.span * share)


def _y(value: float, pixels: Frame) -> float | None:
    position = pixels.y.position(value)
    return None if position is None else (1 - position) * (pixels.lines - 1)


def _across(raster: Raster, pixels: Frame, value: float, ink: int) -> None:
    y = _y(value, pixels)
    if y is not None and 0 <= round(y) < raster.height:
        for column in raster.columns:
            column[round(y)] = ink


def _upright(raster: Raster, pixels: Frame, x: float, ink: int, every: int = 1) -> None:
    """Draw a line from top to bottom, dotted if ``every`` is more than 1."""
    place = pixels.x.position(x)
    if place is not None and -1e-9 <= place <= 1 + 1e-9:
        column = raster.columns[round(place * (pixels.columns - 1))]
        column[::every] = bytes([ink]) * len(column[::every])
        if every > 1:
            column[1::every] = bytes([ink]) * len(column[1::every])


def _fill(raster: Raster, pixels: Frame, curve: SeriesView, ink: int) -> None:
    wide = max(1, raster.cell.width // _RANGES_PER_CELL)
    for place, low, high in ranges(curve, pixels.x, pixels.columns, pixels.columns // wide):
        top, bottom = _y(high, pixels), _y(low, pixels)
        if top is None:
            continue
        bottom = pixels.lines if bottom is None else bottom
        first, last = max(0, round(top)), min(raster.height, round(bottom) + 1)
        for x in range(max(0, place * wide), min(len(raster.columns), (place + 1) * wide)):
            raster.columns[x][first:last] = bytes([ink]) * max(0, last - first)


def _line(
    raster: Raster,
    pixels: Frame,
    curve: SeriesView | Piece,
    values: Sequence[float],
    ink: int,
    width: float,
    *,
    dashed: bool = False,
) -> None:
    half, before = width / 2, None
    dash, gap = round(_DASH * raster.cell.width), round(_GAP * raster.cell.width)
    for x, mean in means(curve.x, values, pixels.x, pixels.columns):
        y = _y(mean, pixels)
        if y is None:
            before = None
            continue
        start, from_y = before or (x, y)
        slope = (y - from_y) / (x - start) if x > start else 0.0
        for column in range(max(0, start), min(len(raster.columns) - 1, x) + 1):
            if dashed and column % (dash + gap) >= dash:
                continue
            here, reach = from_y + slope * (column - start), abs(slope) * _REACH
            least, most = min(from_y, y), max(from_y, y)
            raster.stroke(column, max(least, here - reach) - half, min(most, here + reach) + half, ink)
        before = x, y


def _dots(raster: Raster, pixels: Frame, curve: SeriesView, ink: int) -> None:
    """Draw a dot at each point, if they are far enough apart on average."""
    places = [place for place in map(pixels.x.position, curve.x) if place is not None and 0 <= place <= 1]
    if len(places) * _APART * raster.cell.width > pixels.columns:
        return
    radius = max(1.5, raster.cell.height / 7)
    for x, mean in means(curve.x, curve.mean, pixels.x, pixels.columns):
        y = _y(mean, pixels)
        for column in range(math.ceil(x - radius), math.floor(x + radius) + 1) if y is not None else ():
            half = math.sqrt(radius**2 - (column - x) ** 2)
            raster.stroke(column, (y or 0.0) - half, (y or 0.0) + half, ink)
