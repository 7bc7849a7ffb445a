"""RPLAN's floor plans (pictures whose second channel says what each pixel is) as graphs of corners and walls.

Rooms are what the walls separate. Walls are thick in the picture; in the graph they are lines along their middles.
These lines cut the picture into cells. A cell belongs to the room that fills most of it, a corner is where walls end,
meet or turn, and a wall joins two corners along cells of different rooms. All walls are vertical or horizontal.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .plans import CORNERS, SHAPES, BadPlan

SIDE = 256
_LABELS = 14
"""0 to 12 are kinds of rooms, 13 is outside; anything above is wall or door."""
OUTSIDE = 13
_THICKEST_WALL = 9
"""Pixels."""
_SAME_LINE = 2
"""Pixels; wall middles closer together than this are one line."""
_SHORTEST_SIDE = 5
"""Pixels; a shorter piece of a room's outline is a door frame or a step of a slanted wall, not a separate line."""
_SMALLEST_ROOM = 16
"""Pixels."""
_LEAST_AGREEMENT = 0.97
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Colour type of a PNG file -> bytes of a pixel."""
Labels = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]


def plan_of(labels: Labels) -> dict[str, npt.NDArray[Any]]:
    """The graph of a picture's plan, in the layout of the public GSDiff code.

    Raises:
        BadPlan: it shows no rooms, has too many corners, or walls that are not vertical or horizontal.
    """
    regions, kinds = _regions(labels)
    if len(kinds) < 3:  # neither wall nor outside
        raise BadPlan("it shows no room")
    xs, ys = (_lines(regions, axis) for axis in (1, 0))
    cells = _cells(regions, xs, ys)
    agree = float(np.mean(_painted(cells, xs, ys)[regions > 0] == regions[regions > 0]))
    if agree < _LEAST_AGREEMENT:
        raise BadPlan(f"upright and level walls explain only {agree:.0%} of its rooms")
    return graph_of(cells, xs, ys, kinds)


def read_labels(path: Path) -> Labels:
    """The second channel of a PNG file of 256 x 256 pixels, or the only one of a grey file.

    Raises:
        BadPlan: it is not such a file.
    """
    try:
        content = path.read_bytes()
        if not content.startswith(b"\x89PNG\r\n\x1a\n"):
            raise BadPlan("is no PNG file")
        parts, place = [], 8
        while place + 8 <= len(content):
            length, kind = struct.unpack_from(">I4s", content, place)
            parts.append((kind, content[place + 8 : place + 8 + length]))
            place += 12 + length
        width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", parts[0][1])
        if (width, height, depth, interlaced) != (SIDE, SIDE, 8, 0) or colour not in _CHANNELS:
            raise BadPlan(f"has {width} x {height} pixels of {depth} bits, RPLAN's have {SIDE} x {SIDE} of 8")
        channels = _CHANNELS[colour]
        coded = b"".join(data for kind, data in parts if kind == b"IDAT")
        raw = zlib.decompressobj().decompress(coded, SIDE * (1 + SIDE * channels) + 1)
        lines = np.frombuffer(raw, np.uint8).reshape(SIDE, 1 + SIDE * channels)
    except (OSError, struct.error, zlib.error, ValueError, IndexError) as error:
        if isinstance(error, BadPlan):
            raise
        raise BadPlan(f"cannot be read ({error})") from error
    return _unfiltered(lines, channels)[:, :, 1 if channels > 2 else 0]


def _unfiltered(lines: Labels, channels: int) -> Labels:
    """Undo the five filters of PNG, which predict each byte from those at its left and above."""
    found = np.zeros((SIDE + 1, (SIDE + 1) * channels), np.int64)  # a pixel of zeros at the left and a line above
    for number, (kind, *coded) in enumerate(lines.tolist(), start=1):
        above, now = found[number - 1].tolist(), [0] * channels
        for place, value in enumerate(coded, start=channels):
            left, up, corner = now[place - channels], above[place], above[place - channels]
            if kind == 4:
                guess = left + up - corner
                told = min((left, up, corner), key=lambda one, guess=guess: abs(guess - one))  # type: ignore[misc]
            else:
                told = (0, left, up, (left + up) // 2)[kind]
            now.append((value + told) & 0xFF)
        found[number] = now
    return found[1:, channels:].reshape(SIDE, SIDE, channels).astype(np.uint8)


def _regions(labels: Labels) -> tuple[Numbers, list[int]]:
    """The regions between walls: a number for each pixel (0: wall), and the kind of each number; 1 is the outside."""
    walls = labels >= _LABELS
    regions = np.zeros(labels.shape, np.int64)
    regions[labels == OUTSIDE] = 1
    kinds = [-1, OUTSIDE]
    left = ~walls & (regions == 0)
    while left.any():
        seed = np.zeros_like(left)
        seed[np.unravel_index(int(left.argmax()), left.shape)] = True
        room = _grown(seed, left)
        left &= ~room
        if room.sum() >= _SMALLEST_ROOM:
            regions[room] = len(kinds)
            kinds.append(int(np.bincount(labels[room], minlength=_LABELS).argmax()))
    return regions, kinds


def _grown(seed: npt.NDArray[np.bool_], within: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Everything connected with the seed, horizontally and vertically."""
    size = 0
    while (now := int(seed.sum())) > size:
        size = now
        for axis in (0, 1):
            for way in (1, -1):
                seed = _swept(seed, within, axis, way)
    return seed


def _swept(seed: npt.NDArray[np.bool_], within: npt.NDArray[np.bool_], axis: int, way: int) -> npt.NDArray[np.bool_]:
    """The seed and what can be reached from it in one direction without leaving ``within``."""
    turned, free = (np.moveaxis(array, axis, 0)[::way] for array in (seed.copy(), within))
    for line in range(1, len(turned)):
        turned[line] |= turned[line - 1] & free[line]
    return np.moveaxis(turned[::way], 0, axis)


def _lines(regions: Numbers, axis: int) -> Numbers:
    """The positions of walls along an axis: the middles between facing regions, nearby ones merged."""
    counts = np.zeros(2 * SIDE + 1, np.int64)
    """By twice the position, so that middles are integers."""
    for line in regions if axis == 1 else regions.T:
        starts = np.flatnonzero(np.diff(line, prepend=-1))
        ends, values = [*starts[1:].tolist(), SIDE], line[starts].tolist()
        for place, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
            if values[place] == 0:
                beside = values[place - 1 : place] + values[place + 1 : place + 2]
                if len(set(beside)) == 2 and end - start <= _THICKEST_WALL:
                    counts[start + end] += 1
            elif place and values[place - 1]:
                counts[2 * start] += 1
    found: list[int] = []
    places = np.flatnonzero(counts)
    for group in np.split(places, np.flatnonzero(np.diff(places) > 2 * _SAME_LINE) + 1) if len(places) else ():
        behind = np.cumsum(counts[group])
        if behind[-1] >= _SHORTEST_SIDE:
            found.append(int(group[np.searchsorted(behind, behind[-1] / 2)] // 2))
    return np.unique([0, *found, SIDE])


def _cells(regions: Numbers, xs: Numbers, ys: Numbers) -> Numbers:
    """The region of each cell: that of most of its pixels that are not wall."""
    found = np.zeros((len(ys) - 1, len(xs) - 1), np.int64)
    for row, column in np.ndindex(found.shape):
        cell = regions[ys[row] : ys[row + 1], xs[column] : xs[column + 1]]
        counts = np.bincount(cell[cell > 0])
        found[row, column] = counts.argmax() if len(counts) else 0
    for row, column in zip(*np.nonzero(found == 0), strict=True):  # all wall: it joins a neighbour
        beside = [found[y, x] for y, x in ((row, column - 1), (row - 1, column)) if y >= 0 and x >= 0]
        found[row, column] = next((one for one in beside if one), 1)
    return found


def _painted(cells: Numbers, xs: Numbers, ys: Numbers) -> Numbers:
    return np.repeat(np.repeat(cells, np.diff(ys), axis=0), np.diff(xs), axis=1)


def graph_of(cells: Numbers, xs: Numbers, ys: Numbers, kinds: list[int]) -> dict[str, npt.NDArray[Any]]:
    """Corners with the rooms around them, and the walls between them, of a plan that lines cut up.

    Args:
        cells: the number of the room that each cell belongs to, (rows, columns); 1 is the outside.
        xs: pixels of the lines, one more than columns.
        ys: the same for the rows.
        kinds: the label, out of 14, of each room's number.

    Raises:
        BadPlan: it has too many corners.
    """
    around = np.pad(cells, 1, constant_values=1)  # beyond the picture is outside
    upright = around[:, :-1] != around[:, 1:]  # [row of cells, line]: a wall goes down here
    level = around[:-1] != around[1:]  # [line, column of cells]: a wall goes across here
    up, down, left, right = upright[:-1], upright[1:], level[:, :-1], level[:, 1:]
    straight = ((up & down) & ~(left | right)) | ((left & right) & ~(up | down))
    places = np.argwhere((up | down | left | right) & ~straight)
    if len(places) > CORNERS:
        raise BadPlan(f"it has {len(places)} corners, a plan has {CORNERS} at most")
    record = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    corners, together, mask, edges = record.values()
    number = {(int(row), int(column)): place for place, (row, column) in enumerate(places)}
    matrix = edges.reshape(CORNERS, CORNERS)
    for (row, column), here in number.items():
        corners[here, :2] = (xs[column] - 128) / 128, (ys[row] - 128) / 128
        for region in set(around[row : row + 2, column : column + 2].ravel().tolist()):
            corners[here, 2 + kinds[region]] += 1
        for walls, step in ((right, (0, 1)), (down, (1, 0))):
            at = row, column
            while walls[at]:
                at = at[0] + step[0], at[1] + step[1]
                if at in number:
                    matrix[here, number[at]] = matrix[number[at], here] = 1
                    break
    mask[: len(number)] = 1
    together[: len(number), : len(number)] = 1
    return record
