"""The state of a scheduler's run, told from the scheduler's word and the run's own records together."""

from __future__ import annotations

import pytest

from mpstui.cli import ps
from mpstui.core.engines.slurm import Slurm
from mpstui.core.model.jobs import JobPhase, JobView
from mpstui.core.model.snapshot import State
from mpstui.core.runs.scheduled import as_called_off, derive_scheduled
from mpstui.core.runs.state import RunWitnesses, StateVerdict
from mpstui.wire.liveness import ProcessIdentity
from mpstui.wire.records import ExitRecord, LaunchTemplate, Spec, Status

SPEC = Spec("r", "r", 0.0, LaunchTemplate("auto", {}, "/"), engine=Slurm().rule({}))
RUNNING = Status("r", "running", 1, 5.0, boot_id="another", trainer=ProcessIdentity(7, 7), job="17.0")


def job(state: str, reason: str = "None", nodes: str = "", silent: float | None = None) -> JobView:
    priority = "0" if reason.startswith("JobHeld") else "4294901745"
    (found,) = Slurm().listed("\x1f".join(["17", state, reason, nodes, "p", "N/A", "N/A", priority, "me", "a\x1fb"]))
    assert found.name == "a\x1fb"
    return found._replace(silent_since=silent)


def told(found: JobView, status: Status | None = RUNNING, ended: ExitRecord | None = None) -> StateVerdict:
    begun = status is not None and status.trainer is not None
    seen = RunWitnesses(spec=SPEC, job=found, status=status, exit=ended, attempt=1, begun=begun, same_boot=False)
    return derive_scheduled(seen, found)


@pytest.mark.parametrize(
    ("word", "reason", "state", "said"),
    [
        ("PENDING", "Priority", State.QUEUED, "job 17 is pending: Priority"),
        ("PENDING", "JobHeldUser", State.QUEUED, "job 17 is held: JobHeldUser"),
        ("REQUEUE_HOLD", "None", State.QUEUED, "job 17 is held"),
        ("CONFIGURING", "None", State.RUNNING, "job 17 is given its nodes on n[1-2]"),
        ("RUNNING", "None", State.RUNNING, "job 17 runs on n[1-2]"),
        ("SUSPENDED", "None", State.RUNNING, "job 17 is suspended by the scheduler"),
        ("COMPLETING", "None", State.STOPPING, "job 17 is ending"),
        ("CANCELLED", "None", State.KILLED, "cancelled through the scheduler, not by mpstui"),
        ("CANCELLED+", "None", State.KILLED, "cancelled through the scheduler, not by mpstui"),
        ("TIMEOUT", "TimeLimit", State.KILLED, "ran into its time limit: TimeLimit"),
        ("PREEMPTED", "None", State.KILLED, "was preempted and not requeued"),
        ("NODE_FAIL", "NodeDown", State.FAILED, "the failure of a node: NodeDown"),
        ("OUT_OF_MEMORY", "OutOfMemory", State.FAILED, "using too much memory"),
        ("FAILED", "NonZeroExitCode", State.FAILED, "has failed: NonZeroExitCode"),
        ("COMPLETED", "None", State.LOST, "nobody recorded how the training ended"),
    ],
)
def test_the_schedulers_word_decides_where_nothing_is_on_record(
    word: str, reason: str, state: State, said: str
) -> None:
    found = told(job(word, reason, "n[1-2]"))
    assert found.state is state
    assert said in found.reason


def test_what_ended_by_itself_ended_whatever_the_scheduler_says_of_its_job() -> None:
    status = RUNNING._replace(phase="ended")
    for word in ("RUNNING", "COMPLETING", "COMPLETED", "CANCELLED", "TIMEOUT"):
        assert told(job(word), status, ExitRecord(1, 6.0, code=0)).state is State.FINISHED
    assert told(job("FAILED"), status, ExitRecord(1, 6.0, code=3)).state is State.FAILED


@pytest.mark.parametrize("held", [False, True])
def test_an_end_before_a_restart_that_the_job_is_there_for_is_none(held: bool) -> None:
    """A run that has moved to a cluster: no attempt of it was ever a job."""
    seen = RunWitnesses(
        spec=SPEC,
        job=job("RUNNING"),
        status=RUNNING._replace(phase="ended", job=None),
        exit=ExitRecord(1, 6.0, code=0, action="stop"),
        attempt=1,
        begun=True,
        supervisor_held=held,
    )
    assert derive_scheduled(seen, job("RUNNING")).state is State.STOPPED
    for word in ("RUNNING", "CONFIGURING"):
        assert derive_scheduled(seen._replace(wished=frozenset({"restart"})), job(word)).state is State.STARTING


def test_an_end_for_the_schedulers_sake_is_none_while_its_job_comes_back() -> None:
    record, status = (
        ExitRecord(1, 6.0, code=0, action="requeue", requested_by="Slurm"),
        RUNNING._replace(phase="queued"),
    )
    assert told(job("PENDING", "BeginTime"), status, record).state is State.QUEUED
    assert told(job("RUNNING", nodes="n2"), status, record).state is State.STARTING
    assert told(job("CANCELLED"), status, record).state is State.KILLED
    assert told(job("COMPLETED"), status, record).state is State.STOPPED


@pytest.mark.parametrize(
    ("word", "said"), [("CANCELLED", "not by mpstui"), ("TIMEOUT", "time limit"), ("PREEMPTED", "was preempted")]
)
def test_a_signal_that_nobody_asked_for_is_the_schedulers_where_it_says_so(word: str, said: str) -> None:
    record, status = ExitRecord(1, 6.0, signal=15), RUNNING._replace(phase="queued")
    found = told(job(word), status, record)
    assert (found.state, said in found.reason) == (State.KILLED, True)
    assert "mpstui did not send" in told(job("FAILED"), status, record).reason
    assert "mpstui did not send" not in found.reason


def test_a_job_that_began_again_and_has_written_nothing_yet_is_starting() -> None:
    assert told(job("RUNNING"), None).state is State.STARTING
    assert told(job("RUNNING"), RUNNING._replace(job="16.2")).state is State.STARTING


def test_silence_changes_nothing_and_is_told() -> None:
    for word, state in (("PENDING", State.QUEUED), ("RUNNING", State.RUNNING)):
        found = told(job(word, silent=1.0))
        assert found.state is state
        assert found.reason.count("Slurm does not answer since") == 1
    never = JobView(engine="slurm", title="Slurm", id="17", phase=JobPhase.UNKNOWN, silent_since=1.0)
    assert told(never).state is State.RUNNING  # by its own records
    assert told(never, None).state is State.QUEUED


def test_a_job_that_is_cancelled_at_our_own_request_is_being_stopped_until_that_is_on_record() -> None:
    """Cancelled first, then recorded: what is seen in between is no cancellation behind our back."""
    record = ExitRecord(1, 6.0, code=0, action="requeue", requested_by="Slurm")
    status = RUNNING._replace(phase="queued", waiting_for="job")
    seen = RunWitnesses(spec=SPEC, job=job("CANCELLED"), status=status, exit=record, attempt=1, begun=True)
    assert derive_scheduled(seen._replace(wished=frozenset({"stop"})), job("CANCELLED")).state is State.STOPPING
    assert derive_scheduled(seen, job("CANCELLED")).state is State.KILLED
    called_off = as_called_off(record, status._replace(phase="ended", action="stop", asker="me@here:1"))
    found = derive_scheduled(seen._replace(exit=called_off), job("PENDING"))
    assert (found.state, found.reason) == (State.QUEUED, "Slurm job 17 is pending")
    found = derive_scheduled(seen._replace(exit=called_off), job("CANCELLED"))
    assert (found.state, found.reason) == (State.STOPPED, "exit code 0 after me@here:1 asked for a stop")


def test_what_was_called_off_before_it_began_is_no_cancellation_behind_our_back() -> None:
    status = Status("r", "ended", 1, 5.0, action="stop", asker="me@here:1")
    assert told(job("CANCELLED"), status).state is State.STOPPED


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        ("pending", "5 Priority"),
        ("running", "5 on n1"),
        ("completed", "5 completed"),
        ("timed_out", "5 timed out"),
        ("cancelled", "5 cancelled"),
    ],
)
def test_the_list_says_of_a_job_that_is_over_that_it_is(phase: str, told: str) -> None:
    job = {"id": "5", "phase": phase, "reason": "Priority", "nodes": "n1", "silent_since": None}
    assert ps._job(job) == told
