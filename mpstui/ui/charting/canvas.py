"""A canvas of dots in layers: curves that share a cell share its dots, and none hides another. Pure.

A cell holds 2 by 4 dots (braille), or 1 by 8 levels (blocks) for fonts without braille. Where several layers have dots
in one cell, all are drawn, in the colour of the layer with the fewest cells, so that the thin curve stays in sight.
With blocks a cell holds one level alone: that layer's. Behind the dots some cells may have a ground, the range that a
curve's values take: a shade, which a theme with colours enough turns into a tint.

A curve's buckets are the line through their means and the range of their values. What falls into one column is drawn as
one stroke, whatever the number of buckets: the cost of a chart goes with its width. A bucket without a mean is a gap,
never bridged. Where there are fewer buckets than columns, line and range go straight from one to the next.
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
"""Layers that give their colour up wherever another has dots, however few cells they have."""
_NOISY = 5
"""A curve whose range shows beyond its line in one of this many columns is shaded in all of them."""
_APART = 3
"""Points that are on average at least this many cells apart get a character each."""
_TOUCHING = 4
"""The ranges of neighbouring columns still look like one if this many dots are between them."""
_FARTHEST = 1e9
"""A place more dots than this away from the edge counts as a gap."""
_BRAILLE = 0x2800
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_STROKES = tuple(tuple(tuple(sum(side[top : bottom + 1]) for bottom in range(4)) for top in range(4)) for side in _BITS)
"""The bits of a vertical stroke within one cell, by side, first and last dot."""


Dashes = tuple[int, int]
"""How many columns of a dashed line are drawn, and how many after them are not."""
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
        """The layer that has its colour wherever it has dots."""
        self._layers: dict[str, dict[int, int]] = {}
        self._grounds: dict[int, str] = {}
        self._points: dict[int, str] = {}
        self._shared: set[int] = set()
        self._characters: list[str] = []
        self._roles: list[str] = []

    def column(self, x: int, top: int, bottom: int, layer: str) -> None:
        """Draw a vertical stroke, both ends included, as far as it is on the canvas; with blocks, only its middle."""
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
        """Draw a line from one dot to another, in each column over its whole height so that steep ones have no gaps."""
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
        """Take over what another canvas of the same size has in a layer."""
        self._layers[layer] = other._layers.get(layer, {})

    def point(self, x: int, y: int, layer: str) -> None:
        """Draw a point where something was measured: as a character of its own, or as four dots in a shared cell."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return
        self._points[y // (self.height // self.lines) * self.columns + x * self.columns // self.width] = layer
        for side in () if self.blocks else (x, x ^ 1):
            self.column(side, y, y ^ 1, layer)

    def points_only(self, layer: str) -> None:
        """Draw all of a layer in points."""
        self._points.update(dict.fromkeys(self._layers.get(layer, ()), layer))

    def ground(self, ranges: Mapping[int, range], role: str, curve: str) -> None:
        """Shade the lines of each column, behind everything.

        Where the dots of ``curve``, drawn before, cover what would be shaded, they say as much: only what sticks out of
        them is shaded then, unless so much does that the curve is one of noise.
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
        """Cells for the names of the layers, by line and column: each one is a cell of the layer that it names.

        Its last cell that no other layer shares, and more such cells at least ``every`` columns apart. A layer that
        shares all of its cells gets those it shares with the fewest: the names of equal curves are side by side.

        Args:
            without: columns in which there are to be none.
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
        """Whether no curve has dots in these cells."""
        cells = range(line * self.columns + columns.start, line * self.columns + columns.stop)
        return not any(at in drawn for drawn in self._layers.values() for at in cells)

    def leave_out_curves(self) -> None:
        """Draw no dots, since a picture shows them; where they are is still known."""
        size = self.columns * self.lines
        self._characters, self._roles, self._grounds = [" "] * size, [""] * size, {}

    def spans(
        self, line: int, under: Mapping[int, Span] | None = None, over: Mapping[int, Span] | None = None
    ) -> list[Span]:
        """One line of cells, with other cells put in: those of ``under`` only where no curve is, ``over`` in any case.

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
    """Draw the line through ``values`` at the places of a curve, up to the edges if it continues beyond them.

    Args:
        dashes: any but the whole line tells it from others without colour: gaps, and a point where a value was
            measured, as long as there is room for them.
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
    """The mean in each column of dots that has points, including those beyond the edges; NaN for a gap."""
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
    """Shade the lowest to the highest value of every column, unless the curve's own ``layer``, drawn before, covers it.

    Columns reach for their neighbours, so that a spike stands on the curve it rises from. A cell counts from half its
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
    most = canvas.lines  # a line from beyond the window may come from any height
    lines = {x: range(max(0, (top + 1) >> 2), min(most, (bottom + 3) >> 2)) for x, (top, bottom) in reach.items()}
    canvas.ground(lines, role, layer)


def ranges(curve: SeriesView, axis: Scale, width: int, columns: int) -> Iterator[tuple[int, float, float]]:
    """Column, lowest and highest value along the curve; between two points, those of the lines that join them."""
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
    """How many dots from the top a value is; None if the axis cannot hold it."""
    position = axis.position(value)
    return None if position is None else round((1 - position) * lowest)
