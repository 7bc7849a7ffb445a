"""An image as cells of two pixels, and as pixels for terminals that can show them. Pure."""

from __future__ import annotations

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ...core.runs.png import Colour, Paletted
from ..graphics import Cell, Raster


def fitting(pixels: Paletted, width: int, height: int) -> Paletted:
    """Reduce the image to every n-th pixel so that it fits; return it unchanged if it does."""
    every = max(1, -(-pixels.width // width), -(-pixels.height // height))
    if every == 1:
        return pixels
    lines = tuple(line[::every] for line in pixels.lines[::every])
    return Paletted(len(lines[0]), len(lines), pixels.palette, lines)


def half_blocks(pixels: Paletted, by: int, ground: Style) -> list[Strip]:
    """Draw two pixels in each cell, one above the other, each pixel ``by`` times as large."""
    colours = [Color.from_rgb(*colour) for colour in pixels.palette]
    looks: dict[tuple[int, int], Segment] = {}
    lines = [line for line in pixels.lines for _ in range(by)]
    strips = []
    for top, bottom in zip(lines[::2], [*lines[1::2], None], strict=False):
        segments: list[Segment] = []
        for x in range(len(top)):
            pair = top[x], bottom[x] if bottom is not None else -1
            look = looks.get(pair)
            if look is None:
                under = colours[pair[1]] if bottom is not None else ground.bgcolor
                cell = " " if pair[0] == pair[1] else "▀"
                look = looks[pair] = Segment(cell * by, Style(color=colours[pair[0]], bgcolor=under))
            segments.append(look)
        strips.append(Strip(segments, len(top) * by))
    return strips


def image_raster(pixels: Paletted, by: int, cell: Cell, ground: Colour) -> Raster:
    """Draw its pixels, each ``by`` times as large, centred in as many whole cells as they need."""
    wide, high = pixels.width * by, pixels.height * by
    columns, lines = -(-wide // cell.width), -(-high // cell.height)
    raster = Raster(columns, lines, cell, ground)
    raster.palette = [ground, *pixels.palette]
    left, top = (columns * cell.width - wide) // 2, (lines * cell.height - high) // 2
    for x, column in enumerate(zip(*pixels.lines, strict=True)):
        drawn = bytes([place + 1 for place in column for _ in range(by)])
        for at in range(left + x * by, left + (x + 1) * by):
            raster.columns[at][top : top + high] = drawn
    return raster
