"""Generated floor plans of another kind: a corridor with rooms at its sides, by rules that share nothing with
:mod:`synthetic_plans`.

A house is a rectangle or an L with a corridor through it. Random slicing trees cut the space at its sides into rooms,
and neighbours are joined into rooms with six or eight corners. There may be a balcony outside, and outer corners may be
bevelled, so that not all walls are vertical or horizontal. A room's kind follows from where it lies.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from .plan_graph import soundness
from .plans import CORNERS, SHAPES, BadPlan, Plan, plan_of_record
from .rplan import OUTSIDE, SIDE, graph_of

MOST_CORNERS = 32
"""A plan with more is drawn again."""
_UNIT = 4
"""The grid of walls, in pixels."""
_LENGTH, _DEPTH = (26, 50), (22, 38)
"""Smallest and largest of a house, in units."""
_CORRIDOR_WIDTH = (3, 5)
_SMALLEST_SIDE = 5
_ENOUGH = (60, 190)
"""Square units: a piece smaller than a random draw between these is a room."""
_L_SHAPED, _JOINED, _WITH_BALCONY, _BEVELLED = 0.5, 0.3, 0.4, 0.35
_LIVING, _BEDROOM, _KITCHEN, _BATHROOM, _BALCONY, _STORAGE = 0, 1, 2, 3, 9, 11
"""RPLAN's labels."""
_SMALL_ROOM = 50
_BEVEL_PIXELS = (10, 26)
Cells = npt.NDArray[np.int64]


@functools.lru_cache(maxsize=4)
def generated(seed: int, part: int, count: int) -> tuple[Plan, ...]:
    """``count`` plans; equal seeds and parts give equal plans, other parts are drawn independently."""
    return tuple(_plan(np.random.default_rng([seed, part, number, 0xC0])) for number in range(count))


def _plan(random: np.random.Generator) -> Plan:
    while True:
        cells = _house(random)
        xs, ys = (
            np.array([0, *(np.flatnonzero((np.diff(cells, axis=axis) != 0).any(axis=1 - axis)) + 1), len(cells)])
            for axis in (1, 0)
        )
        kinds = _kinds(cells)
        try:
            record = graph_of(cells[np.ix_(ys[:-1], xs[:-1])], xs * _UNIT, ys * _UNIT, kinds)
        except BadPlan:
            continue
        if record["padding_mask"].sum() <= MOST_CORNERS - 2:
            for _ in range(2):
                if random.random() < _BEVELLED:
                    _bevel(record, random)
            plan = plan_of_record(record)
            if soundness(plan).sound:  # a room wholly inside another leaves the walls in two pieces
                return plan


def _house(random: np.random.Generator) -> Cells:
    """The number of the room that each square unit belongs to; 1 is the outside, 2 the corridor."""
    size = SIDE // _UNIT
    cells = np.ones((size, size), np.int64)
    length, depth = (int(random.integers(low, high + 1)) for low, high in (_LENGTH, _DEPTH))
    left, top = (size - length) // 2 + int(random.integers(-3, 4)), (size - depth) // 2 + int(random.integers(-3, 4))
    width = int(random.integers(*_CORRIDOR_WIDTH))
    corridor = top + int(random.uniform(0.35, 0.65) * (depth - width))
    rooms: list[tuple[int, int, int, int]] = []
    for low, high in ((top, corridor), (corridor + width, top + depth)):
        rooms += _sliced((left, low, left + length, high), random)
    if random.random() < _L_SHAPED:  # the house ends earlier at one side of the corridor
        ends = [room for room in rooms if room[2] == left + length and room[1] >= corridor]
        rooms = [room for room in rooms if room not in ends]
    cells[corridor : corridor + width, left : left + length] = 2
    for number, (x, y, right, bottom) in enumerate(rooms, start=3):
        cells[y:bottom, x:right] = number
    for one in range(3, len(rooms) + 3):
        beside = sorted(_beside(cells, one) - {1, 2})
        if beside and random.random() < _JOINED:
            cells[cells == one] = beside[int(random.integers(len(beside)))]
    if random.random() < _WITH_BALCONY:
        _add_balcony(cells, (left, top, left + length, top + depth), len(rooms) + 3, random)
    turned = np.rot90(cells, int(random.integers(4)))
    return np.asarray(np.unique(turned, return_inverse=True)[1].reshape(turned.shape) + 1)


def _sliced(piece: tuple[int, int, int, int], random: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """Cut a piece in two repeatedly, anywhere and in either direction, until its parts are small enough."""
    x, y, right, bottom = piece
    width, height = right - x, bottom - y
    ways = [way for way, side in (("across", width), ("down", height)) if side >= 2 * _SMALLEST_SIDE]
    if not ways or width * height < random.uniform(*_ENOUGH):
        return [piece]
    across = ways == ["across"] or (len(ways) == 2 and random.random() < width / (width + height))
    at = int(random.integers(_SMALLEST_SIDE, (width if across else height) - _SMALLEST_SIDE + 1))
    first = (x, y, x + at, bottom) if across else (x, y, right, y + at)
    second = (x + at, y, right, bottom) if across else (x, y + at, right, bottom)
    return [*_sliced(first, random), *_sliced(second, random)]


def _beside(cells: Cells, number: int) -> set[int]:
    """The neighbours with which a room shares a wall."""
    here = cells == number
    around = np.zeros_like(here)
    around[1:] |= here[:-1]
    around[:-1] |= here[1:]
    around[:, 1:] |= here[:, :-1]
    around[:, :-1] |= here[:, 1:]
    return set(np.unique(cells[around & ~here]).tolist())


def _add_balcony(cells: Cells, house: tuple[int, int, int, int], number: int, random: np.random.Generator) -> None:
    """Add a strip outside the house, along part of the side that is never cut away."""
    left, top, right, _ = house
    long = int(random.integers(6, 13))
    at = int(random.integers(left, right - long + 1))
    cells[top - 3 : top, at : at + long] = number


def _kinds(cells: Cells) -> list[int]:
    """RPLAN's label for each room number, by where the room lies and its size relative to the others."""
    count = int(cells.max())
    areas = np.bincount(cells.ravel(), minlength=count + 1)
    kinds = [-1, OUTSIDE, _LIVING, *[_BEDROOM] * (count - 2)]
    inner = [number for number in range(3, count + 1) if 1 not in _beside(cells, number)]
    outer = sorted((number for number in range(3, count + 1) if number not in inner), key=lambda number: areas[number])
    alone = [number for number in outer if 2 not in _beside(cells, number)]
    for number in inner:
        kinds[number] = _STORAGE if areas[number] < _SMALL_ROOM else _BATHROOM
    for number in alone:
        kinds[number] = _BALCONY if areas[number] < _SMALL_ROOM else _BEDROOM
    reached = [number for number in outer if number not in alone]
    for number, kind in zip(reached, (_BATHROOM, _KITCHEN), strict=False):
        kinds[number] = kind
    if len(reached) > 2:
        kinds[reached[-1]] = _LIVING
    return kinds


def _bevel(record: dict[str, npt.NDArray[np.float64]], random: np.random.Generator) -> None:
    """Bevel one outer corner, where two walls end, with a slanted wall."""
    corners, _, mask, edges = (record[name] for name in SHAPES)
    walls = edges.reshape(CORNERS, CORNERS)
    count = int(mask.sum())
    pointed = np.flatnonzero((walls.sum(axis=1) == 2) & (corners[:, 2 + OUTSIDE] > 0))
    if not len(pointed):
        return
    here = int(random.choice(pointed))
    one, other = np.flatnonzero(walls[here]).tolist()
    place = corners[here, :2].copy()
    room = min(float(np.abs(corners[end, :2] - place).max()) for end in (one, other))
    by = min(random.uniform(*_BEVEL_PIXELS) / (SIDE / 2), room / 2)
    corners[count] = corners[here]
    for number, end in ((here, one), (count, other)):
        corners[number, :2] = place + np.sign(np.round(corners[end, :2] - place, 6)) * by
    mask[count] = 1
    record["global_matrix_np_padding"][: count + 1, : count + 1] = 1
    walls[[here, other], [other, here]] = 0
    walls[[here, count, count, other], [count, here, other, count]] = 1
