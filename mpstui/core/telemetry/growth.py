"""How fast the memory of an attempt grew towards its end, from the telemetry that was kept of it."""

from __future__ import annotations

from pathlib import Path

from .history import HistoryFile
from .robust import Point, is_growing, slope

RECENT_SECONDS = 600.0
"""Longer would average over an epoch's validation."""
_AMOUNTS = ("memory.driver", "memory.allocated", "memory.footprint")
"""What the trainer holds: on its device, else in all."""


def memory_growth(telemetry: Path, attempt: int) -> float | None:
    """Bytes per second, over the last ten minutes that were recorded of an attempt; 0.0: it did not grow.

    Telemetry is recorded while a screen is open: None where there is too little of it to tell.
    """
    points = [point for point in HistoryFile(telemetry).read() if point.values.get("attempt") == attempt]
    courses: list[list[Point]] = [
        [(point.time, point.values[name]) for point in points if name in point.values] for name in _AMOUNTS
    ]
    course = next((found for found in courses if found), [])
    recent = [point for point in course if point[0] >= course[-1][0] - RECENT_SECONDS]
    found = slope(recent)
    return found if found is None or is_growing(recent) else 0.0
