"""A floor plan as a planar drawing: the faces that its walls enclose, and whether it could be built."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .plans import PIXELS, Bits, Floats, Plan

_ALIGNED_PIXELS = 1.5


@dataclass(frozen=True, slots=True)
class Soundness:
    """How sound one drawn plan is."""

    closed: bool
    """Every corner has walls, and every wall has two different faces at its sides: no loose ends, no open rooms."""
    crossing: float
    """Share of the walls that cross another one."""
    connected: bool
    """All corners are connected."""

    @property
    def sound(self) -> bool:
        """Closed, connected and planar."""
        return self.closed and self.connected and self.crossing == 0


def soundness(plan: Plan) -> Soundness:
    """Judge one plan."""
    places, walls = drawn(plan)
    lines = segments(walls)
    found = traced(places, walls)
    return Soundness(
        closed=_closes(len(places), lines, found),
        crossing=_crossed(places, lines) / max(1, len(lines)),
        connected=_connected(walls),
    )


def measures(plans: Iterable[Plan]) -> dict[str, float]:
    """Shares, 0 to 1, of plans that are closed, connected and sound, and of walls that cross."""
    found = [soundness(plan) for plan in plans]
    return {
        "closed": float(np.mean([each.closed for each in found])),
        "connected": float(np.mean([each.connected for each in found])),
        "crossing": float(np.mean([each.crossing for each in found])),
        "sound": float(np.mean([each.sound for each in found])),
    }


def aligned(plan: Plan) -> float:
    """Share of corners with one straight above or below and another straight beside them, as right angles have."""
    places = plan.corners[plan.real, :2]
    near = np.abs(places[:, None] - places[None]) * PIXELS < _ALIGNED_PIXELS
    partners = near.sum(axis=1) > 1  # every corner is aligned with itself
    return float(partners.all(axis=1).mean()) if len(places) else 0.0


def drawn(plan: Plan) -> tuple[Floats, Bits]:
    """Positions (n, 2) and walls (n, n) of the existing corners."""
    here = np.flatnonzero(plan.real)
    return plan.corners[here, :2], plan.walls[np.ix_(here, here)]


def segments(walls: Bits) -> list[tuple[int, int]]:
    """Each wall once, as the numbers of its corners."""
    return [(int(one), int(other)) for one, other in zip(*np.nonzero(np.triu(walls)), strict=True)]


def traced(places: Floats, walls: Bits) -> list[list[int]]:
    """The closed walks around every face, including the outer ones: at each corner take the next wall clockwise."""
    around = {corner: _by_angle(corner, places, walls) for corner in range(len(places))}
    left = {(one, other) for one in around for other in around[one]}
    walks = []
    while left:
        start = one, other = min(left)
        walk = []
        while True:
            left.discard((one, other))
            walk.append(one)
            turns = around[other]
            one, other = other, turns[(turns.index(one) - 1) % len(turns)]
            if (one, other) == start:
                break
        walks.append(walk)
    return walks


def rooms(places: Floats, walls: Bits) -> list[list[int]]:
    """The enclosed faces, each as the numbers of its corners."""
    return [walk for walk in traced(places, walls) if _signed_area(places[walk]) > 0]


def _by_angle(corner: int, places: Floats, walls: Bits) -> list[int]:
    def angle(other: int) -> float:
        dx, dy = places[other] - places[corner]
        return math.atan2(dy, dx)

    return sorted((int(other) for other in np.flatnonzero(walls[corner])), key=angle)


def _signed_area(outline: Floats) -> float:
    x, y = outline[:, 0].astype(float), outline[:, 1].astype(float)
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


def _closes(corners: int, lines: list[tuple[int, int]], walks: list[list[int]]) -> bool:
    if not lines or len({corner for line in lines for corner in line}) < corners:
        return False
    beside = {
        (one, other): number
        for number, walk in enumerate(walks)
        for one, other in zip(walk, walk[1:] + walk[:1], strict=True)
    }
    return all(beside[one, other] != beside[other, one] for one, other in lines)


def _crossed(places: Floats, lines: list[tuple[int, int]]) -> int:
    """How many walls cross another one; meeting at a corner does not count."""
    if not lines:
        return 0
    ends = np.asarray(lines)
    starts, along = places[ends[:, 0]].astype(float), (places[ends[:, 1]] - places[ends[:, 0]]).astype(float)

    def sides(corners: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """On which side of each wall (rows) each of these corners lies (columns)."""
        apart = places[corners][None] - starts[:, None]
        found: npt.NDArray[np.float64] = along[:, :1] * apart[..., 1] - along[:, 1:] * apart[..., 0]
        return found

    parted = sides(ends[:, 0]) * sides(ends[:, 1]) < 0
    meeting = (ends[:, None, :, None] == ends[None, :, None, :]).any(axis=(2, 3))
    return int((parted & parted.T & ~meeting).any(axis=1).sum())


def _connected(walls: Bits) -> bool:
    if not len(walls):
        return False
    reached, edge = {0}, [0]
    while edge:
        for other in np.flatnonzero(walls[edge.pop()]):
            if int(other) not in reached:
                reached.add(int(other))
                edge.append(int(other))
    return len(reached) == len(walls)
