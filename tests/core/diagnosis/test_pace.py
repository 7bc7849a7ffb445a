"""A slowdown is noticed against the run's own best, however long it lasts."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from mpstui.core.diagnosis.live import Pace, RunPace, judge_pace, present_pace, slow_stretches, slow_words
from mpstui.core.diagnosis.live import speeds as speeds_of
from mpstui.core.model.snapshot import Health, RunSnapshot, State
from tests.snapshots import changed


def speeds(*stretches: tuple[int, float], seed: int = 3) -> list[tuple[float, float]]:
    """Points a second apart; each stretch is a number of points and a speed, with 5 % of noise."""
    noise = random.Random(seed)
    values = [speed * noise.uniform(0.95, 1.05) for count, speed in stretches for _ in range(count)]
    return [(float(at), value) for at, value in enumerate(values)]


def test_steady_speed_is_not_slow() -> None:
    found = judge_pace(speeds((200, 10.0)))
    assert found is not None
    assert not found.is_slow
    assert found.ratio == pytest.approx(1.0, abs=0.05)


def test_throttling_is_noticed_with_its_beginning() -> None:
    found = judge_pace(speeds((100, 10.0), (40, 4.0)))
    assert found is not None
    assert found.is_slow
    assert found.ratio == pytest.approx(0.4, abs=0.03)
    assert found.slow_since == pytest.approx(100, abs=10)


def test_a_long_slowdown_does_not_become_normal() -> None:
    found = judge_pace(speeds((60, 10.0), (2000, 5.0)))
    assert found is not None
    assert found.slow_since == pytest.approx(60, abs=10)


def test_recovery_ends_it() -> None:
    found = judge_pace(speeds((60, 10.0), (60, 5.0), (40, 10.0)))
    assert found is not None
    assert not found.is_slow


def test_single_stalls_and_a_fast_outlier_change_nothing() -> None:
    points = speeds((200, 10.0))
    points[50], points[150], points[199] = (50.0, 500.0), (150.0, 0.1), (199.0, 0.1)
    found = judge_pace(points)
    assert found is not None
    assert not found.is_slow
    assert found.sustained < 11


def test_too_little_or_no_movement_is_unknown() -> None:
    assert judge_pace(speeds((22, 10.0))) is None
    assert judge_pace(speeds((60, 0.0))) is None


def curve(*stretches: tuple[int, float]) -> tuple[list[float], list[float]]:
    """Steps and times of a curve with ten steps a point; each stretch is a number of points and steps per second."""
    steps, times = [0.0], [1000.0]
    for count, speed in stretches:
        for _ in range(count):
            steps.append(steps[-1] + 10)
            times.append(times[-1] + 10 / speed)
    return steps, times


def test_a_slow_night_is_marked_by_its_steps() -> None:
    found = slow_stretches(speeds_of(*curve((100, 10.0), (60, 5.0), (100, 10.0))))
    assert len(found) == 1
    assert found[0].first == pytest.approx(1000, abs=110)
    assert found[0].last == pytest.approx(1600, abs=110)


def test_a_pause_a_resume_and_a_faster_end_are_not_slow() -> None:
    steps, times = curve((200, 10.0))
    paused = [*times[:100], *(moment + 3600 for moment in times[100:])]
    assert slow_stretches(speeds_of(steps, paused)) == ()
    resumed = [*steps[:100], *steps[50:151]]
    assert slow_stretches(speeds_of(resumed, times)) == ()
    assert slow_stretches(speeds_of(*curve((100, 5.0), (100, 10.0)))) == ()


def test_times_that_are_unknown_mark_nothing() -> None:
    steps, times = curve((100, 10.0), (100, 1.0))
    assert speeds_of(steps, [math.nan] * len(times)) == []
    assert speeds_of([], []) == []


def test_the_watch_forgets_another_attempt_and_says_since_when() -> None:
    run = RunSnapshot(run="a", name="net", dir=Path("/none"), state=State.RUNNING, health=Health.TRAINING, seen=0.0)
    watch, found = RunPace(), None
    for tick in range(60):
        speed = 10.0 if tick < 30 else 7.0
        found = watch.poll(changed(run, attempt=1, seen=10.0 * tick, steps_per_second=speed))
    assert slow_words(found, 600.0) == "0.7x of its median speed for 5 min"
    assert watch.poll(changed(run, attempt=2, seen=610.0, steps_per_second=7.0)) is None
    assert slow_words(None, 0.0) == ""
    assert slow_words(Pace(0.0001, 10.0, 0.00001, 0.0), 600.0) == "under 0.01x of its median speed for 10 min"


def test_the_curve_is_believed_until_the_live_speed_has_recovered() -> None:
    fine, slow = Pace(10.0, 10.0, 1.0, None), Pace(5.0, 10.0, 0.5, 500.0)
    slower_since = Pace(5.0, 8.0, 0.6, 900.0)
    assert present_pace(None, None) is None
    assert present_pace(fine, None) is fine
    assert present_pace(None, slow) is slow
    assert present_pace(fine, slow) is fine
    assert present_pace(Pace(5.0, 5.0, 1.0, None), slow) is slow, "slow since before anybody looked"
    assert present_pace(slower_since, slow) is slow, "the longer memory knows since when"
    assert present_pace(slow, fine) is slow
