"""Sheets of floor plans as SVG and PNG, using only numpy and zlib."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .plan_graph import drawn, rooms, segments
from .plans import ROOMS, Floats, Plan

_COLOURS = ("#f6e3b4", "#b9d3ee", "#c9c2b0", "#f2b8a0", "#a8dcd1", "#cfe8b0", "#f4f4f4")
_WALL, _CORNER = "#404040", "#c0392b"
_CELL, _MARGIN, _COLUMNS = 160, 8, 4
Picture = npt.NDArray[np.uint8]


def write(plans: Sequence[Plan], path: Path, title: str) -> list[Path]:
    """Draw plans on one sheet, to ``path`` with .svg and with .png.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    vector, raster = path.with_suffix(".svg"), path.with_suffix(".png")
    vector.write_text(svg(plans, title), encoding="utf-8")
    raster.write_bytes(png(picture(plans)))
    return [vector, raster]


def svg(plans: Sequence[Plan], title: str) -> str:
    """A sheet of plans: coloured rooms, walls, corners."""
    columns, rows = _grid(len(plans))
    parts = [f'<g transform="translate({x},{y})">{_drawn_svg(plan)}</g>' for plan, (x, y) in _placed(plans)]
    width, height = columns * _CELL, rows * _CELL
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    paper = f'<title>{title}</title><rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, paper, *parts, "</svg>\n"])


def picture(plans: Sequence[Plan]) -> Picture:
    """The same sheet as pixels: uint8, shape (height, width, 3)."""
    columns, rows = _grid(len(plans))
    sheet = np.full((rows * _CELL, columns * _CELL, 3), 255, np.uint8)
    for plan, (x, y) in _placed(plans):
        _paint(plan, sheet[y : y + _CELL, x : x + _CELL])
    return sheet


def png(pixels: Picture) -> bytes:
    """Pixels as a PNG file (RFC 2083): 8-bit RGB, unfiltered rows."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _grid(count: int) -> tuple[int, int]:
    columns = max(1, min(_COLUMNS, count))
    return columns, max(1, -(-count // columns))


def _placed(plans: Sequence[Plan]) -> list[tuple[Plan, tuple[int, int]]]:
    columns, _ = _grid(len(plans))
    return [(plan, (n % columns * _CELL, n // columns * _CELL)) for n, plan in enumerate(plans)]


def _on_paper(places: Floats) -> Floats:
    """Coordinates in [-1, 1] as pixels of a cell."""
    return ((places + 1) / 2 * (_CELL - 2 * _MARGIN) + _MARGIN).astype(np.float32)


def _kind(plan: Plan, outline: Sequence[int]) -> int:
    """The kind of room that most corners of the outline name."""
    bits = plan.corners[np.flatnonzero(plan.real)[list(outline)], 2:-1]
    return int(bits.sum(axis=0).argmax()) if bits.any() else len(ROOMS) - 1


def _drawn_svg(plan: Plan) -> str:
    places, walls = drawn(plan)
    spots = [f"{x:.1f},{y:.1f}" for x, y in _on_paper(places).tolist()]
    shapes = [
        f'<polygon points="{" ".join(spots[corner] for corner in outline)}" fill="{_COLOURS[_kind(plan, outline)]}"/>'
        for outline in rooms(places, walls)
    ]
    lines = " ".join(f"M{spots[one]} L{spots[other]}" for one, other in segments(walls))
    dots = "".join('<circle cx="{}" cy="{}" r="2"/>'.format(*spot.split(",")) for spot in spots)
    stroke = f'<path d="{lines}" stroke="{_WALL}" stroke-width="3" fill="none"/>' if lines else ""
    return f'{"".join(shapes)}{stroke}<g fill="{_CORNER}">{dots}</g>'


def _paint(plan: Plan, cell: Picture) -> None:
    places, walls = drawn(plan)
    spots = _on_paper(places)
    for outline in rooms(places, walls):
        cell[_inside(spots[outline])] = _rgb(_COLOURS[_kind(plan, outline)])
    for one, other in segments(walls):
        steps = np.linspace(0, 1, _CELL * 2)[:, None]
        _dots(cell, spots[one] * (1 - steps) + spots[other] * steps, 1, _WALL)
    _dots(cell, spots, 2, _CORNER)


def _inside(outline: Floats) -> npt.NDArray[np.bool_]:
    """The pixels of a cell that lie inside an outline, by the even-odd rule."""
    y, x = np.mgrid[:_CELL, :_CELL] + 0.5
    inside = np.zeros((_CELL, _CELL), bool)
    for (ax, ay), (bx, by) in zip(outline.tolist(), np.roll(outline, -1, axis=0).tolist(), strict=True):
        if ay != by:
            inside ^= ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
    return inside


def _dots(cell: Picture, spots: npt.NDArray[np.floating], radius: int, colour: str) -> None:
    column, row = np.rint(spots).astype(int).T
    for down in range(-radius, radius + 1):
        for across in range(-radius, radius + 1):
            rows, columns = np.clip(row + down, 0, _CELL - 1), np.clip(column + across, 0, _CELL - 1)
            cell[rows, columns] = _rgb(colour)


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue
