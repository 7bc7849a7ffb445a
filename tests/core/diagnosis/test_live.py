"""Warnings while a training runs."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.diagnosis import live
from mpstui.core.diagnosis.live import LiveSeries, live_warnings

GB = 10**9


def steps(values: list[float]) -> list[tuple[float, float]]:
    return [(float(step), value) for step, value in enumerate(values, 1)]


def test_a_healthy_run_is_left_alone() -> None:
    noise = random.Random(1)
    falling = [2.0 / (1 + step / 100) + noise.gauss(0, 0.01) for step in range(400)]
    series = LiveSeries(
        loss=steps(falling),
        gradient_norm=steps([1 + noise.random() for _ in range(200)]),
        memory_bytes=[(float(t), 8 * GB + noise.randrange(GB // 10)) for t in range(0, 600, 10)],
        memory_limit_bytes=16 * GB,
        step_seconds=[(float(t), 0.3 + noise.random() / 10) for t in range(200)],
    )
    assert live_warnings(series) == ()


def test_nan_is_told_since_its_first_step() -> None:
    warning = live.nonfinite(steps([1.0, math.nan, 0.9, math.nan, math.inf]))
    assert warning is not None
    assert warning.since == 4
    assert live.nonfinite(steps([math.nan, 1.0])) is None
    assert live.nonfinite(()) is None


def test_a_plateau_is_a_loss_that_stays() -> None:
    assert live.plateau(steps([1.0] * 200)) is not None
    assert live.plateau(steps([1.0] * 199)) is None
    assert live.plateau(steps([2.0 - step / 200 for step in range(200)])) is None
    assert live.plateau(steps([1.0 + step / 200 for step in range(200)])) is not None


def test_a_negative_loss_may_fall_too() -> None:
    assert live.plateau(steps([-1.0 - step / 200 for step in range(200)])) is None


def test_an_exploding_gradient_stands_out_of_its_median() -> None:
    usual = [1.0, 3.0] * 25
    assert live.exploding_gradient(steps([*usual, 10.0])) is None
    warning = live.exploding_gradient(steps([*usual, 100.0]))
    assert warning is not None
    assert warning.since == 51
    assert live.exploding_gradient(steps([1.0, math.inf])) is not None
    assert live.exploding_gradient(steps([1.0, 1000.0])) is None


def test_memory_that_grows_is_told_with_the_time_left() -> None:
    memory = [(10.0 * n, 8 * GB + n * GB / 10) for n in range(60)]
    warning = live.memory_running_out(memory, 16 * GB)
    assert warning is not None
    assert warning.sentence == "Memory grows by 572 MiB a minute and reaches its limit in 4 minutes."
    assert live.memory_running_out(memory, None) is None
    assert live.memory_running_out(memory, 1000 * GB) is None
    assert live.memory_running_out(memory[:10], 16 * GB) is None


def test_one_peak_does_not_bend_the_slope() -> None:
    flat = [(float(n), 100.0) for n in range(30)]
    flat[-1] = (29.0, 1e9)
    assert live.slope_per_second(flat) == 0
    assert live.slope_per_second([]) == 0


def test_slower_steps_are_told() -> None:
    times = [(float(n), 0.2) for n in range(80)] + [(float(80 + n), 0.5) for n in range(20)]
    warning = live.slowing(times)
    assert warning is not None
    assert "2.5 times" in warning.sentence
    assert live.slowing(times[:89]) is None
    assert live.slowing(times[:30]) is None


def test_the_gravest_comes_first() -> None:
    series = LiveSeries(loss=steps([math.nan] * 300), gradient_norm=steps([math.nan]))
    assert [warning.id for warning in live_warnings(series)] == ["nan_loss", "exploding_gradient"]


@given(st.lists(st.floats(), max_size=250))
def test_no_series_breaks_the_checks(values: list[float]) -> None:
    points = steps(values)
    found = live_warnings(LiveSeries(loss=points, gradient_norm=points, step_seconds=points))
    assert len({warning.id for warning in found}) == len(found)


@pytest.mark.parametrize("limit", [None, 0, 1])
def test_odd_limits_are_no_error(limit: int | None) -> None:
    assert live.memory_running_out([(0.0, 5.0)] * 40, limit) is None
