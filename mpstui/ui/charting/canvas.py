"""A canvas of dots in layers: curves that share a cell share its dots, and none hides another. Pure.

A cell holds 2 by 4 dots (braille), or 1 by 8 levels (blocks) for fonts without braille. If several layers have dots in
one cell, all are drawn, in the colour of the layer with the fewest cells, so that a thin curve stays visible. With
blocks, a cell shows the level of that layer alone. Some cells may have a ground behind the dots for the range of a
curve's values: a shade, which a theme with enough colours turns into a tint.

A curve's buckets give the line through their means and the range of their values. Everything in one column is drawn as
a single stroke, whatever the number of buckets: the cost of a chart depends on its width. A bucket without a mean is a
gap, never bridged. With fewer buckets than columns, line and range are interpolated between buckets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from ...core.model.snapshot import Piece, SeriesView
from ..rows import BLOCKS, Span
from .scale import Frame, Scale

SHADE, POINT = "░", "•"
BEHIND = frozenset({"off", "ghost"})
"""Layers that give way to any other layer's colour, however few cells they have."""
_NOISY = 5
"""A curve whose range extends beyond its line in more than one of this many columns is shaded in all of them."""
_APART = 3
"""Points at least this many cells apart on average get a character each."""
_TOUCHING = 4
"""The ranges of neighbouring columns still look connected with up to this many dots between them."""
_FARTHEST = 1e9
"""A place more dots than this beyond the edge counts as a gap."""
_BRAILLE = 0x2800
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_STROKES = tuple(tuple(tuple(sum(side[top : bottom + 1]) for bottom in range(4)) for top in range(4)) for side in _BITS)
"""The bits of a vertical stroke within one cell, by side, first and last dot."""


Dashes = tuple[int, int]
"""How many columns of a dashed line are drawn, and how many are left out after them."""
WHOLE, DOTTED = (1, 0), (1, 1)


class Canvas:
    """Dots by pixel, ``(0, 0)`` at the top left; layers are named by the role that colours them."""

    __slots__ = ("_characters", "_grounds", "_layers", "_points", "_roles", "_shared", "blocks", "columns", "height",
                 "in_front", "lines", "width")  # fmt: skip

    def __init__(self, columns: int, lines: int, blocks: bool = False) -> None:
        self.columns = columns
        self.lines = lines
        self.blocks = blocks
        self.width = columns if blocks else columns * 2
        """Pixels across."""
        self.height = lines * (8 if blocks else 4)
        """Pixels down."""
        self.in_front: str | None = None
        """The layer whose colour is used wherever it has dots."""
        self._layers: dict[str, dict[int, int]] = {}
        self._grounds: dict[int, str] = {}
        self._points: dict[int, str] = {}
        self._shared: set[int] = set()
        self._characters: list[str] = []
        self._roles: list[str] = []

    def column(self, x: int, top: int, bottom: int, layer: str) -> None:
        """Draw a vertical stroke, both ends included, clipped to the canvas; with blocks, only its middle."""
        cells = self._layers.setdefault(layer, {})
        if self.blocks:
            y = (top + bottom) // 2
            if 0 <= x < self.width and 0 <= y < self.height:
                cells[y // 8 * self.columns + x] = 7 - y % 8
            return
        if top > bottom:
            top, bottom = bottom, top
        top, bottom = max(0, top), min(self.height - 1, bottom)
        if top > bottom or not 0 <= x < self.width:
            return
        strokes, first, last = _STROKES[x & 1], top >> 2, bottom >> 2
        for line in range(first, last + 1):
            stroke = strokes[top & 3 if line == first else 0][bottom & 3 if line == last else 3]
            at = line * self.columns + (x >> 1)
            cells[at] = cells.get(at, 0) | stroke

    def line(self, x0: int, y0: int, x1: int, y1: int, layer: str, dashes: Dashes = WHOLE) -> None:
        """Draw a line between two dots, covering its full height in each column so that steep lines have no gaps."""
        if x1 <= x0:
            self.column(x0, y0, y1, layer)
            return
        first, slope = max(0, x0), (y1 - y0) / (x1 - x0)
        previous, (drawn, left_out) = round(y0 + slope * (first - x0)), dashes
        for x in range(first, min(self.width - 1, x1) + 1):
            y = round(y0 + slope * (x - x0))
            if x % (drawn + left_out) < drawn:
                self.column(x, previous if abs(y - previous) > 1 else y, y, layer)
            previous = y

    def take(self, layer: str, other: Canvas) -> None:
        """Take over a layer of another canvas of the same size."""
        self._layers[layer] = other._layers.get(layer, {})

    def point(self, x: int, y: int, layer: str) -> None:
        """Draw a measured point: as a character of its own, or as four dots in a shared cell."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return
        self._points[y // (self.height // self.lines) * self.columns + x * self.columns // self.width] = layer
        for side in () if self.blocks else (x, x ^ 1):
            self.column(side, y, y ^ 1, layer)

    def points_only(self, layer: str) -> None:
        """Draw every cell of a layer as a point."""
        self._points.update(dict.fromkeys(self._layers.get(layer, ()), layer))

    def ground(self, ranges: Mapping[int, range], role: str, curve: str) -> None:
        """Shade the lines of each column, behind everything.

        Where the dots of ``curve``, drawn before, cover what would be shaded, they suffice: only columns that extend
        beyond them are shaded, unless there are so many that the curve is noise.
        """
        cells = self._layers.get(curve, {})
        shaded = {column: [line * self.columns + column for line in lines] for column, lines in ranges.items()}
        out = [column for column, found in shaded.items() if not all(at in cells for at in found)]
        for column in shaded if len(out) * _NOISY > len(shaded) else out:
            for at in shaded[column]:
                self._grounds.setdefault(at, role)

    def labels(
        self, names: Mapping[str, Span], every: int, without: Collection[int] = ()
    ) -> dict[int, dict[int, Span]]:
        """Return cells for the names of the layers, by line and column; each is a cell of the layer that it names.

        These are its last cell that no other layer shares, and further such cells at least ``every`` columns apart. A
        layer that shares all of its cells gets those shared with the fewest: the names of equal curves are adjacent.

        Args:
            without: columns to leave free of names.
        """
        drawn = Counter(at for layer in names for at in self._layers.get(layer, ()))
        found: dict[int, Span] = {}
        for layer, name in names.items():
            cells = (at for at in self._layers.get(layer, ()) if at not in found and at % self.columns not in without)
            order = sorted(cells, key=lambda at: (at % self.columns, -at), reverse=True)
            limit, fewest = self.columns, min((drawn[at] for at in order), default=1)
            for at in order:
                if drawn[at] == fewest and at % self.columns <= limit:
                    found[at], limit = name, at % self.columns - every * (fewest + 1) // 2
        by_line: dict[int, dict[int, Span]] = {}
        for at, name in found.items():
            by_line.setdefault(at // self.columns, {})[at % self.columns] = name
        return by_line

    def is_free(self, line: int, columns: range) -> bool:
        """True if no curve has dots in these cells."""
        cells = range(line * self.columns + columns.start, line * self.columns + columns.stop)
        return not any(at in drawn for drawn in self._layers.values() for at in cells)

    def leave_out_curves(self) -> None:
        """Draw no dots, as a picture shows them; their positions are still known."""
        size = self.columns * self.lines
        self._characters, self._roles, self._grounds = [" "] * size, [""] * size, {}

    def spans(
        self, line: int, under: Mapping[int, Span] | None = None, over: Mapping[int, Span] | None = None
    ) -> list[Span]:
        """Return one line of cells with others put in: ``under`` only where there is no curve, ``over`` everywhere.

        Nothing may be drawn after the first call.
        """
        if not self._characters:
            self._compose()
        start, stop = line * self.columns, (line + 1) * self.columns
        characters, roles = self._characters[start:stop], self._roles[start:stop]
        for column, span in (under or {}).items():
            if characters[column] in (" ", SHADE):
                behind = self._grounds.get(start + column)
                characters[column], roles[column] = span.text, f"{span.role} {behind}-over" if behind else span.role
        for column, span in (over or {}).items():
            characters[column], roles[column] = span
        spans, position = [], 0
        for role, group in groupby(roles):
            length = len(list(group))
            spans.append(Span("".join(characters[position : position + length]), role))
            position += length
        return spans

    def _compose(self) -> None:
        size = self.columns * self.lines
        characters, roles = [" "] * size, [""] * size
        for at, role in self._grounds.items():
            characters[at], roles[at] = SHADE, role
        merged: dict[int, int] = {}
        order = {name: (name == self.in_front, name not in BEHIND, -len(one)) for name, one in self._layers.items()}
        for layer, cells in sorted(self._layers.items(), key=lambda item: order[item[0]]):
            self._shared |= merged.keys() & cells.keys()
            for at, bits in cells.items():
                merged[at] = bits if self.blocks else merged.get(at, 0) | bits
                behind = self._grounds.get(at)
                roles[at] = f"{layer} {behind}-over" if behind else layer
        for at, bits in merged.items():
            characters[at] = BLOCKS[bits] if self.blocks else chr(_BRAILLE | bits)
        for at in self._points.keys() - self._shared:
            characters[at] = POINT
        self._characters, self._roles = characters, roles


def draw_line(
    canvas: Canvas,
    curve: SeriesView | Piece,
    values: Sequence[float],
    space: Frame,
    layer: str,
    *,
    dashes: Dashes = WHOLE,
) -> None:
    """Draw the line through ``values`` at the x positions of a curve, up to the edges if it continues beyond them.

    Args:
        dashes: other than whole, they distinguish the line without colour: gaps, and a point at each measurement if
        there is room.
    """
    broken = dashes != WHOLE
    points = broken and sum(space.x.low <= x <= space.x.high for x in curve.x) * _APART <= space.columns
    dashes = WHOLE if canvas.blocks else dashes
    previous: tuple[int, int] | None = None
    for column, mean in means(curve.x, values, space.x, canvas.width):
        y = _dot(mean, space.y, canvas.height - 1)
        if y is None:
            previous = None
            continue
        canvas.line(*(previous or (column, y)), column, y, layer, dashes)
        if points:
            canvas.point(column, y, layer)
        previous = column, y
    if broken and canvas.blocks and not points:
        canvas.points_only(layer)


def means(x: Sequence[float], values: Sequence[float], axis: Scale, width: int) -> Iterator[tuple[int, float]]:
    """Yield the mean of each dot column that has points, including those beyond the edges; NaN for a gap."""
    left, dots = axis.low, (width - 1) / axis.span
    column, total, count = 0, 0.0, 0
    for place, value in zip(x, values, strict=False):
        across = (place - left) * dots
        if value != value or not abs(across) < _FARTHEST:
            if count:
                yield column, total / count
            yield column, math.nan
            count = 0
            continue
        here = round(across)
        if here != column or not count:
            if count:
                yield column, total / count
            column, total, count = here, 0.0, 0
        total, count = total + value, count + 1
    if count:
        yield column, total / count


def draw_range(canvas: Canvas, curve: SeriesView, space: Frame, role: str, layer: str) -> None:
    """Shade the range of values in every column, unless the curve's own ``layer``, drawn before, covers it.

    Neighbouring columns are joined, so that a spike stands on the curve it rises from. A cell counts from half its
    height.
    """
    lowest, reached = canvas.lines * 4 - 1, None
    reach: dict[int, tuple[int, int]] = {}
    for column, low, high in ranges(curve, space.x, canvas.width, canvas.columns):
        top, bottom = _dot(high, space.y, lowest), _dot(low, space.y, lowest)
        if top is None:
            reached = None
            continue
        bottom = lowest if bottom is None else bottom
        if reached is not None:
            above, below = reached[1] + _TOUCHING < top, bottom + _TOUCHING < reached[0]
            top, bottom = reached[1] if above else top, reached[0] if below else bottom
        reached = top, bottom
        if 0 <= column < canvas.columns:
            highest, deepest = reach.get(column, reached)
            reach[column] = min(highest, top), max(deepest, bottom)
    most = canvas.lines  # a line from outside the window may come from any height
    lines = {x: range(max(0, (top + 1) >> 2), min(most, (bottom + 3) >> 2)) for x, (top, bottom) in reach.items()}
    canvas.ground(lines, role, layer)


def ranges(curve: SeriesView, axis: Scale, width: int, columns: int) -> Iterator[tuple[int, float, float]]:
    """Yield column, minimum and maximum along the curve; between two points, those of the lines joining them."""
    left, dots = axis.low, (width - 1) / axis.span
    wide = width // columns
    column, low, high, known = 0, math.nan, math.nan, False
    for place, least, most in zip(curve.x, curve.low, curve.high, strict=False):
        across = (place - left) * dots
        if least != least or not abs(across) < _FARTHEST:
            if known:
                yield column, low, high
            yield column, math.nan, math.nan
            known = False
            continue
        here = round(across) // wide
        if known and here == column:
            low, high = min(low, least), max(high, most)
            continue
        if known:
            yield column, low, high
            for between in range(max(0, column + 1), min(columns, here)):
                share = (between - column) / (here - column)
                yield between, low + (least - low) * share, high + (most - high) * share
        column, low, high, known = here, least, most, True
    if known:
        yield column, low, high


def _dot(value: float, axis: Scale, lowest: int) -> int | None:
    """Return how many dots from the top a value is; None if the axis cannot hold it."""
    position = axis.position(value)
    return None if position is None else round((1 - position) * lowest)
