"""The warm-up is left out, and what was timed too shortly is timed together with what follows."""

from __future__ import annotations

from typing import Any

import pytest

from mpstui.core.bench.training import Spread, samples_per_step, stretches, warm


def points(*pairs: tuple[float, int]) -> list[dict[str, Any]]:
    return [{"time": time, "step": step} for time, step in pairs]


def test_the_first_steps_and_the_first_second_are_no_measurement() -> None:
    slow_start = points((0.0, 1), (9.0, 2), (10.0, 3), (11.0, 5), (12.0, 7))
    assert [stretch.step_seconds for stretch in stretches(slow_start)] == [0.5, 0.5]
    assert not warm(points((0.0, 1), (0.9, 50)))
    assert warm(points((0.0, 1), (1.1, 50)))
    assert stretches(points((0.0, 1), (0.9, 50))) == []


def test_reports_close_to_each_other_are_one_stretch() -> None:
    dense = points((0.0, 1), *((2 + at / 10, 10 + at) for at in range(8)))
    found = stretches(dense)
    assert [stretch.steps for stretch in found] == [3, 3]
    assert found[0].step_seconds == pytest.approx(0.1)


def test_samples_come_from_the_trainers_own_speeds() -> None:
    known = [*points((0.0, 1), (2.0, 3)), {"time": 3.0, "step": 5, "steps_per_second": 2.0, "samples_per_second": 64.0}]
    assert samples_per_step(known) == 32.0
    assert samples_per_step(points((0.0, 1))) is None


def test_a_spread_is_median_and_range() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0, 3)
    assert Spread.of([]) is None
