"""A canvas of dots: each cell holds 2 by 4 (braille), or 1 by 8 levels (blocks) for fonts without braille.

A cell belongs to the layer that drew there last. Mixing the dots of two curves in one cell would give both the colour
of one and hide the thin one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..rows import Span
from .sparkline import BLOCKS

_BRAILLE = 0x2800
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


@dataclass(slots=True)
class _Cell:
    layer: str
    bits: int


@dataclass(slots=True)
class Canvas:
    """Dots by pixel, ``(0, 0)`` at the top left."""

    columns: int
    lines: int
    blocks: bool = False
    _cells: dict[tuple[int, int], _Cell] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Pixels across."""
        return self.columns if self.blocks else self.columns * 2

    @property
    def height(self) -> int:
        """Pixels down."""
        return self.lines * (8 if self.blocks else 4)

    def dot(self, x: int, y: int, layer: str) -> None:
        """One dot; outside the canvas nothing happens."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return
        if self.blocks:
            self._cells[x, y // 8] = _Cell(layer, 7 - y % 8)
            return
        bit = _BITS[x & 1][y & 3]
        key = x >> 1, y >> 2
        cell = self._cells.get(key)
        if cell is None or cell.layer != layer:
            self._cells[key] = _Cell(layer, bit)
        else:
            cell.bits |= bit

    def column(self, x: int, top: int, bottom: int, layer: str) -> None:
        """A vertical stroke, both ends included. With blocks only its middle: a cell shows one level."""
        if self.blocks:
            self.dot(x, (top + bottom) // 2, layer)
            return
        for y in range(max(0, min(top, bottom)), min(self.height - 1, max(top, bottom)) + 1):
            self.dot(x, y, layer)

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
        for column in range(self.columns):
            cell = self._cells.get((column, line))
            span = Span(self._character(cell), cell.layer) if cell else (under or {}).get(column, Span(" "))
            if spans and spans[-1].role == span.role:
                spans[-1] = Span(spans[-1].text + span.text, span.role)
            else:
                spans.append(span)
        return spans

    def _character(self, cell: _Cell) -> str:
        return BLOCKS[cell.bits] if self.blocks else chr(_BRAILLE | cell.bits)
