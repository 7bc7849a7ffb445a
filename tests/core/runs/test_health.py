"""Health from several witnesses: silence is judged by the trainer's own promise, and sleep is no silence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.model.snapshot import Health
from mpstui.core.present import span
from mpstui.core.runs.signs import LateRank, Signs, assess


def signs(**fields: Any) -> Signs:
    return Signs(**{"phase": "train", "beat_age": 1.0, "promise": 10.0, "steps_done": True, **fields})


CASES: list[tuple[str, Signs, Health | None, str]] = [
    ("trains", signs(), Health.TRAINING, ""),
    ("sets up", signs(phase="setup", steps_done=False), Health.WARMING, ""),
    ("before its first step", signs(steps_done=False), Health.WARMING, "first step"),
    ("evaluates", signs(phase="eval"), Health.EVALUATING, ""),
    ("saves", signs(phase="save"), Health.SAVING, ""),
    ("is done", signs(phase="done"), None, "done, its process is ending"),
    ("is done, and still writes a file", signs(phase="done", beat_age=1000.0), None, "done 17 min ago"),
    ("is done, and a rank is late", signs(phase="done", late_rank=LateRank(3, 90.0, 10.0)), Health.STALLED, "rank 3"),
    ("falls silent", signs(beat_age=45.0, promise=60.0), Health.TRAINING, "nothing heard for 45 s"),
    (
        "silent for a few of its steps",
        signs(beat_age=100.0, promise=600.0, usual_step_seconds=30.0),
        Health.TRAINING,
        "",
    ),
    (
        "silent for many of its steps",
        signs(beat_age=170.0, promise=600.0, usual_step_seconds=30.0),
        Health.TRAINING,
        "nothing heard for 3 min",
    ),
    ("silent but it printed just now", signs(beat_age=45.0, promise=60.0, output_age=3.0), Health.TRAINING, ""),
    (
        "a stranger that falls silent",
        signs(beat_age=None, output_age=90.0, usual_output_seconds=1.0),
        Health.TRAINING,
        "no output for 90 s",
    ),
    ("late", signs(beat_age=11.0), Health.STALLED, "no beat for 11 s, promised within 10 s"),
    ("long evaluation, promised", signs(phase="eval", beat_age=500.0, promise=600.0), Health.EVALUATING, ""),
    ("silent", signs(beat_age=200.0), Health.HUNG, "no beat for 3 min"),
    ("silent but it prints", signs(beat_age=200.0, output_age=2.0), Health.STALLED, "output still grows"),
    ("in the kernel", signs(beat_age=200.0, process_state="U"), Health.HUNG, "inside the kernel"),
    ("paused by us", signs(beat_age=900.0, paused=True), Health.PAUSED, ""),
    ("paused by another", signs(beat_age=900.0, process_state="T"), Health.PAUSED, "did not send"),
    ("slept", signs(beat_age=2.0, slept_seconds=21_600.0), Health.SLEPT, "slept 6 h"),
    ("woke up", signs(slept_before_seconds=21_600.0), Health.TRAINING, "slept 6 h"),
    ("a rank is late", signs(late_rank=LateRank(3, 90.0, 10.0)), Health.STALLED, "rank 3: no beat for 90 s"),
    ("a clock that was set is no sleep", signs(slept_seconds=5.0), Health.TRAINING, ""),
    ("no promise", signs(promise=None, beat_age=50.0), Health.TRAINING, "nothing heard for 50 s"),
    ("beats but stands still", signs(step_age=90.0, usual_step_seconds=0.4), Health.STALLED, "no step for 90 s"),
    ("stands still for long", signs(step_age=400.0, usual_step_seconds=0.4), Health.HUNG, "still beats"),
    ("slow steps are not still", signs(step_age=90.0, usual_step_seconds=30.0), Health.TRAINING, ""),
    ("a silent stranger", signs(beat_age=None, steps_done=False), Health.WARMING, "nothing printed yet"),
    ("a printing stranger", signs(beat_age=None, output_age=2.0), Health.TRAINING, ""),
    (
        "a stranger that has stopped printing",
        signs(beat_age=None, output_age=900.0, usual_output_seconds=4.0),
        Health.STALLED,
        "15 min",
    ),
    (
        "a stranger whose first epoch is long",
        signs(beat_age=None, output_age=900.0),
        Health.TRAINING,
        "no output for 15 min",
    ),
    ("compiles", signs(phase="compile", steps_done=False, beat_age=400.0, promise=1800.0), Health.WARMING, "compiling"),
    ("begins slowly", signs(steps_done=False, up_seconds=190.0), Health.WARMING, "before its first step for 3 min"),
    (
        "a stranger that begins slowly",
        signs(beat_age=None, steps_done=False, output_age=4.0, up_seconds=190.0),
        Health.WARMING,
        "no step seen for 3 min",
    ),
    (
        "a stranger that begins silently",
        signs(beat_age=None, steps_done=False, up_seconds=190.0),
        Health.WARMING,
        "nothing printed yet for 3 min",
    ),
    (
        "a stranger that prints once an hour",
        signs(beat_age=None, output_age=3000.0, usual_output_seconds=3600.0),
        Health.TRAINING,
        "",
    ),
    (
        "a stranger that never told a number",
        signs(beat_age=None, output_age=900.0, steps_done=False),
        Health.WARMING,
        "nothing printed for 15 min",
    ),
]


@pytest.mark.parametrize(("given_signs", "health", "note"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_each_condition(given_signs: Signs, health: Health | None, note: str) -> None:
    condition = assess(given_signs)
    assert condition.health is health, condition
    assert (note in condition.note) if note else not condition.note


@given(st.floats(0, 1e9), st.floats(0.1, 1e6))
def test_a_kept_promise_is_never_an_alarm_and_a_beat_revives(age: float, promise: float) -> None:
    late = assess(signs(beat_age=age, promise=promise))
    assert (late.health in (Health.STALLED, Health.HUNG)) == (age > promise)
    assert assess(signs(beat_age=0.0, promise=promise)).health is Health.TRAINING


@given(st.floats(0, 1e9))
def test_a_log_alone_never_proves_a_hang(age: float) -> None:
    assert assess(signs(beat_age=None, output_age=age)).health is not Health.HUNG


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (119, "119 s"), (121, "2 min"), (3600, "1 h"), (21_600, "6 h"), (200_000, "2 d")],
)
def test_durations_are_one_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_paused_run_has_neither_a_speed_nor_an_end() -> None:
    for paused in (signs(beat_age=1.0, paused=True), signs(beat_age=1.0, process_state="T")):
        assert not assess(paused).moves
