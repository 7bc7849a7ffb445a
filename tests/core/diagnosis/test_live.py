"""Warnings while a training runs: of its curves, its memory and its pace."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.diagnosis import live
from mpstui.core.diagnosis.live import LiveWarning, LiveWatch, curve_warnings
from mpstui.core.model.snapshot import Health, Numbers, RunSnapshot, SeriesView, State
from mpstui.core.series.series import SeriesStore
from mpstui.core.telemetry.headroom import Headroom, MemoryPoint, headroom
from tests.snapshots import changed

GB = 10**9


RUN = RunSnapshot(
    run="a",
    name="net",
    dir=Path("/none"),
    state=State.RUNNING,
    health=Health.TRAINING,
    seen=0.0,
    attempt=1,
    numbers=Numbers(step=50),
)


def curve(name: str, values: list[float]) -> SeriesView:
    x = [float(step) for step in range(1, len(values) + 1)]
    return SeriesView(name, "step", x, values, values, values, values, len(values))


def of_curves(**curves: SeriesView | None) -> list[LiveWarning]:
    return list(curve_warnings(replace(RUN, series={name: view for name, view in curves.items() if view is not None})))


def ids(watch: LiveWatch, moment: float, headroom: Headroom | None = None, **known: Any) -> list[str]:
    return [warning.id for warning in watch.poll(changed(RUN, seen=moment, **known), headroom)]


def steps(values: list[float]) -> list[tuple[float, float]]:
    return [(float(step), value) for step, value in enumerate(values, 1)]


def test_a_healthy_run_is_left_alone() -> None:
    noise = random.Random(1)
    falling = [2.0 / (1 + step / 100) + noise.gauss(0, 0.01) for step in range(400)]
    norms = [1 + noise.random() for _ in range(200)]
    curves = {"loss": curve("loss", falling), "grad_norm": curve("grad_norm", norms)}
    calm = headroom([memory(10.0 * n, 8 * GB + noise.randrange(GB // 10)) for n in range(60)])
    watch = LiveWatch()
    for tick in range(200):
        assert ids(watch, 5.0 * tick, calm, series=curves, steps_per_second=noise.uniform(2.8, 3.2)) == []


def test_nan_is_told_since_its_first_step() -> None:
    warning = live.nonfinite(steps([1.0, math.nan, 0.9, math.nan, math.inf]))
    assert warning is not None
    assert warning.sentence.endswith("since step 4.")
    assert live.nonfinite(steps([math.nan, 1.0])) is None
    assert live.nonfinite(()) is None


def test_a_plateau_is_a_loss_that_stays() -> None:
    assert live.plateau(steps([1.0] * 200)) is not None
    assert live.plateau(steps([1.0] * 199)) is None
    assert live.plateau(steps([2.0 - step / 200 for step in range(200)])) is None
    assert live.plateau(steps([1.0 + step / 200 for step in range(200)])) is None, "it rises: that is another matter"


def test_a_negative_loss_may_fall_too() -> None:
    assert live.plateau(steps([-1.0 - step / 200 for step in range(200)])) is None


def summed_up(values: Iterable[float]) -> SeriesView | None:
    """A long series as the screen has it: buckets of many steps."""
    store = SeriesStore()
    store.add([{"step": step, "loss": value} for step, value in enumerate(values, 1)])
    return store.views(["loss"], most=1024).get("loss")


def test_a_loss_at_the_logarithm_of_the_classes_is_constant() -> None:
    chance = random.Random(1)
    stuck = summed_up(2.3026 + chance.uniform(-1e-4, 1e-4) for _ in range(20_000))
    (warning,) = of_curves(loss=stuck)
    assert warning.id == "plateau"
    assert warning.sentence.startswith("The loss has stayed within 0.1 % of 2.30")
    assert int(warning.sentence.rsplit(" ", 1)[1].rstrip(".")) < 50


@pytest.mark.parametrize("noise", [0.003, 0.05])
@pytest.mark.parametrize("floor", [0.05, 2.8])
def test_a_loss_that_has_converged_to_its_noise_is_no_plateau(floor: float, noise: float) -> None:
    """The means of a hundred steps hardly differ; the steps do."""
    chance = random.Random(2)
    falling = (floor + 3 * math.exp(-step / 5_000) + floor * chance.gauss(0, noise) for step in range(100_000))
    assert of_curves(loss=summed_up(falling)) == []


def test_stationary_noise_says_nothing() -> None:
    chance = random.Random(3)
    assert live.plateau(steps([0.7 + chance.gauss(0, 0.01) for _ in range(400)])) is None


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
    assert warning.sentence == "The gradient norm is 100, usually 2."
    assert live.exploding_gradient(steps([1.0, math.inf])) is not None
    assert live.exploding_gradient(steps([1.0, 1000.0])) is None


def memory(time: float, driver: float) -> MemoryPoint:
    return MemoryPoint(time=time, driver=int(driver), limit=16 * GB)


def test_memory_that_grows_is_told_with_the_time_left() -> None:
    growing = [memory(10.0 * n, 8 * GB + n * GB / 10) for n in range(60)]
    warning = live.memory_running_out(headroom(growing))
    assert warning is not None
    assert warning.sentence == "Device memory grows by 572 MiB a minute and reaches its limit in 4 minutes."
    slowly = [memory(10.0 * n, 8 * GB + n * GB / 500) for n in range(60)]
    assert headroom(slowly).seconds_to_limit is not None  # type: ignore[union-attr]
    assert live.memory_running_out(headroom(slowly)) is None, "it is hours away"
    assert live.memory_running_out(headroom(growing[:5])) is None
    assert live.memory_running_out(None) is None


def test_the_gravest_comes_first() -> None:
    growing = headroom([memory(10.0 * n, 8 * GB + n * GB / 10) for n in range(60)])
    watch, found = LiveWatch(), list[str]()
    curves = {"loss": curve("loss", [1.0] * 200), "grad_norm": curve("grad_norm", [1.0] * 60 + [math.nan])}
    for sample in range(80):
        pace = 4.0 if sample < 60 else 1.0
        found = ids(watch, sample * 5.0, growing, series=curves, steps_per_second=pace)
    assert found == ["memory_growing", "exploding_gradient", "slowing", "plateau"]
    assert ids(watch, 400.0, loss_is_finite=False, steps_per_second=1.0) == ["nan_loss", "slowing"]


def test_the_pace_is_forgotten_with_the_attempt() -> None:
    watch = LiveWatch()
    for sample in range(80):
        ids(watch, sample * 5.0, steps_per_second=4.0 if sample < 60 else 1.0)
    assert ids(watch, 400.0, steps_per_second=1.0) == ["slowing"]
    assert ids(watch, 405.0, attempt=2, steps_per_second=1.0) == []


@given(st.lists(st.floats(), max_size=250))
def test_no_series_breaks_the_checks(values: list[float]) -> None:
    found = of_curves(loss=curve("loss", values), grad_norm=curve("grad_norm", values))
    assert len({warning.id for warning in found}) == len(found)


def test_curves_are_judged_as_they_are() -> None:
    assert ids(LiveWatch(), 0.0, series={"loss": curve("loss", [1.0] * 200)}) == ["plateau"]
    assert ids(LiveWatch(), 0.0, series={"loss": curve("loss", [1.0, math.nan])}) == ["nan_loss"]
    assert ids(LiveWatch(), 0.0, loss_is_finite=False) == ["nan_loss"]
    norms = curve("grad_norm", [1.0] * 60 + [500.0])
    assert ids(LiveWatch(), 0.0, series={"grad_norm": norms}) == ["exploding_gradient"]


def test_a_run_that_does_not_train_is_left_alone() -> None:
    flat = {"loss": curve("loss", [1.0] * 200)}
    assert ids(LiveWatch(), 0.0, state=State.FINISHED, series=flat) == []
    assert ids(LiveWatch(), 0.0, paused=True, series=flat) == []


def test_a_watched_file_that_is_gone_is_told_before_all_else() -> None:
    gone = replace(RUN, state=State.WATCHED, name="train.log", gone=True)
    assert LiveWatch().poll(gone)[0].sentence == (
        "train.log is gone (deleted, or moved away); what is shown was read before."
    )


def test_a_log_that_ends_with_an_exception_comes_before_all_else_at_once() -> None:
    watch = LiveWatch()
    flat = {"loss": curve("loss", [1.0] * 200)}
    assert ids(watch, 0.0, series=flat) == ["plateau"]
    crashed = replace(RUN, seen=0.1, state=State.WATCHED, series=flat, log_exception="ValueError: no data.")
    assert watch.poll(crashed)[0].sentence == "The log ends with ValueError: no data."
    assert ids(watch, 0.2, series=flat) == ["plateau"]
