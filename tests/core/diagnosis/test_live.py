"""Warnings while a training runs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.diagnosis import live
from mpstui.core.diagnosis.live import LiveSeries, live_warnings
from mpstui.core.series.store import SeriesStore

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
    assert live.plateau(steps([1.0 + step / 200 for step in range(200)])) is None, "it rises: that is another matter"


def test_a_negative_loss_may_fall_too() -> None:
    assert live.plateau(steps([-1.0 - step / 200 for step in range(200)])) is None


def summed_up(values: Iterable[float]) -> LiveSeries:
    """A long series as the screen has it: buckets of many steps."""
    store = SeriesStore()
    store.add([{"step": step, "loss": value} for step, value in enumerate(values, 1)])
    view = store.view("loss", most=1024)
    assert view is not None
    points, extremes = zip(view.x, view.mean, strict=True), zip(view.low, view.high, strict=True)
    return LiveSeries(loss=tuple(points), loss_extremes=tuple(extremes))


def test_a_loss_at_the_logarithm_of_the_classes_is_constant() -> None:
    chance = random.Random(1)
    stuck = summed_up(2.3026 + chance.uniform(-1e-4, 1e-4) for _ in range(20_000))
    (warning,) = live_warnings(stuck)
    assert warning.id == "plateau"
    assert warning.sentence.startswith("The loss has stayed within 0.1 % of 2.30")
    assert warning.since < 50


@pytest.mark.parametrize("noise", [0.003, 0.05])
@pytest.mark.parametrize("floor", [0.05, 2.8])
def test_a_loss_that_has_converged_to_its_noise_is_no_plateau(floor: float, noise: float) -> None:
    """The means of a hundred steps hardly differ; the steps do."""
    chance = random.Random(2)
    falling = (floor + 3 * math.exp(-step / 5_000) + floor * chance.gauss(0, noise) for step in range(100_000))
    assert live_warnings(summed_up(falling)) == ()


def test_stationary_noise_says_nothing() -> None:
    chance = random.Random(3)
    assert live_warnings(LiveSeries(loss=steps([0.7 + chance.gauss(0, 0.01) for _ in range(400)]))) == ()


def test_a_loss_that_is_printed_with_two_digits_may_only_look_constant() -> None:
    falling = [round(0.02 + math.exp(-step / 40), 2) for step in range(500)]
    assert falling[-150:] == [0.02] * 150
    assert live.plateau(steps(falling)) is None


def test_a_loss_that_dies_is_told_since_it_died() -> None:
    chance = random.Random(4)
    died = [2.3 - step / 300 + chance.gauss(0, 0.05) for step in range(300)] + [0.6931472] * 200
    warning = live.plateau(steps(died))
    assert warning is not None
    assert warning.sentence == "The loss has stayed within 0.1 % of 0.6931 since step 301."


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
