"""The charts of a comparison in pixels: curves over each other, or lines through their settings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Region

from ..charting.pixels import rasterise_curves, rasterise_segments
from ..charting.plot import GUTTER, ChartView
from ..charting.scale import Frame
from ..graphics import Cell, Picture
from ..theme import RUN_ROLES, ink_of, pixel_inks
from .overlay import Overlay
from .parallel import FRONT, Stretch


def curves_picture(
    data: Overlay, view: ChartView, space: Frame, first: int | None, cell: Cell, theme: str, before: Picture | None
) -> Picture:
    """The runs that are not hidden, ``first`` over the others; below the title of the comparison."""
    seen = [(at, one) for at, one in enumerate(data.runs) if one is not None and at not in data.hidden]
    curves = [(one, ink_of(theme, RUN_ROLES[at])) for at, one in sorted(seen, key=lambda pair: pair[0] == first)]
    like = before.raster if before is not None else None
    raster = rasterise_curves(curves, view, space, cell, pixel_inks(theme) or {}, like)
    return Picture(Region(GUTTER, 1, space.columns, space.lines), raster)


def lines_picture(stretches: Sequence[Stretch], width: int, lines: int, cell: Cell, theme: str) -> Picture:
    """From axis to axis, below the title and the names of the axes."""
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
    return Picture(Region(0, 2, width, lines), raster)
