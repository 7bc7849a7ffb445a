"""The restart rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpstui.supervisor import witnesses
from mpstui.supervisor.conclusion import Crash, Decision, decide
from mpstui.wire import storage
from mpstui.wire.heartbeat import Heartbeat, to_json
from mpstui.wire.records import ExitRecord, LaunchRecord, RestartRule
from mpstui.wire.rundir import RunDir

RULE = RestartRule(on=["mps_oom"])
NOW = 10_000.0


def crash(step: int | None = 50, *, saved: bool = False, **record: Any) -> Crash:
    return Crash(ExitRecord(attempt=1, ended=NOW, **{"code": 1, "cause": "mps_oom", **record}), step, saved)


def past(*steps: int | None, age: float = 60.0) -> list[dict[str, Any]]:
    return [{"time": NOW - age, "attempt": 1, "cause": "mps_oom", "step": step} for step in steps]


def decided(found: Crash, history: list[dict[str, Any]] | None = None, rule: RestartRule = RULE) -> Decision:
    decision = decide(rule, found, history or [], NOW)
    assert decision is not None
    return decision


def test_off_by_default_and_never_after_success_or_a_wish() -> None:
    assert decide(RestartRule(), crash(), [], NOW) is None
    assert decide(RULE, crash(code=0), [], NOW) is None
    assert decide(RULE, crash(requested_by="ada"), [], NOW) is None


def test_an_allowed_cause_starts_again_later_and_later() -> None:
    assert decided(crash(50)).delay_seconds == 10.0
    assert decided(crash(50), past(10)).delay_seconds == 60.0
    assert decided(crash(50), past(10, 20)).delay_seconds == 300.0


def test_who_killed_a_program_that_starts_again_is_not_claimed() -> None:
    killed = crash(code=None, signal=9, cause="killed_os")
    assert decided(killed, rule=RestartRule(on=["killed_os"])).reason == "SIGKILL: attempt 2 starts in 10 s"


def test_three_an_hour_are_enough() -> None:
    assert not decided(crash(50), past(10, 20, 30)).again
    assert decided(crash(50), past(10, 20, 30, age=3700.0)).delay_seconds == 10.0


def test_a_clock_set_back_does_not_forget_restarts() -> None:
    assert not decided(crash(50), past(10, 20, 30, age=-7200.0)).again


@pytest.mark.parametrize("step", [50, 49])
def test_the_progress_gate(step: int) -> None:
    found = decided(crash(step), past(50, age=4000.0))
    assert not found.again
    assert str(step) in found.reason
    assert decided(crash(51), past(50)).again


def test_steps_that_were_counted_anew_are_compared_with_nothing() -> None:
    resumed = crash(192)._replace(counted_anew=True)
    assert decided(resumed, past(341)).again
    assert decided(resumed, past(192)).again
    assert not decided(crash(0)._replace(counted_anew=True), past(341)).again, "no step at all is no progress"
    assert not decided(resumed, past(1, 2, 3)).again, "three an hour are enough all the same"


@pytest.mark.parametrize(
    ("step_from", "checkpoint", "anew"), [("process", "a.pt", True), ("process", None, False), (None, "a.pt", False)]
)
def test_who_counts_anew(tmp_path: Path, step_from: str | None, checkpoint: str | None, anew: bool) -> None:
    run = RunDir(tmp_path)
    folder = run.attempt(2)
    folder.path.mkdir(parents=True)
    storage.write_json(folder.heartbeat(), to_json(Heartbeat(time=NOW, seq=1, step=192, step_from=step_from)))
    storage.write_json(folder.launch, LaunchRecord(2, NOW, ["train"], "/", "cpu", checkpoint=checkpoint))
    assert witnesses.counts_anew(run, 2) is anew
    assert witnesses.counts_anew(run, 3) is False


def test_not_before_the_first_step_unless_a_checkpoint_proves_progress() -> None:
    assert not decided(crash(None)).again
    assert not decided(crash(0)).again
    assert decided(crash(None, saved=True)).again


@pytest.mark.parametrize(
    ("record", "word"),
    [
        ({"cause": "shape_bug"}, "shape_bug is not in the profile's list"),
        ({"cause": None}, "no known cause"),
        ({"spawn_error": "No such file"}, "could not be started"),
        ({"unknown": True, "code": None}, "exit code is unknown"),
    ],
)
def test_everything_else_is_left_alone_with_the_reason(record: dict[str, Any], word: str) -> None:
    found = decided(crash(50, **record))
    assert not found.again
    assert word in found.reason
