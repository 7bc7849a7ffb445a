"""The growth of memory at the end of an attempt, from the points that were kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.core.telemetry.history import HistoryFile, HistoryPoint, memory_growth

MIB = float(1 << 20)


def keep(path: Path, amount: Callable[[int], float], *, attempt: int = 1, start: float = 0.0, count: int = 60) -> None:
    file = HistoryFile(path)
    for tick in range(count):
        file.append(HistoryPoint(start + 5.0 * tick, {"attempt": attempt, "memory.driver": amount(tick)}))


def test_the_slope_is_that_of_the_attempt_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    keep(path, lambda tick: 9000 * MIB - 50 * MIB * tick)
    keep(path, lambda tick: 100 * MIB + 10 * MIB * tick, attempt=2, start=1000.0)
    assert memory_growth(path, 2) == pytest.approx(2 * MIB)
    assert memory_growth(path, 1) == 0.0


def test_memory_that_only_breathes_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    keep(path, lambda tick: 4000 * MIB + 300 * MIB * (tick % 7))
    assert memory_growth(path, 1) == 0.0


def test_what_was_before_the_last_ten_minutes_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    keep(path, lambda tick: 5 * MIB * tick, count=300)
    keep(path, lambda tick: 1500 * MIB, start=1500.0, count=130)
    assert memory_growth(path, 1) == 0.0


def test_too_little_telemetry_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    assert memory_growth(path, 1) is None
    keep(path, lambda tick: 10 * MIB * tick, count=5)
    assert memory_growth(path, 1) is None
    HistoryFile(path).append(HistoryPoint(1000.0, {"attempt": 1, "cpu_percent": 3.0}))
    assert memory_growth(path, 1) is None


def test_points_without_memory_end_nothing_and_the_footprint_tells_where_no_device_does(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "telemetry.jsonl")
    for tick in range(20):
        file.append(HistoryPoint(5.0 * tick, {"attempt": 1, "memory.footprint": 5 * MIB * tick}))
    file.append(HistoryPoint(1000.0, {"attempt": 1, "cpu_percent": 3.0}))
    assert memory_growth(tmp_path / "telemetry.jsonl", 1) == pytest.approx(MIB)
