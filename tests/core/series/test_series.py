"""Curves through attempts: marks, rewinds, gaps, smoothing, axes, and a cost that does not grow with the run."""

from __future__ import annotations

import math
import random
import time
import tracemalloc
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.series.metric_words import is_evaluation
from mpstui.core.series.pyramid import debiased_average
from mpstui.core.series.series import MOST_SEGMENTS, Points, Series

NAN = math.nan


def points(first: int, count: int, value: float = 1.0) -> Points:
    steps = [float(first + i) for i in range(count)]
    return Points(steps, [step / 100 for step in steps], [1000.0 + step for step in steps], [value] * count)


def test_a_short_curve_is_what_was_fed() -> None:
    series = Series("loss")
    series.extend(1, Points([1.0, 2.0, 3.0], [0.1, 0.2, 0.3], [5.0, 6.0, 7.0], [3.0, NAN, 1.0]))
    view = series.view(smoothing=0.5)
    assert list(view.x) == [1.0, 2.0, 3.0]
    assert view.mean[0] == 3.0
    assert math.isnan(view.mean[1])
    assert math.isnan(view.smooth[1])
    assert list(view.gaps) == [2.0]
    assert (view.count, view.first, view.last, view.minimum, view.maximum) == (3, 3.0, 1.0, 1.0, 3.0)
    assert list(series.view(axis="epoch").x) == [0.1, 0.2, 0.3]
    assert list(series.view(axis="time").x) == [5.0, 6.0, 7.0]


def test_a_newest_value_that_is_not_finite_is_not_passed_over() -> None:
    series = Series("loss")
    series.extend(1, Points([1.0, 2.0], [0.1, 0.2], [5.0, 6.0], [NAN, 2.0]))
    assert (series.view().first, series.view().last) == (2.0, 2.0)
    series.extend(1, Points([3.0], [0.3], [7.0], [math.inf]))
    assert (series.view().first, series.view().last) == (2.0, None)
    series.extend(1, Points([], [], [], []))
    assert series.view().last is None


def test_the_average_of_a_short_curve_does_not_lag_behind_it() -> None:
    def lag(count: int, noise: float = 0.3) -> float:
        series = Series("loss")
        steps = [float(i) for i in range(count)]
        series.extend(1, Points(steps, steps, steps, [10.0 - 10 * i / count + noise * (-1) ** i for i in range(count)]))
        view = series.view()
        return (view.smooth[-1] - view.mean[-1]) / 10

    assert lag(8) == 0.0
    assert lag(200, noise=0.0) == 0.0, "what has no noise is not averaged"
    assert lag(30) == 0.0
    assert 0.0 < lag(60) < 0.1
    assert 0.0 < lag(200) < 0.1


def test_a_resume_from_an_older_step_supersedes_and_keeps_what_was_measured() -> None:
    series = Series("loss")
    series.extend(1, points(0, 100, 1.0))
    series.extend(2, points(60, 80, 2.0))
    view = series.view()
    assert list(view.x) == [float(i) for i in range(140)]
    assert list(view.mean) == [1.0] * 60 + [2.0] * 80
    assert list(view.attempt_marks) == [60.0]
    (old,) = view.superseded
    assert list(old.x) == [float(i) for i in range(60, 100)]
    assert set(old.mean) == {1.0}
    assert view.count == 180


def test_an_attempt_that_goes_on_where_the_last_one_ended_supersedes_nothing() -> None:
    series = Series("loss")
    series.extend(1, points(0, 10))
    series.extend(2, points(10, 10))
    view = series.view()
    assert len(view.x) == 20
    assert not view.superseded
    assert list(view.attempt_marks) == [10.0]


def test_a_third_attempt_from_before_the_second_supersedes_both() -> None:
    series = Series("loss")
    series.extend(1, points(0, 100, 1.0))
    series.extend(2, points(60, 20, 2.0))
    series.extend(3, points(30, 30, 3.0))
    view = series.view()
    assert list(view.mean) == [1.0] * 30 + [3.0] * 30
    assert [piece.mean[0] for piece in view.superseded] == [1.0, 2.0]


def test_the_best_value_is_none_that_was_measured_again() -> None:
    series = Series("val_loss")
    series.extend(1, points(0, 100, 0.1))
    series.extend(2, points(0, 20, 2.0))
    view = series.view()
    assert (view.minimum, view.maximum) == (2.0, 2.0)
    series.extend(3, points(20, 5, 3.0))
    view = series.view()
    assert (view.minimum, view.maximum, view.first, view.count) == (2.0, 3.0, 2.0, 125)


def test_extremes_know_the_step_at_which_they_were_measured_first() -> None:
    series = Series("loss", capacity=16)
    chance = random.Random(3)
    values = [chance.random() for _ in range(1000)]
    for start in range(0, 1000, 37):
        steps = [float(10 + at) for at in range(start, min(1000, start + 37))]
        series.extend(1, Points(steps, steps, steps, values[start : start + 37]))
    view = series.view()
    assert view.minimum_at == 10 + values.index(min(values))
    assert view.maximum_at == 10 + values.index(max(values))
    series.extend(2, points(100, 3, -1.0))
    series.extend(2, points(103, 3, -1.0))
    assert (series.view().minimum, series.view().minimum_at) == (-1.0, 100.0)
    kept = values[:90]
    view = series.view()
    assert view.maximum is not None
    # The bucket that holds step 100 went as a whole: what is left may be less than the highest of the steps before it.
    assert view.maximum_at is None or values[int(view.maximum_at) - 10] == view.maximum
    assert view.maximum <= max(kept)
    nothing = Series("loss")
    nothing.extend(1, Points([1.0], [NAN], [NAN], [NAN]))
    assert (nothing.view().minimum_at, nothing.view().maximum_at) == (None, None)


def test_a_rewind_inside_one_attempt_is_seen_too() -> None:
    series = Series("loss")
    series.extend(1, Points([1.0, 2.0, 3.0, 2.0, 3.0], [NAN] * 5, [NAN] * 5, [1.0, 1.0, 1.0, 5.0, 6.0]))
    view = series.view()
    assert list(view.x) == [1.0, 2.0, 3.0]
    assert list(view.mean) == [1.0, 5.0, 6.0]


def test_a_hundred_restarts_stay_one_bounded_curve() -> None:
    series = Series("loss", capacity=64)
    for attempt in range(100):
        series.extend(attempt, points(attempt * 50, 100, float(attempt)))
    view = series.view(most=10_000)
    assert len(view.x) <= (MOST_SEGMENTS + 1) * 2 * 64
    assert list(view.x) == sorted(view.x)
    assert view.x[-1] == 99 * 50 + 99
    assert view.mean[-1] == 99.0
    assert view.minimum == 0.0


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 80)), min_size=1, max_size=20),
    st.integers(2, 300),
)
def test_a_curve_never_goes_back(attempts: list[tuple[int, int]], most: int) -> None:
    series = Series("loss", capacity=16)
    for attempt, (first, count) in enumerate(attempts):
        series.extend(attempt, points(first, count))
    view = series.view(most=most)
    assert list(view.x) == sorted(view.x)
    assert len(view.x) == len(view.mean) == len(view.low) == len(view.high) == len(view.smooth) <= most
    assert view.count == sum(count for _, count in attempts)


def test_the_average_has_no_start_up_bias_and_skips_gaps() -> None:
    assert debiased_average([4.0, 4.0, NAN, 4.0], 0.9)[0] == pytest.approx(4.0)
    smooth = debiased_average([4.0, NAN, 8.0], 0.5)
    assert math.isnan(smooth[1])
    assert 4.0 < smooth[2] < 8.0
    assert list(debiased_average([1.0, 5.0], 0.0)) == [1.0, 5.0]


@pytest.mark.parametrize(
    ("name", "evaluation"),
    [("val_loss", True), ("eval/accuracy", True), ("test.f1", True), ("loss", False), ("valuation", False)],
)
def test_validation_metrics_are_known_by_name(name: str, evaluation: bool) -> None:
    assert is_evaluation(name) is evaluation


def test_memory_and_drawing_do_not_grow_with_the_run() -> None:
    short, short_bytes = _built(4_000)
    long, long_bytes = _built(100_000)
    assert long_bytes < 1.5 * short_bytes
    assert _seconds_of_view(long) < 3 * _seconds_of_view(short) + 0.002


def _built(count: int) -> tuple[Series, int]:
    """A series of so many points, and the memory it holds."""
    tracemalloc.start()
    series = Series("loss")
    for first in range(0, count, 4000):
        steps = array("d", range(first, first + 4000))
        series.extend(1, Points(steps, steps, steps, steps))
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return series, used


def _seconds_of_view(series: Series) -> float:
    def once() -> float:
        start = time.perf_counter()
        series.view(most=2048)
        return time.perf_counter() - start

    return min(once() for _ in range(5))


def test_every_column_says_when_it_was_measured() -> None:
    series = Series("loss", 8)
    series.extend(1, Points([1.0, 2.0, 3.0], [0.0] * 3, [100.0, 110.0, math.nan], [0.5, 0.4, 0.3]))
    times = series.view().times
    assert list(times[:2]) == [100.0, 110.0]
    assert math.isnan(times[2])


@pytest.mark.parametrize(("begins_at", "first"), [(1, 7.0), (0, 7.0), (2, 5.0)])
def test_the_first_value_is_of_the_curve_that_stands(begins_at: int, first: float) -> None:
    series = Series("loss")
    series.extend(1, points(1, 20, 5.0))
    series.extend(2, points(begins_at, 4, 7.0))
    assert series.view().first == first
    series.extend(3, points(3, 4, 9.0))
    assert (series.view().first, series.view().count) == (first, 28)
