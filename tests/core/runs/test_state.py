"""The table of states: which witnesses make which state, and that none is told without one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.model.snapshot import State
from mpstui.core.runs.state import RunWitnesses, derive, ended
from mpstui.wire.liveness import ProcessIdentity
from mpstui.wire.records import ExitRecord, LaunchTemplate, RestartRule, Spec, Status

SPEC = Spec("run-1", "name", 1.0, LaunchTemplate("cpu", {}, "/"))


def status(phase: str, **fields: Any) -> Status:
    return Status("run-1", phase, fields.pop("attempt", 1), 1.0, **fields)


def exited(**fields: Any) -> ExitRecord:
    return ExitRecord(1, 2.0, **fields)


def seen(**fields: Any) -> RunWitnesses:
    return RunWitnesses(
        **{"spec": SPEC, "attempt": 1, "begun": True, "same_boot": True, "age_seconds": 100.0, **fields}
    )


RESTARTS = SPEC._replace(restart=RestartRule(on=["mps_oom"]))
OUT_OF_MEMORY = exited(code=1, cause="mps_oom")
BOTH = {"supervisor_held": True, "run_held": True}

CASES: list[tuple[str, RunWitnesses, State, str]] = [
    ("supervised", seen(status=status("running"), **BOTH), State.RUNNING, "live"),
    ("stopping", seen(status=status("stopping", action="stop"), **BOTH), State.STOPPING, "stop"),
    (
        "queued",
        seen(status=status("queued", message="2 before it"), begun=False, supervisor_held=True),
        State.QUEUED,
        "2",
    ),
    ("starting", seen(status=status("starting"), supervisor_held=True), State.STARTING, "attempt 1"),
    (
        "backing off",
        seen(status=status("backing_off"), exit=exited(signal=9, cause="mps_oom"), supervisor_held=True),
        State.BACKING_OFF,
        "mps_oom",
    ),
    (
        "it crashed a moment ago, and its profile restarts after that",
        seen(spec=RESTARTS, status=status("running"), exit=OUT_OF_MEMORY, ended_seconds_ago=0.1, supervisor_held=True),
        State.BACKING_OFF,
        "just crashed",
    ),
    (
        "it crashed a moment ago, of what its profile does not restart after",
        seen(status=status("running"), exit=OUT_OF_MEMORY, ended_seconds_ago=0.1, supervisor_held=True),
        State.FAILED,
        "mps_oom",
    ),
    (
        "no word on a restart for long: the disk may be full",
        seen(spec=RESTARTS, status=status("running"), exit=OUT_OF_MEMORY, ended_seconds_ago=9.0, supervisor_held=True),
        State.FAILED,
        "mps_oom",
    ),
    ("stop failed", seen(status=status("stop_failed", survivors=[7, 8]), **BOTH), State.STOP_FAILED, "7, 8"),
    (
        "a torchrun rank without the lock survives its supervisor",
        seen(status=status("stop_failed", survivors=[7]), alive=(7,), exit=exited(signal=9, action="stop")),
        State.STOP_FAILED,
        "7",
    ),
    ("supervisor coming up", seen(attempt=0, begun=False, supervisor_held=True), State.STARTING, "coming up"),
    ("supervisor not there yet", seen(attempt=0, begun=False, age_seconds=1.0), State.STARTING, "coming up"),
    ("supervisor never came", seen(attempt=0, begun=False), State.LOST, "supervisor died"),
    ("died in the queue", seen(status=status("queued"), begun=False), State.QUEUED, "waited for its turn"),
    (
        "up, not told of yet",
        seen(status=status("starting")._replace(trainer=ProcessIdentity(5, 1)), supervisor_held=True, run_held=True),
        State.RUNNING,
        "live",
    ),
    ("just ended", seen(status=status("running"), supervisor_held=True), State.STOPPING, "just ended"),
    (
        "frozen supervisor",
        seen(status=status("running"), supervisor_held=True, run_held=True, supervisor_stopped=True),
        State.RUNNING,
        "sees nothing",
    ),
    ("taken back", seen(status=status("ended", action="stop"), begun=False), State.STOPPED, "cancelled"),
    ("unsupervised by lock", seen(status=status("running"), run_held=True), State.UNSUPERVISED, "supervisor has died"),
    (
        "no locks on its disk",
        seen(status=status("running"), alive=(5,), unreadable=(("supervisor.lock", "supervisor.lock: No locks"),)),
        State.UNSUPERVISED,
        "whether its supervisor lives cannot be known, the training goes on (supervisor.lock: No locks)",
    ),
    ("unsupervised by process", seen(status=status("running"), alive=(5,)), State.UNSUPERVISED, "goes on"),
    (
        "a pid of another boot is nobody",
        seen(status=status("running"), alive=(5,), same_boot=False),
        State.LOST,
        "reboot",
    ),
    ("power loss", seen(status=status("running"), same_boot=False), State.LOST, "power loss or reboot"),
    ("both killed", seen(status=status("running")), State.LOST, "supervisor was killed"),
    ("gone, boot unknown", seen(status=status("running"), same_boot=None), State.LOST, "without an exit record"),
    ("both killed while stopping", seen(status=status("stopping", action="stop")), State.LOST, "while a stop"),
    ("finished", seen(status=status("ended"), exit=exited(code=0)), State.FINISHED, "exit code 0"),
    ("finished by its own word", seen(exit=exited(code=0), phase="done"), State.FINISHED, "done"),
    ("code 0 half way", seen(exit=exited(code=0), phase="train"), State.STOPPED, "ended early"),
    ("failed", seen(exit=exited(code=1, cause="mps_oom")), State.FAILED, "mps_oom"),
    ("not started", seen(exit=exited(spawn_error="no such file: train.py")), State.FAILED, "train.py"),
    ("segfault", seen(exit=exited(signal=11)), State.FAILED, "SIGSEGV"),
    ("metal abort", seen(exit=exited(signal=6, cause="metal_cmdbuf")), State.FAILED, "SIGABRT (metal_cmdbuf)"),
    ("killed by somebody", seen(exit=exited(signal=9)), State.KILLED, "mpstui did not send"),
    (
        "killed by us",
        seen(exit=exited(signal=9, action="kill", requested_by="me@mac:1")),
        State.KILLED,
        "me@mac:1 asked",
    ),
    ("killed inside a shell", seen(exit=exited(code=137)), State.KILLED, "SIGKILL"),
    ("stopped", seen(exit=exited(code=0, action="stop", requested_by="me"), phase="train"), State.STOPPED, "me asked"),
    ("stopped the hard way", seen(exit=exited(signal=9, action="stop", requested_by="me")), State.STOPPED, "SIGKILL"),
    ("restart without a new attempt", seen(exit=exited(code=0, action="restart")), State.STOPPED, "restart"),
    (
        "between two attempts",
        seen(status=status("stopping", action="restart"), exit=exited(code=0, action="restart"), supervisor_held=True),
        State.STARTING,
        "next attempt",
    ),
    ("end seen, code not", seen(exit=exited(unknown=True), phase="done"), State.LOST, "exit code unknown"),
    (
        "dependency",
        seen(status=status("dependency_failed"), supervisor_held=True),
        State.DEPENDENCY_FAILED,
        "waited for",
    ),
    (
        "dependency, never started",
        seen(exit=exited(cause="dependency_failed", evidence={"dependency": "run a did not finish"})),
        State.DEPENDENCY_FAILED,
        "never started: run a did not finish",
    ),
    (
        "called off in the queue",
        seen(exit=exited(action="stop", requested_by="me@here:1")),
        State.STOPPED,
        "never started: me@here:1 asked for a stop",
    ),
    ("dependency, recorded", seen(exit=exited(cause="dependency_failed")), State.DEPENDENCY_FAILED, "waited for"),
    ("outlived", seen(exit=exited(code=1, survivors=[9]), alive=(9,)), State.FAILED, "outlived by process 9"),
    ("outlived by a lock", seen(exit=exited(code=0), run_held=True), State.FINISHED, "holds run.lock"),
    ("no spec", seen(spec=None), State.UNREADABLE, "missing"),
    ("no spec yet", seen(spec=None, age_seconds=0.5), State.STARTING, "being written"),
    ("damaged spec", seen(spec=None, unreadable=(("spec.json", "spec.json: not JSON"),)), State.UNREADABLE, "not JSON"),
    (
        "damaged spec, alive",
        seen(spec=None, unreadable=(("spec.json", "spec.json: x"),), **BOTH),
        State.RUNNING,
        "spec.json: x",
    ),
    ("no spec, only its processes live", seen(spec=None, run_held=True), State.UNSUPERVISED, "goes on"),
    (
        "nothing can be opened",
        seen(spec=None, unreadable=(("spec.json", "spec.json: Too many open files"), ("run.lock", "run.lock: x"))),
        State.UNREADABLE,
        "whether it runs cannot be told",
    ),
    (
        "damaged status, alive",
        seen(unreadable=(("status.json", "status.json: x"),), **BOTH),
        State.RUNNING,
        "status.json",
    ),
    ("damaged end", seen(unreadable=(("exit.json", "exit.json: x"),)), State.UNREADABLE, "exit.json"),
    (
        "newer",
        seen(newer=(("spec.json", "spec.json: schema 2 is newer than 1"),), run_held=True),
        State.UNREADABLE,
        "it still runs",
    ),
]


@pytest.mark.parametrize(
    ("witnesses", "state", "reason"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_each_row_of_the_table(witnesses: RunWitnesses, state: State, reason: str) -> None:
    verdict = derive(witnesses)
    assert verdict.state is state, verdict
    assert reason in verdict.reason


PHASES = ("queued", "starting", "running", "stopping", "backing_off", "ended", "stop_failed", "what is this")
witnesses_of_any_kind = st.builds(
    seen,
    spec=st.sampled_from([SPEC, None]),
    status=st.one_of(st.none(), st.sampled_from(PHASES).map(status)),
    exit=st.one_of(
        st.none(),
        st.builds(
            exited,
            code=st.sampled_from([None, 0, 1, 137]),
            signal=st.sampled_from([None, 9, 11, 64]),
            action=st.sampled_from([None, "stop", "kill", "restart"]),
        ),
    ),
    supervisor_held=st.booleans(),
    run_held=st.booleans(),
    alive=st.sampled_from([(), (5,), (5, 6)]),
    same_boot=st.sampled_from([True, False, None]),
    attempt=st.integers(0, 3),
    begun=st.booleans(),
    phase=st.sampled_from([None, "train", "done"]),
    unreadable=st.sampled_from([(), (("status.json", "status.json: x"),), (("exit.json", "exit.json: x"),)]),
)


@given(witnesses_of_any_kind)
def test_whatever_is_seen_there_is_one_state_with_a_reason(witnesses: RunWitnesses) -> None:
    verdict = derive(witnesses)
    assert verdict.reason
    if verdict.state is State.FINISHED:
        assert witnesses.exit is not None
        assert witnesses.exit.code == 0
        assert witnesses.phase in (None, "done")


@given(witnesses_of_any_kind)
def test_nothing_runs_without_a_lock_or_a_process(witnesses: RunWitnesses) -> None:
    if derive(witnesses).state in (State.RUNNING, State.UNSUPERVISED, State.BACKING_OFF):
        assert witnesses.supervisor_held or witnesses.trainer_lives


@given(st.integers(0, 255), st.sampled_from([None, "train", "done"]))
def test_no_exit_code_but_zero_is_success(code: int, phase: str | None) -> None:
    assert (ended(exited(code=code), phase).state is State.FINISHED) == (code == 0 and phase != "train")


@pytest.mark.parametrize("how", [{"signal": 9}, {"code": 137}])
def test_who_sent_a_signal_that_kills_is_not_claimed(how: dict[str, int]) -> None:
    reason = ended(exited(cause="killed_os", **how), None).reason
    assert "SIGKILL, which mpstui did not send" in reason
    assert "_os" not in reason


def test_an_unknown_signal_number_is_shown_as_it_is() -> None:
    assert "signal 99" in ended(exited(signal=99), None).reason
