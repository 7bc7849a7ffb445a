"""The charts of a comparison in pixels: curves over each other, or lines through their settings. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.geometry import Region

from ..charting.pixels import rasterise_curves, rasterise_segments
from ..charting.plot import GUTTER, ChartView
from ..charting.scale import Frame
from ..graphics import Cell, Picture
from ..rows import Row, width_of
from ..theme import RUN_ROLES, ink_of, pixel_inks
from .overlay import Overlay
from .parallel import FRONT, Stretch

_FRAME = frozenset(" │┤")
"""Characters that a picture may continue behind."""


def curves_picture(
    data: Overlay,
    view: ChartView,
    space: Frame,
    first: int | None,
    cell: Cell,
    theme: str,
    before: Picture | None,
    words: Sequence[Row] = (),
) -> Picture:
    """Draw the runs that are not hidden, ``first`` in front of the others, below the title of the comparison.

    Args:
        words: the chart in characters without curves; no curve is drawn where these have a label.
    """
    seen = [(at, one) for at, one in enumerate(data.runs) if one is not None and at not in data.hidden]
    curves = [(one, ink_of(theme, RUN_ROLES[at])) for at, one in sorted(seen, key=lambda pair: pair[0] == first)]
    like = before.raster if before is not None else None
    raster = rasterise_curves(curves, view, space, cell, pixel_inks(theme) or {}, like)
    raster.leave_out(_cells(words[: space.lines], GUTTER))
    return Picture(Region(GUTTER, 1, space.columns, space.lines), raster)


def lines_picture(
    stretches: Sequence[Stretch], width: int, lines: int, cell: Cell, theme: str, words: Sequence[Row] = ()
) -> Picture:
    """Draw lines from axis to axis, below the title and the axis names, which are the first row of ``words``."""
    bottom = lines - 0.5
    drawn = [
        (
            (one.left + 0.5, bottom - one.begin * (lines - 1)),
            (one.right + 0.5, bottom - one.end * (lines - 1)),
            ink_of(theme, one.role),
            one.role == FRONT,
        )
        for one in stretches
    ]
    raster = rasterise_segments(drawn, (width, lines), cell, (pixel_inks(theme) or {})["ground"])
    raster.leave_out(_cells(words[1 : lines + 1], 0))
    return Picture(Region(0, 2, width, lines), raster)


def _cells(words: Sequence[Row], left: int) -> Iterator[tuple[int, int]]:
    """Yield the cells that hold text, as column (counted from ``left``) and line."""
    for line, one in enumerate(words):
        column = -left
        for character in one.text:
            cells = width_of(character)
            if column >= 0 and character not in _FRAME:
                yield from ((place, line) for place in range(column, column + cells))
            column += cells
