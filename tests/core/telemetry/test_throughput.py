"""A slowdown is noticed against the run's own best, however long it lasts."""

from __future__ import annotations

import random

import pytest

from mpstui.core.telemetry.throughput import pace


def speeds(*stretches: tuple[int, float], seed: int = 3) -> list[tuple[float, float]]:
    """Points a second apart; each stretch is a number of points and a speed, with 5 % of noise."""
    noise = random.Random(seed)
    values = [speed * noise.uniform(0.95, 1.05) for count, speed in stretches for _ in range(count)]
    return [(float(at), value) for at, value in enumerate(values)]


def test_steady_speed_is_not_slow() -> None:
    found = pace(speeds((200, 10.0)))
    assert found is not None
    assert not found.is_slow
    assert found.ratio == pytest.approx(1.0, abs=0.05)


def test_throttling_is_noticed_with_its_beginning() -> None:
    found = pace(speeds((100, 10.0), (40, 4.0)))
    assert found is not None
    assert found.is_slow
    assert found.ratio == pytest.approx(0.4, abs=0.03)
    assert found.slow_since == pytest.approx(100, abs=10)


def test_a_long_slowdown_does_not_become_normal() -> None:
    found = pace(speeds((60, 10.0), (2000, 5.0)))
    assert found is not None
    assert found.slow_since == pytest.approx(60, abs=10)


def test_recovery_ends_it() -> None:
    found = pace(speeds((60, 10.0), (60, 5.0), (40, 10.0)))
    assert found is not None
    assert not found.is_slow


def test_single_stalls_and_a_fast_outlier_change_nothing() -> None:
    points = speeds((200, 10.0))
    points[50], points[150], points[199] = (50.0, 500.0), (150.0, 0.1), (199.0, 0.1)
    found = pace(points)
    assert found is not None
    assert not found.is_slow
    assert found.sustained < 11


def test_too_little_or_no_movement_is_unknown() -> None:
    assert pace(speeds((22, 10.0))) is None
    assert pace(speeds((60, 0.0))) is None
