"""Rate and remaining time through evaluations, pauses, sleeps and resumes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.model.snapshot import Numbers
from mpstui.core.runs.step_rate import ProgressPace, StepRate, planned_ends


def run(progress: StepRate, *, start: float, step: int, steps: int, pace: float, every: int = 1) -> tuple[float, int]:
    """Steady training; returns the time and step it ends at."""
    for done in range(0, steps, every):
        progress.add(start + done * pace, step + done)
    return start + steps * pace, step + steps


def test_unknown_until_two_intervals_are_known() -> None:
    progress = StepRate()
    for i in range(2):
        progress.add(float(i), i)
        assert progress.steps_per_second is None
        assert progress.remaining_seconds(100) is None
    progress.add(2.0, 2)
    assert progress.remaining_seconds(100) == pytest.approx(98.0)


def test_no_plan_no_eta_and_reached_is_zero() -> None:
    progress = StepRate()
    run(progress, start=0, step=0, steps=20, pace=1.0)
    assert progress.remaining_seconds(None) is None
    assert progress.remaining_seconds(5) == 0.0


def test_a_pause_changes_neither_rate_nor_eta() -> None:
    progress = StepRate()
    now, step = run(progress, start=0.0, step=0, steps=100, pace=0.5)
    run(progress, start=now + 7200, step=step, steps=100, pace=0.5)
    assert progress.steps_per_second == pytest.approx(2.0, rel=0.01)
    assert progress.remaining_seconds(1000) == pytest.approx((1000 - 199) * 0.5, rel=0.02)


def test_a_known_sleep_is_no_time() -> None:
    progress = StepRate()
    progress.add(0.0, 0)
    progress.add(10.0, 10)
    progress.add(3620.0, 20, idle_seconds=3600.0)
    progress.add(3630.0, 30)
    assert progress.steps_per_second == pytest.approx(1.0)


def test_evaluations_count_towards_the_end_but_not_as_slowness() -> None:
    progress = StepRate()
    now, step = 0.0, 0
    for _ in range(4):
        now, step = run(progress, start=now, step=step, steps=50, pace=0.2)
        now += 10.0  # an evaluation after every 50 steps: it doubles the time
    run(progress, start=now, step=step, steps=2, pace=0.2)
    assert progress.steps_per_second == pytest.approx(5.0, rel=0.05)
    assert progress.remaining_seconds(step + 1001) == pytest.approx(1000 * 0.4, rel=0.1)


@pytest.mark.parametrize("reported", [1, 40], ids=["each step", "one step a second"])
def test_an_evaluation_after_each_epoch_counts_as_often_as_it_comes(reported: int) -> None:
    """Whatever is reported, at any moment: 40 steps a second, 5 epochs of 40 seconds, and evaluations of 25 seconds."""
    progress, of_epoch, lasts = StepRate(), 1600, 25.0
    for epoch in range(5):
        for step in range(0, of_epoch, reported):
            now = epoch * (of_epoch / 40 + lasts) + step / 40
            progress.add(now, epoch * of_epoch + step)
            if epoch and step % 400 == 0 and step:
                assert progress.remaining_seconds(5 * of_epoch) == pytest.approx(5 * (40 + lasts) - now, abs=4.0)
    progress.add(5 * 40 + 4 * lasts, 5 * of_epoch)
    assert progress.remaining_seconds(5 * of_epoch) == pytest.approx(lasts, abs=2.0)


@pytest.mark.parametrize(("of_epoch", "pace", "lasts"), [(30, 0.1, 1.5), (150, 0.02, 1.9), (20, 0.05, 3.0)])
def test_short_evaluations_count_and_those_of_short_epochs(of_epoch: int, pace: float, lasts: float) -> None:
    """The remaining time was low by up to a seventh beside the first two, and at times by half beside the last."""
    progress = StepRate()
    for epoch in range(16):
        for step in range(1, of_epoch + 1):
            now = epoch * (of_epoch * pace + lasts) + step * pace
            progress.add(now, epoch * of_epoch + step)
            if epoch > 1 and step % 7 == 4:
                whole = 20 * (of_epoch * pace + lasts)
                assert progress.remaining_seconds(20 * of_epoch) == pytest.approx(whole - now, rel=0.03)


def test_an_evaluation_an_hour_is_remembered() -> None:
    progress = StepRate()
    now, step = 0.0, 0
    for _ in range(3):
        now, step = run(progress, start=now, step=step, steps=3600, pace=1.0)
        now += 200.0
    run(progress, start=now, step=step, steps=1800, pace=1.0)
    assert progress.remaining_seconds(5 * 3600) == pytest.approx(1800 + 3600 + 2 * 200, rel=0.02)


def test_a_slow_step_right_after_an_evaluation_is_no_second_one() -> None:
    """As where the workers of a data loader start anew with each epoch."""
    progress = StepRate()
    now, step = run(progress, start=0.0, step=0, steps=700, pace=0.1)
    progress.add(now + 10.0, step)
    progress.add(now + 14.0, step + 1)
    run(progress, start=now + 14.0, step=step + 1, steps=100, pace=0.1)
    assert progress.remaining_seconds(2800) == pytest.approx(200 + 3 * 14, rel=0.05)


def test_an_evaluation_before_the_first_step_does_not_tell_how_often() -> None:
    progress = StepRate()
    progress.add(0.0, 0)
    run(progress, start=30.0, step=1, steps=100, pace=0.1)
    assert progress.remaining_seconds(1100) == pytest.approx(100, rel=0.05)


def test_a_new_attempt_starts_to_know_anew() -> None:
    progress = StepRate()
    run(progress, start=0.0, step=0, steps=50, pace=0.1)
    progress.cut()
    assert progress.remaining_seconds(100) is None
    run(progress, start=500.0, step=30, steps=30, pace=2.0)
    assert progress.steps_per_second == pytest.approx(0.5)


def test_a_new_attempt_counts_evaluations_as_the_one_before_until_its_own_first() -> None:
    """Resumed behind an evaluation; its own ones last longer, on a slower device."""
    progress = StepRate()
    now, step = 0.0, 0
    for _ in range(4):
        now, step = run(progress, start=now, step=step, steps=100, pace=0.1)
        now += 10.0
    progress.cut()
    now, step = run(progress, start=now + 60.0, step=300, steps=50, pace=0.2)
    assert progress.remaining_seconds(1000) == pytest.approx(650 * 0.2 + 7 * 10, rel=0.05)
    now, step = run(progress, start=now, step=step, steps=50, pace=0.2)
    run(progress, start=now + 30.0, step=step, steps=50, pace=0.2)
    assert progress.remaining_seconds(1000) == pytest.approx(550 * 0.2 + 6 * 30, rel=0.1)


def test_a_look_that_begins_after_a_resume_knows_the_evaluations_before() -> None:
    """The records of both attempts are read at once, and no time between them counts."""
    seen, now = ProgressPace(), 0.0
    records: list[dict[str, float]] = []
    for attempt, begin, epochs in ((1, 0, 3), (2, 20, 1)):
        for step in range(begin + 1, begin + epochs * 10 + 1):
            now += 1.0
            records.append({"attempt": attempt, "time": now, "step": step})
            now += 20.0 if step % 10 == 0 else 0.0
        now += 500.0
    seen.feed(records, 2)
    assert seen.steps.steps_per_second == pytest.approx(1.0)
    assert seen.steps.remaining_seconds(100) == pytest.approx(70 + 8 * 20, rel=0.05)


def test_a_step_back_is_no_progress_and_no_error() -> None:
    progress = StepRate()
    run(progress, start=0.0, step=100, steps=20, pace=1.0)
    run(progress, start=60.0, step=50, steps=20, pace=1.0)
    assert progress.steps_per_second == pytest.approx(1.0)
    assert progress.step == 69


def test_it_adapts_when_the_pace_changes() -> None:
    progress = StepRate()
    now, step = run(progress, start=0.0, step=0, steps=300, pace=0.1)
    run(progress, start=now, step=step, steps=120, pace=0.4)
    assert progress.steps_per_second == pytest.approx(2.5, rel=0.1)


def test_when_the_step_last_moved() -> None:
    progress = StepRate()
    progress.add(1.0, 5)
    progress.add(9.0, 5)
    assert progress.advanced_at == 1.0


@pytest.mark.parametrize("per_second", [2, 7, 14, 20, 30, 50, 80, 120, 150, 200, 500])
@pytest.mark.parametrize("look", [0.05, 0.2, 0.25, 0.5, 1.0])
def test_lines_that_are_read_in_one_look_share_its_time(per_second: int, look: float) -> None:
    progress, step, now = StepRate(), 0, 0.0
    for _ in range(round(30 / look)):
        now += look
        while step + 1 <= now * per_second + 1e-9:
            step += 1
            progress.add(now, step)
    assert progress.steps_per_second == pytest.approx(per_second, rel=0.03)
    assert progress.remaining_seconds(step + 10 * per_second) == pytest.approx(10.0, rel=0.03)


def test_a_step_back_within_a_look_counts_for_no_look_before_it() -> None:
    progress = StepRate()
    for now, steps in ((1.0, (90, 95)), (2.0, (98, 99, 100)), (3.0, (1, 2, 3, 4, 5)), (4.0, (10,)), (5.0, (15,))):
        for step in steps:
            progress.add(now, step)
    assert progress.steps_per_second == pytest.approx(5.0)


@given(st.lists(st.tuples(st.floats(-10, 1e6), st.floats(0, 1e6)), max_size=50), st.floats(0, 1e7))
def test_whatever_arrives_an_eta_is_unknown_or_not_negative(samples: list[tuple[float, float]], target: float) -> None:
    progress = StepRate()
    for moment, step in samples:
        progress.add(moment, step)
    left = progress.remaining_seconds(target)
    assert left is None or left >= 0
    rate = progress.steps_per_second
    assert rate is None or rate > 0


@pytest.mark.parametrize(
    ("step", "epoch", "per_second", "steps"),
    [
        (228, 252, 35.0, 400),
        (252, 252, 35.0, 400),
        (107, 137, 37.0, None),  # at so many a second each may be of two steps
        (30, 252, 10.0, None),  # counted anew
        (504, 252, 35.0, None),
    ],
)
def test_an_epoch_is_one_step_where_the_steps_are_no_further_behind_than_a_heartbeat(
    step: int, epoch: int, per_second: float, steps: int | None
) -> None:
    told = Numbers(step=step, epoch=epoch, epochs=400, first_epoch=1, steps_per_second=per_second)
    assert planned_ends(told, told, one_of_many=False) == (steps, None)
