"""Generated floor plans: a rectangle cut into rooms; a room's kind follows from its size."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .plans import CORNERS, FEATURES, PIXELS, ROOMS, Bits, Floats, Plan

_UNIT = 8
"""The grid of walls, in pixels."""
_SIDES = (12, 24)
_SHORTEST_WALL = 4
_ROOMS = (3, 7)
MOST_CORNERS = 2 * _ROOMS[1] + 2
"""Four corners, and two more for each cut."""
_KINDS = tuple(ROOMS.index(name) for name in ("living room", "bedroom", "bedroom", "kitchen", "bathroom", "balcony"))
_STORAGE, _OUTSIDE = ROOMS.index("storage"), ROOMS.index("outside")
Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Room:
    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        return (self.right - self.left) * (self.bottom - self.top)

    def sides(self) -> tuple[tuple[Point, Point], ...]:
        a, b = (self.left, self.top), (self.right, self.top)
        c, d = (self.right, self.bottom), (self.left, self.bottom)
        return (a, b), (b, c), (d, c), (a, d)

    def borders(self, point: Point) -> bool:
        x, y = point
        across, down = self.left <= x <= self.right, self.top <= y <= self.bottom
        return across and down and (x in (self.left, self.right) or y in (self.top, self.bottom))


@functools.lru_cache(maxsize=4)
def generated(seed: int, part: int, count: int) -> tuple[Plan, ...]:
    """``count`` plans; equal seeds and parts give equal plans, other parts are drawn independently."""
    return tuple(_plan(np.random.default_rng([seed, part, number])) for number in range(count))


def with_walls_shuffled(plan: Plan, random: np.random.Generator) -> Plan:
    """The same corners and as many walls, but between random corners: nothing tells where the walls are."""
    here = np.flatnonzero(plan.real)
    other = random.permutation(here)
    walls = np.zeros_like(plan.walls)
    walls[np.ix_(here, here)] = plan.walls[np.ix_(other, other)]
    return Plan(plan.corners, plan.real, walls)


def with_corners_shuffled(plans: tuple[Plan, ...], random: np.random.Generator) -> tuple[Plan, ...]:
    """As many corners in each plan, each taken from any plan: no corner tells anything about another."""
    pool = np.concatenate([plan.corners[plan.real] for plan in plans])
    random.shuffle(pool)
    shuffled, taken = [], 0
    for plan in plans:
        corners = plan.corners.copy()
        corners[plan.real] = pool[taken : taken + plan.real.sum()]
        taken += int(plan.real.sum())
        shuffled.append(Plan(corners, plan.real, plan.walls))
    return tuple(shuffled)


def _plan(random: np.random.Generator) -> Plan:
    width, height = (int(side) for side in random.integers(_SIDES[0], _SIDES[1] + 1, 2))
    left, top = -(width // 2) + int(random.integers(-2, 3)), -(height // 2) + int(random.integers(-2, 3))
    outline = _Room(left, top, left + width, top + height)
    rooms = _cut(outline, int(random.integers(_ROOMS[0], _ROOMS[1] + 1)), random)
    points = sorted({point for room in rooms for side in room.sides() for point in side})
    corners, real = _corners(points, rooms, outline)
    return Plan(corners, real, _walls(points, rooms))


def _cut(outline: _Room, wanted: int, random: np.random.Generator) -> list[_Room]:
    rooms = [outline]
    while len(rooms) < wanted:
        largest = max(rooms, key=lambda room: room.area)
        halves = _halves(largest, random)
        if halves is None:
            break
        rooms.remove(largest)
        rooms.extend(halves)
    return sorted(rooms, key=lambda room: (-room.area, room.left, room.top))


def _halves(room: _Room, random: np.random.Generator) -> tuple[_Room, _Room] | None:
    across = room.right - room.left >= room.bottom - room.top
    low, high = (room.left, room.right) if across else (room.top, room.bottom)
    if high - low < 2 * _SHORTEST_WALL:
        return None
    at = int(random.integers(low + _SHORTEST_WALL, high - _SHORTEST_WALL + 1))
    if across:
        return _Room(room.left, room.top, at, room.bottom), _Room(at, room.top, room.right, room.bottom)
    return _Room(room.left, room.top, room.right, at), _Room(room.left, at, room.right, room.bottom)


def _corners(points: list[Point], rooms: list[_Room], outline: _Room) -> tuple[Floats, Bits]:
    corners = np.zeros((CORNERS, FEATURES), np.float32)
    corners[: len(points), :2] = np.asarray(points, np.float32) * (_UNIT / PIXELS)
    for number, point in enumerate(points):
        for rank, room in enumerate(rooms):
            if room.borders(point):
                corners[number, 2 + (_KINDS[rank] if rank < len(_KINDS) else _STORAGE)] = 1
        corners[number, 2 + _OUTSIDE] = outline.borders(point)
    return corners, np.arange(CORNERS) < len(points)


def _walls(points: list[Point], rooms: list[_Room]) -> Bits:
    numbers = {point: number for number, point in enumerate(points)}
    walls: npt.NDArray[np.bool_] = np.zeros((CORNERS, CORNERS), bool)
    for room in rooms:
        for start, end in room.sides():
            # Points sort along a side, since either x or y is the same for all of them.
            passed = [point for point in points if room.borders(point) and start <= point <= end]
            line = [point for point in passed if point[0] == start[0] == end[0] or point[1] == start[1] == end[1]]
            for one, other in itertools.pairwise(line):
                walls[numbers[one], numbers[other]] = walls[numbers[other], numbers[one]] = True
    return walls
