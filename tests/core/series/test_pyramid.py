"""Buckets keep extremes, sums and gaps, whatever the number of points and however they arrive."""

from __future__ import annotations

import math
from array import array
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from mpstui.core.series.pyramid import Columns, Pyramid, join_pairs, reduce_points

NAN = math.nan
values_with_gaps = st.lists(
    st.one_of(st.floats(-1e6, 1e6), st.sampled_from([NAN, math.inf, -math.inf])), min_size=1, max_size=400
)


def fed(values: list[float], *, capacity: int, cuts: list[int] | None = None) -> Pyramid:
    pyramid = Pyramid(capacity)
    borders = [0, *sorted(cut % (len(values) + 1) for cut in cuts or []), len(values)]
    steps = [float(i) for i in range(len(values))]
    for low, high in pairwise(borders):
        pyramid.extend(steps[low:high], steps[low:high], steps[low:high], values[low:high])
    return pyramid


@given(values_with_gaps, st.integers(2, 16))
def test_nothing_is_lost_in_the_buckets(values: list[float], capacity: int) -> None:
    columns = fed(values, capacity=capacity).columns()
    finite = [value for value in values if math.isfinite(value)]
    assert len(columns.step) <= capacity + 1
    assert sum(columns.good) == len(finite)
    assert sum(columns.bad) == len(values) - len(finite)
    if finite:
        assert min(low for low in columns.low if low == low) == min(finite)
        assert max(high for high in columns.high if high == high) == max(finite)
        assert math.isclose(sum(columns.total), sum(finite), rel_tol=1e-9, abs_tol=1e-3)
    assert list(columns.step) == sorted(columns.step)
    assert columns.step[-1] == len(values) - 1
    measured = [values[int(step)] for step in columns.step]
    assert all(one == last or (one != one and last != last) for one, last in zip(measured, columns.last, strict=True))


@given(values_with_gaps, st.lists(st.integers(0, 400), max_size=6))
def test_buckets_do_not_depend_on_how_points_arrive(values: list[float], cuts: list[int]) -> None:
    whole, parts = fed(values, capacity=8), fed(values, capacity=8, cuts=cuts)
    assert whole.width == parts.width
    for one, other in zip(whole.columns(), parts.columns(), strict=True):
        assert all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6) or a != a for a, b in zip(one, other, strict=True))


def test_one_spike_and_one_gap_among_a_million_points_survive() -> None:
    values = array("d", [1.0]) * 1_000_000
    values[333_333], values[777_777] = 99.0, NAN
    pyramid, steps = Pyramid(), array("d", range(1_000_000))
    for at in range(0, len(values), 50_000):
        part = slice(at, at + 50_000)
        pyramid.extend(steps[part], steps[part], steps[part], values[part])
    columns = pyramid.columns()
    assert len(columns.step) <= 2048
    assert max(columns.high) == 99.0
    assert sum(columns.bad) == 1
    spike = list(columns.high).index(99.0)
    assert columns.step[spike] >= 333_333 > columns.step[spike - 1]


def test_what_was_handed_out_never_changes() -> None:
    pyramid = Pyramid(4)
    pyramid.extend([1.0], [1.0], [1.0], [5.0])
    before = pyramid.columns()
    pyramid.extend([2.0, 3.0], [1.0] * 2, [1.0] * 2, [6.0, 7.0])
    assert list(before.low) == [5.0]


def test_huge_values_do_not_become_gaps() -> None:
    low, high, total, good, bad = reduce_points([1.7e308, 1.7e308, 1.0])
    assert (low, high, good, bad) == (1.0, 1.7e308, 3.0, 0.0)
    assert math.isfinite(total)


@settings(max_examples=30)
@given(st.integers(0, 9))
def test_joining_halves_and_keeps_an_odd_last_one(count: int) -> None:
    column = array("d", range(count))
    joined = join_pairs(Columns(*([column] * 9)))
    assert len(joined.step) == (count + 1) // 2
    assert sum(joined.total) == sum(column)
