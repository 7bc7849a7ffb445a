"""A canvas of dots: each cell holds 2 by 4 (braille), or 1 by 8 levels (blocks) for fonts without braille.

A cell belongs to the layer that drew there last. Mixing the dots of two curves in one cell would give both the colour
of one and hide the thin one.
"""

from __future__ import annotations

from ..rows import Span
from .sparkline import BLOCKS

_BRAILLE = 0x2800
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BLANK = Span(" ")
_STROKES = tuple(tuple(tuple(sum(side[top : bottom + 1]) for bottom in range(4)) for top in range(4)) for side in _BITS)
"""The bits of a vertical stroke within one cell, by side, first and last dot."""


class Canvas:
    """Dots by pixel, ``(0, 0)`` at the top left."""

    __slots__ = ("_bits", "_layers", "blocks", "columns", "height", "lines", "width")

    def __init__(self, columns: int, lines: int, blocks: bool = False) -> None:
        self.columns = columns
        self.lines = lines
        self.blocks = blocks
        self.width = columns if blocks else columns * 2
        """Pixels across."""
        self.height = lines * (8 if blocks else 4)
        """Pixels down."""
        self._bits = [0] * (columns * lines)
        self._layers: list[str | None] = [None] * (columns * lines)

    def dot(self, x: int, y: int, layer: str) -> None:
        """One dot; outside the canvas nothing happens."""
        self.column(x, y, y, layer)

    def column(self, x: int, top: int, bottom: int, layer: str) -> None:
        """A vertical stroke, both ends included. With blocks only its middle: a cell shows one level."""
        if self.blocks:
            self._level(x, (top + bottom) // 2, layer)
            return
        if top > bottom:
            top, bottom = bottom, top
        top, bottom = max(0, top), min(self.height - 1, bottom)
        if top > bottom or not 0 <= x < self.width:
            return
        strokes, first, last = _STROKES[x & 1], top >> 2, bottom >> 2
        bits, layers = self._bits, self._layers
        for line in range(first, last + 1):
            stroke = strokes[top & 3 if line == first else 0][bottom & 3 if line == last else 3]
            at = line * self.columns + (x >> 1)
            bits[at] = bits[at] | stroke if layers[at] == layer else stroke
            layers[at] = layer

    def _level(self, x: int, y: int, layer: str) -> None:
        if 0 <= x < self.width and 0 <= y < self.height:
            at = y // 8 * self.columns + x
            self._bits[at], self._layers[at] = 7 - y % 8, layer

    def line(self, x0: int, y0: int, x1: int, y1: int, layer: str) -> None:
        """A line from one dot to another (the whole way for every column, so that steep ones stay closed)."""
        if x1 <= x0:
            self.column(x0, y0, y1, layer)
            return
        previous = y0
        for x in range(x0, x1 + 1):
            y = round(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
            self.column(x, previous if abs(y - previous) > 1 else y, y, layer)
            previous = y

    def spans(self, line: int, under: dict[int, Span] | None = None) -> list[Span]:
        """One line of cells; where nothing is drawn, ``under`` may hold a single cell of something else."""
        spans: list[Span] = []
        text, role = "", ""
        start = line * self.columns
        for column in range(self.columns):
            layer = self._layers[start + column]
            if layer is not None:
                character = self._character(self._bits[start + column])
            else:
                character, layer = (under or {}).get(column, _BLANK)
            if layer != role:
                spans += [Span(text, role)] if text else []
                text, role = "", layer
            text += character
        return [*spans, Span(text, role)] if text else spans

    def _character(self, bits: int) -> str:
        return BLOCKS[bits] if self.blocks else chr(_BRAILLE | bits)
