"""Runs as jobs of a scheduler: submitted, told by both truths, acted upon, requeued and gone on with."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from mpstui.cli import logs as cli_logs
from mpstui.core.engines import board, offers
from mpstui.core.engines.engine import engine_named
from mpstui.core.engines.slurm import Slurm
from mpstui.core.hosts.relocation import Places, choice_message, relocated
from mpstui.core.launching.actions import Actions
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.jobs import change
from mpstui.core.launching.scheduling import scheduler_fields
from mpstui.core.model.checks import ProfileError
from mpstui.core.model.errors import OperationError, UsageError
from mpstui.core.model.jobs import JobPhase
from mpstui.core.model.snapshot import State
from mpstui.core.present import CANCELLED, badge, failed_or_stuck
from mpstui.core.profiles.parse import parse_profile
from mpstui.core.runs.report import as_json
from mpstui.wire import storage
from mpstui.wire.jobs import CANCEL, JobRecord, submitted_again
from mpstui.wire.records import Ack
from mpstui.wire.rundir import RunDir, asker
from tests.core.runs.build import FakeClock
from tests.waiting import wait_until

from .conftest import PROFILE, SAVES, Cluster
from .fake import FakeCluster


def answered(actions: Actions, run: Path, request: str) -> Ack:
    found = wait_until(lambda: actions.answer(run, request), what=f"the answer to {request}")
    assert found is not None
    return found


def test_a_profile_with_a_slurm_table_is_submitted_with_every_option_as_one_argument(
    runs: Cluster, cluster: FakeCluster
) -> None:
    profile = PROFILE + 'account = "a b; touch x"\ngpus-per-node = 2\nexclusive = true\n'
    (run,) = runs.launch(profile, name="weird $(touch y) 'name")
    words = json.loads((cluster.folder / "calls").read_text().splitlines()[0])
    assert {"--partition=gpu", "--account=a b; touch x", "--gpus-per-node=2", "--exclusive"} <= set(words)
    assert {"--job-name=weird $(touch y) 'name", "--requeue", "--signal=B:USR1@60"} <= set(words)
    folder = runs.home.runs / run
    assert words[-2:] == ["SLURM_ARRAY_TASK_ID", str(folder)]
    assert (folder / "job.sh").read_text().endswith('exec "$@"\n')  # nothing of the user's in any shell
    record = storage.read(JobRecord, RunDir(folder).job)
    assert record is not None
    assert (record.engine, record.id) == ("slurm", "10")
    found = runs.see(run)
    assert found.state is State.QUEUED
    assert found.reason == "Slurm job 10 is pending: Priority"
    told = as_json(found, full=False)["job"]
    assert told == {
        **{"engine": "slurm", "id": "10", "phase": "pending", "state": "PENDING", "reason": "Priority"},
        **{"nodes": None, "partition": "gpu", "starts": None, "ends": None, "silent_since": None},
    }


def test_a_job_runs_its_supervisor_and_ends_with_the_exit_code_of_the_training(
    runs: Cluster, cluster: FakeCluster
) -> None:
    (run,) = runs.launch()
    cluster.start("10")
    found = runs.wait(run, lambda seen: seen.output is not None and "begun" in seen.output.read_text())
    assert (found.state, found.reason) == (State.RUNNING, "Slurm job 10 runs on n1")
    runs.enough()
    assert runs.wait(run, lambda seen: not seen.state.active).state is State.FINISHED
    while cluster.job("10")["state"] == "RUNNING":
        pass
    assert cluster.job("10")["state"] == "COMPLETED"
    assert runs.see(run).state is State.FINISHED


def test_what_the_scheduler_refuses_leaves_no_run(runs: Cluster, cluster: FakeCluster) -> None:
    with pytest.raises(OperationError, match="Slurm refuses: invalid partition specified: none"):
        runs.launch(job={"partition": "none"})
    assert not list(runs.home.runs.iterdir())


def test_without_slurm_the_sentence_says_so(runs: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin" if not Path("/usr/bin/sbatch").exists() else "/nowhere")
    with pytest.raises(OperationError, match="there is no program sbatch here"):
        runs.launch(PROFILE)


def test_wrong_options_are_named_with_their_line(runs: Cluster) -> None:
    with pytest.raises(ProfileError, match=r"`wrap` cannot be set"):
        runs.launch(PROFILE + 'wrap = "rm -rf"\n')
    with pytest.raises(UsageError, match="`nodes` is a whole number"):
        runs.launch(job={"nodes": "2-4"})
    with pytest.raises(UsageError, match="none starts this run"):
        runs.launch(on="local", job={"time": "1"})
    with pytest.raises(UsageError, match="there is no scheduler 'pbs'"):
        runs.launch(on="pbs")
    with pytest.raises(UsageError, match="nothing starts the program on the other nodes"):
        runs.launch(job={"nodes": "2"})


def test_a_pending_job_that_is_stopped_is_cancelled_and_never_starts(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch()
    seen, actions = runs.see(run), Actions(dict(os.environ))
    answer = answered(actions, seen.dir, actions.send(seen, "stop").id)
    assert (answer.ok, answer.text) == (True, "cancelled: attempt 1 will not start")
    assert cluster.job("10")["state"] == "CANCELLED"
    found = runs.wait(run, lambda seen: seen.state is State.STOPPED)
    assert found.reason.startswith("never started: ")


def test_a_running_job_is_stopped_by_its_own_supervisor(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch()
    cluster.start("10")
    seen = runs.wait(run, lambda seen: seen.output is not None and "begun" in seen.output.read_text())
    actions = Actions(dict(os.environ))
    answer = answered(actions, seen.dir, actions.send(seen, "stop").id)
    assert answer.ok
    assert runs.see(run).state is State.STOPPED
    assert not any("scancel" in line for line in (cluster.folder / "calls").read_text().splitlines())


def test_a_cancellation_behind_our_back_is_told_as_that(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch()
    cluster.start("10")
    runs.wait(run, lambda seen: seen.output is not None and "begun" in seen.output.read_text())
    cluster.kill("10")
    cluster.set("10", state="CANCELLED")
    found = runs.wait(run, lambda seen: seen.state is State.KILLED)
    assert found.reason == "Slurm job 10 was cancelled through the scheduler, not by mpstui"


@pytest.mark.parametrize(
    ("ends", "how"),
    [
        ("    signal.signal(15, signal.SIG_IGN)\n", "exit code 0"),  # Python's end would let the second SIGTERM kill it
        ("    signal.signal(15, signal.SIG_IGN)\n    sys.exit(143)\n", "exit code 143"),
        ("    signal.signal(15, signal.SIG_DFL)\n    os.kill(os.getpid(), 15)\n", "ended by SIGTERM"),
    ],
)
def test_however_a_training_ends_whose_job_is_cancelled_it_was_cancelled(
    runs: Cluster, cluster: FakeCluster, ends: str, how: str
) -> None:
    (runs.folder / "train.py").write_text(SAVES + ends)
    (run,) = runs.launch()
    cluster.start("10")
    seen = runs.wait(run, lambda seen: seen.pid and seen.output is not None and "begun" in seen.output.read_text())
    cluster.set("10", state="COMPLETING", reason="None")
    assert seen.pid is not None
    cluster.signal("10", signal.SIGTERM)
    os.kill(seen.pid, signal.SIGTERM)  # scancel tells all processes of a job
    found = runs.wait(run, lambda seen: not seen.state.active)
    assert found.exit is not None
    assert (found.state, found.exit.action, found.exit.requested_by) == (State.KILLED, CANCEL, "Slurm")
    assert found.reason == f"its Slurm job was cancelled through the scheduler, not by mpstui: {how}"
    cluster.set("10", state="CANCELLED")
    reason = "Slurm job 10 was cancelled through the scheduler, not by mpstui"  # a look behind the job's own phase
    found = runs.wait(run, lambda seen: seen.reason == reason)
    assert found.job is not None
    assert found.job.phase is JobPhase.CANCELLED
    assert (badge(found), found.end_word) == (CANCELLED, "cancelled")
    assert not failed_or_stuck(found)
    assert found.events[-1].text == f"{how}, after its job was cancelled through Slurm"
    assert cli_logs._end_told(found, as_json=False).startswith(f"{run}: cancelled (Slurm job 10 was cancelled ")
    assert json.loads(cli_logs._end_told(found, as_json=True))["exit"]["action"] == CANCEL
    assert len(cluster.jobs()) == 1, "and is not submitted again"


def test_a_scheduler_that_does_not_answer_ends_nothing(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch()
    cluster.start("10")
    runs.wait(run, lambda seen: seen.state is State.RUNNING)
    cluster.down = True
    found = runs.wait(run, lambda seen: seen.job is not None and seen.job.silent_since is not None)
    assert found.state is State.RUNNING
    assert "; Slurm does not answer since " in found.reason
    assert "Unable to contact slurm controller" in found.reason
    runs.enough()
    assert runs.wait(run, lambda seen: not seen.state.active).state is State.FINISHED  # its own records say so
    cluster.down = False
    runs.wait(run, lambda seen: seen.job is not None and seen.job.silent_since is None)


def test_a_job_that_the_scheduler_has_forgotten_keeps_its_last_word(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch()
    cluster.set("10", state="CANCELLED")
    runs.wait(run, lambda seen: seen.state is State.KILLED)
    (cluster.folder / "jobs" / "10.json").unlink()
    before = (cluster.folder / "calls").stat().st_size
    while (cluster.folder / "calls").stat().st_size == before:
        assert runs.see(run).state is State.KILLED
    assert runs.see(run).state is State.KILLED


def test_the_accounting_tells_what_squeue_has_forgotten_and_is_not_asked_for_ever(
    runs: Cluster, cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sacct, told, calls = cluster.folder / "bin" / "sacct", tmp_path / "told", tmp_path / "calls"
    sacct.write_text(f'#!/bin/sh\necho "$@" >> {calls}\ncat {told}\n')
    sacct.chmod(0o700)
    (run,) = runs.launch()
    (cluster.folder / "jobs" / "10.json").unlink()  # it ended, and was forgotten, while nobody looked
    told.write_text("\x1f".join(("10", "TIMEOUT", "None", "n1", "gpu", "100", "200", "7", "me", "a\x1fb")) + "\n")
    seen = runs.see(run)
    assert (seen.state, "ran into its time limit" in seen.reason) == (State.KILLED, True)
    assert seen.job is not None
    assert (seen.job.starts, seen.job.ends) == (100.0, 200.0)
    told.unlink()  # as where no accounting is kept
    asked = board.JobBoard(engine_named("slurm"), runs.home.state / "cache" / "jobs-slurm.json")

    def asked_for() -> int:
        assert asked.view("99").phase is JobPhase.GONE
        return calls.read_text().count("--jobs=99")

    monkeypatch.setattr(board, "ASK_EVERY_SECONDS", 0.01)
    wait_until(lambda: asked_for() == 3, what="the accounting to be asked three times", every=0.01)
    before = (cluster.folder / "calls").read_text().count('"squeue"')
    while (cluster.folder / "calls").read_text().count('"squeue"') < before + 4:
        assert asked_for() == 3
        time.sleep(0.01)


def test_a_job_that_left_the_list_is_as_it_was_until_the_accounting_has_told_how_it_ended(
    runs: Cluster, cluster: FakeCluster, tmp_path: Path
) -> None:
    sacct, told = cluster.folder / "bin" / "sacct", tmp_path / "told"
    sacct.write_text(f"#!/bin/sh\nwhile [ ! -e {told} ]; do sleep 0.02; done\ncat {told}\n")
    sacct.chmod(0o700)
    runs.launch()
    asked = board.JobBoard(engine_named("slurm"), tmp_path / "cache" / "jobs.json")
    wait_until(lambda: asked.view("10").phase is JobPhase.PENDING, what="the job to be listed")
    (cluster.folder / "jobs" / "10.json").unlink()  # cancelled, and forgotten before anybody looked again
    before, seen = (cluster.folder / "calls").read_text().count('"squeue"'), set()
    while (cluster.folder / "calls").read_text().count('"squeue"') < before + 3:
        seen.add(asked.view("10").phase)
    (tmp_path / "writing").write_text(
        "\x1f".join(("10", "CANCELLED by 1000", "None", "", "gpu", "1", "2", "7", "me", "a"))
    )
    (tmp_path / "writing").rename(told)
    while asked.view("10").phase is not JobPhase.CANCELLED:
        seen.add(asked.view("10").phase)
    assert seen <= {JobPhase.PENDING, JobPhase.CANCELLED}


def test_the_first_look_waits_for_one_answer_however_soon_the_next_is_due(
    runs: Cluster, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "ASK_EVERY_SECONDS", 0.0)
    asked = board.JobBoard(engine_named("slurm"), runs.home.state / "cache" / "jobs-slurm.json")
    assert asked.view("17").silent_since is None
    assert (cluster.folder / "calls").read_text().count('"squeue"') == 1


def test_a_scheduler_that_takes_long_is_asked_less_often(
    runs: Cluster, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    path = runs.home.state / "cache" / "jobs-slurm.json"
    asked = board.JobBoard(engine_named("slurm"), path, lambda: now[0])
    asked.view("17")
    monkeypatch.setattr(board, "EASY_TIMES", 1000.0)  # as if it had taken seconds
    now[0] += 20.0
    asked.view("17")
    board.JobBoard(engine_named("slurm"), path, lambda: now[0]).view("17")  # another process knows it too
    assert (cluster.folder / "calls").read_text().count('"squeue"') == 1
    asked.hurry()
    asked.view("17")
    assert (cluster.folder / "calls").read_text().count('"squeue"') == 2


def test_one_that_always_takes_its_time_is_not_told_as_silent(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue, answers, clock = cluster.folder / "bin" / "squeue", tmp_path / "answers", FakeClock()
    squeue.write_text(f"#!/bin/sh\nwhile [ ! -e {answers} ]; do sleep 0.01; done\n")
    monkeypatch.setattr(board, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=clock.advance))
    monkeypatch.setattr(board, "FIRST_ANSWER_SECONDS", 3.0)
    monkeypatch.setattr(board, "ASK_EVERY_SECONDS", 30.0)
    asked = board.JobBoard(engine_named("slurm"), tmp_path / "jobs.json", clock)
    assert asked.view("17").silent_since is not None  # it never answered before
    clock.advance(2.0)
    answers.touch()
    wait_until(lambda: asked.view("17").silent_since is None, what="the answer")
    answers.unlink()
    for seconds, is_silent in ((60.0, False), (9.9, False), (0.2, True)):  # the last answer took five
        clock.advance(seconds)
        assert (asked.view("17").silent_since is not None) is is_silent
    answers.touch()


def test_before_its_time_limit_it_saves_is_requeued_and_goes_on(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch()
    cluster.start("10")
    runs.wait(run, lambda seen: seen.output is not None and "begun" in seen.output.read_text())
    cluster.signal("10", signal.SIGUSR1)
    found = runs.wait(run, lambda seen: seen.job is not None and seen.job.phase is JobPhase.PENDING)
    assert found.state is State.QUEUED
    assert "its time limit was near; it continues when its job starts again" in found.reason
    assert found.exit is None
    cluster.start("10")
    again = runs.wait(run, lambda seen: seen.attempt == 2 and seen.output is not None)
    assert again.output is not None
    runs.wait(run, lambda seen: "begun at 1" in (seen.output.read_text() if seen.output else ""))
    runs.enough()
    assert runs.wait(run, lambda seen: not seen.state.active).state is State.FINISHED


def test_one_without_checkpoints_is_not_requeued_for_ever(runs: Cluster, cluster: FakeCluster) -> None:
    (runs.folder / "train.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    (run,) = runs.launch(PROFILE)
    cluster.start("10")
    runs.wait(run, lambda seen: seen.output is not None and "begun" in seen.output.read_text())
    cluster.signal("10", signal.SIGUSR1)
    found = runs.wait(run, lambda seen: not seen.state.active)
    assert found.state is State.STOPPED
    assert "not requeued: this attempt saved no checkpoint" in found.reason


def test_a_job_killed_without_a_word_goes_on_from_its_checkpoint(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch()
    folder = runs.home.runs / run
    cluster.start("10")
    runs.wait(run, lambda seen: seen.output is not None and "begun" in seen.output.read_text())
    (folder / "checkpoints" / "7.ckpt").write_text("x")
    cluster.kill("10")  # a node that failed, or a preemption without grace
    cluster.set("10", state="PENDING", reason="BeginTime", restarts=1)
    runs.wait(run, lambda seen: seen.state is State.QUEUED)
    cluster.start("10")
    runs.wait(run, lambda seen: seen.attempt == 2 and "begun at 7" in (seen.output.read_text() if seen.output else ""))
    runs.enough()
    assert runs.wait(run, lambda seen: not seen.state.active).state is State.FINISHED


@pytest.mark.parametrize("told", ["supervisor", "step"])
def test_a_preempted_job_that_was_given_notice_is_requeued_as_soon_as_it_has_saved(
    runs: Cluster, cluster: FakeCluster, told: str
) -> None:
    (runs.folder / "train.py").write_text(SAVES + "    sys.exit(143)\n")  # as torchrun does after SIGTERM
    (run,) = runs.launch()
    cluster.start("10")
    seen = runs.wait(run, lambda seen: seen.output is not None and "begun" in seen.output.read_text())
    cluster.set("10", preempt="2026-11-23T04:22:16")
    if told == "step":  # what srun started hears of it, and the job's first process does not
        assert seen.pid is not None
        os.kill(seen.pid, signal.SIGTERM)
    else:
        cluster.signal("10", signal.SIGTERM)
    found = runs.wait(run, lambda seen: seen.job is not None and seen.job.phase is JobPhase.PENDING)
    assert "Slurm took its nodes" in found.reason


def test_a_job_that_is_preempted_for_good_is_submitted_anew_before_it_has_saved(
    runs: Cluster, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_ACCOUNT", "vision")
    monkeypatch.setenv("SBATCH_WAIT", "1")
    (run,) = runs.launch()
    cluster.start("10")
    runs.wait(run, lambda seen: seen.output is not None and "begun" in seen.output.read_text())
    cluster.set("10", state="COMPLETING", preempt="2026-11-23T07:07:12")  # as with PreemptMode=CANCEL
    cluster.signal("10", signal.SIGTERM)
    found = runs.wait(run, lambda seen: seen.state is State.QUEUED and "it continues when job 20 starts" in seen.reason)
    cluster.set("10", state="PREEMPTED")
    fresh = cluster.job("20")
    assert fresh["options"] == {**cluster.job("10")["options"], "dependency": "afterany:10"}
    left = {name: text for name, text in fresh["environ"].items() if name.startswith(("SLURM_", "SBATCH_", "LC_ALL"))}
    assert left == {"SBATCH_ACCOUNT": "vision", **{k: v for k, v in os.environ.items() if k == "LC_ALL"}}
    cluster.start("20")
    runs.wait(run, lambda seen: seen.attempt == 2 and "begun at 1" in (seen.output.read_text() if seen.output else ""))
    runs.enough()
    assert runs.wait(run, lambda seen: not seen.state.active).state is State.FINISHED
    record = storage.read(JobRecord, RunDir(found.dir).job)
    assert record is not None
    assert (record.id, record.earlier) == ("20", ["10"])


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("COMPLETING 2026-11-23T07:07:12 0 None", [""]),
        ("COMPLETING 1795417632 0 None", [""]),
        ("COMPLETING N/A 0 TimeLimit", ["TimeLimit"]),
        ("COMPLETING 2026-11-23T07:07:12 1 None", []),  # requeued
        ("COMPLETING N/A 0 None", []),  # cancelled
        ("RUNNING 2026-11-23T07:07:12 0 None", []),  # has still its grace
        ("", []),
    ],
)
def test_what_slurm_says_of_a_job_that_is_ended_tells_whether_it_comes_back(said: str, limit: list[str]) -> None:
    found = re.fullmatch(Slurm().rule({}).dropped.replace("{restarts}", "0"), said)
    assert [found["limit"] or ""] == limit if found else limit == []


def test_what_slurm_says_of_a_job_that_is_cancelled_is_of_no_other() -> None:
    pattern = Slurm().rule({}).cancelled.replace("{restarts}", "0")
    said = ["COMPLETING N/A 0 None", "COMPLETING N/A 0 TimeLimit", "COMPLETING N/A 1 None", "RUNNING N/A 0 None"]
    assert [bool(re.fullmatch(pattern, one)) for one in said] == [True, False, False, False]


def test_one_that_was_told_not_to_come_back_does_not() -> None:
    rule = Slurm().rule({"no-requeue": ""})
    assert not rule.requeue
    assert not rule.again


def test_a_task_of_an_array_is_submitted_anew_alone() -> None:
    argv = ["sbatch", "--parsable", "--array=0-5", "/runs/a/job.sh", "python", "--in-job", "x"]
    again = submitted_again(Slurm().rule({}), argv, "17_3")
    assert again == [*argv[:3], "--dependency=afterany:17_3", "--array=3", *argv[3:]]
    assert submitted_again(Slurm().rule({}), argv, "17")[3:5] == ["--dependency=afterany:17", "/runs/a/job.sh"]


@pytest.mark.parametrize(
    ("action", "state", "said"),
    [
        ("stop", State.STOPPED, "exit code 0 after {} asked for a stop"),
        ("kill", State.KILLED, "exit code 0: killed as {} asked"),
    ],
)
def test_a_requeued_job_can_be_called_off(
    runs: Cluster, cluster: FakeCluster, action: str, state: State, said: str
) -> None:
    (run,) = runs.launch()
    cluster.start("10")
    runs.wait(run, lambda seen: seen.output is not None and "begun" in seen.output.read_text())
    cluster.signal("10", signal.SIGUSR1)
    seen = runs.wait(run, lambda seen: seen.job is not None and seen.job.phase is JobPhase.PENDING)
    looks = [seen]
    over = Event()

    def look_on() -> None:
        while not over.is_set():
            looks.append(runs.see(run))

    looking = Thread(target=look_on)
    looking.start()
    actions = Actions(dict(os.environ))
    answer = answered(actions, seen.dir, actions.send(seen, action).id)
    found = runs.wait(run, lambda seen: not seen.state.active)
    over.set()
    looking.join()
    assert answer.ok
    assert cluster.job("10")["state"] == "CANCELLED"
    assert found.reason == said.format(asker())
    assert found.exit is not None
    assert (found.state, found.exit.action, found.exit.requested_by) == (state, action, asker())
    assert not found.was_cancelled, "it was, but by mpstui"
    assert {one.state for one in looks} <= {State.QUEUED, State.STOPPING, state}


def test_a_restart_of_what_has_ended_is_a_new_job(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch()
    cluster.start("10")
    runs.enough()
    seen = runs.wait(run, lambda seen: seen.state is State.FINISHED and seen.job is not None and seen.job.phase.is_over)
    (runs.folder / "enough").unlink()
    (seen.dir / "checkpoints" / "5.ckpt").write_text("x")
    actions = Actions(dict(os.environ))
    answer = answered(actions, seen.dir, actions.restart(seen).id)
    assert (answer.ok, answer.text) == (True, "Slurm job 20 is pending: Priority; it continues when the job starts")
    assert runs.see(run).state is State.QUEUED
    cluster.start("20")
    runs.wait(run, lambda seen: seen.attempt == 2 and "begun at 5" in (seen.output.read_text() if seen.output else ""))
    runs.enough()
    assert runs.wait(run, lambda seen: not seen.state.active).state is State.FINISHED


def test_a_sweep_is_one_array_and_each_task_its_own_run(runs: Cluster, cluster: FakeCluster) -> None:
    found = runs.launch(sweep={"seed": ("1", "2", "3")})
    assert [job["id"] for job in cluster.jobs()] == ["10_0", "10_1", "10_2"]
    cluster.start("10_1")
    runs.wait(found[1], lambda seen: seen.state is State.RUNNING and seen.argv[-1:] == ("2",))
    assert runs.see(found[0]).state is State.QUEUED
    runs.enough()
    runs.wait(found[1], lambda seen: seen.state is State.FINISHED)


def test_several_nodes_start_a_torchrun_on_each_that_meet_on_the_first(runs: Cluster) -> None:
    profile = 'launcher = "torchrun"\nprocesses = 2\n' + PROFILE + "nodes = 2\n"
    (run,) = runs.launch(profile)
    spec = json.loads((runs.home.runs / run / "spec.json").read_text())
    argv = spec["launch"]["variants"]["auto"]["argv"]
    assert argv[:5] == ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1"]
    assert argv[argv.index("--nnodes") : argv.index("--nnodes") + 6] == [
        *("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "{rendezvous}")
    ]
    assert "--standalone" not in argv


def test_looking_at_runs_starts_no_job_here(runs: Cluster, cluster: FakeCluster) -> None:
    from mpstui.core.launching.actions import SupervisorRecovery

    (run,) = runs.launch()
    assert SupervisorRecovery(runs.home, Actions(dict(os.environ)).supervise).respawn_missing() == []
    assert runs.see(run).state is State.QUEUED


def test_many_looks_are_one_question_every_few_seconds(
    runs: Cluster, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = runs.launch(sweep={"seed": tuple("123456")})
    runs.wait(found[0], lambda seen: seen.job is not None and seen.job.phase is JobPhase.PENDING)
    monkeypatch.setattr(board, "ASK_EVERY_SECONDS", 60.0)
    before = (cluster.folder / "calls").read_text().count('"squeue"')
    for _ in range(3):
        board.board_of.cache_clear()  # as another process
        assert {runs.see(run).state for run in found} == {State.QUEUED}
    assert (cluster.folder / "calls").read_text().count('"squeue"') <= before + 1


def test_a_job_that_waits_is_held_released_and_put_first(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch()
    actions = Actions(dict(os.environ))
    seen = runs.wait(run, lambda seen: seen.job is not None and seen.job.phase is JobPhase.PENDING)
    answer = answered(actions, seen.dir, actions.send(seen, "pause").id)
    assert (answer.ok, answer.text) == (True, "Slurm job 10 is held; `mpstui continue` releases it")
    seen = runs.wait(run, lambda seen: seen.job is not None and seen.job.phase is JobPhase.HELD)
    assert seen.is_frozen
    with pytest.raises(OperationError, match="already paused"):
        actions.send(seen, "pause")
    assert answered(actions, seen.dir, actions.send(seen, "continue").id).text == "Slurm job 10 is released"
    runs.wait(run, lambda seen: seen.job is not None and seen.job.phase is JobPhase.PENDING)
    rule = Slurm().rule({})
    change(RunDir(seen.dir), rule, "top")
    assert cluster.job("10")["top"]


def test_whoever_looks_next_knows_that_a_job_was_held(
    runs: Cluster, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within four seconds of `mpstui pause` the next command refused to `continue`: it is not paused."""
    (run,) = runs.launch()
    actions = Actions(dict(os.environ))
    seen = runs.wait(run, lambda seen: seen.job is not None and seen.job.phase is JobPhase.PENDING)
    monkeypatch.setattr(board, "ASK_EVERY_SECONDS", 20.0)
    for request, phase in (("pause", JobPhase.HELD), ("continue", JobPhase.PENDING)):
        assert answered(actions, seen.dir, actions.send(seen, request).id).ok
        board.board_of.cache_clear()  # as another process
        seen = runs.see(run)
        assert seen.job is not None
        assert seen.job.phase is phase


def test_a_command_that_leaves_before_the_scheduler_gives_up_says_that_it_is_silent(
    runs: Cluster, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = runs.launch()
    runs.wait(run, lambda seen: seen.job is not None and seen.job.phase is JobPhase.PENDING)
    (cluster.folder / "slow").touch()
    board.board_of.cache_clear()
    monkeypatch.setattr(board, "FIRST_ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(board, "LATE_SECONDS", 0.0)
    time.sleep(0.3)  # what was heard a moment ago is not asked for again
    seen = runs.see(run)
    assert seen.state is State.QUEUED
    assert "; Slurm does not answer since " in seen.reason


def test_a_form_offers_what_the_scheduler_has(
    runs: Cluster, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offers, "_known", {})
    monkeypatch.setattr(offers, "_asked", {})
    choice = LaunchChoice(parse_profile(PROFILE, path=runs.folder / "job.toml", default_cwd=runs.folder))

    def hints() -> dict[str, str]:
        return {one.label: one.hint for one in scheduler_fields(choice, ())}

    assert hints()["partition"] == "such as gpu", "before it was asked"
    for _ in range(3):
        offers.ask_aside("slurm")
    wait_until(lambda: offers.offered("slurm"), what="an answer")
    found = hints()
    assert (found["partition"], found["time"]) == ("p, gpu", "at most 4:00:00 in gpu")
    assert (found["gpus-per-node"], found["account"]) == ("4 a100 in gpu", "such as vision")
    assert (cluster.folder / "calls").read_text().count("sinfo") == 1


def test_a_launch_that_travels_is_a_job_only_where_there_is_its_scheduler(
    runs: Cluster, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = parse_profile(PROFILE, path=None, default_cwd=runs.folder)
    told = choice_message(LaunchChoice(profile, job={"time": "5"}))
    there = relocated(told, runs.folder, Places([]))
    assert (there.on, there.job) == ("slurm", {"time": "5"})
    monkeypatch.setenv("PATH", "/nowhere")
    there = relocated(told, runs.folder, Places([]))
    assert (there.on, there.job) == ("local", {})


def test_a_restart_on_a_device_that_only_the_nodes_have_is_a_job(runs: Cluster, cluster: FakeCluster) -> None:
    (run,) = runs.launch(PROFILE + '[device_args]\ncuda = ["--device", "cuda"]\n')
    cluster.start("10")
    runs.enough()
    seen = runs.wait(run, lambda seen: seen.state is State.FINISHED and seen.job is not None and seen.job.phase.is_over)
    actions = Actions(dict(os.environ))
    assert answered(actions, seen.dir, actions.restart(seen, device="cuda", source="scratch").id).ok
    cluster.start("20")
    found = runs.wait(run, lambda seen: seen.attempt == 2 and "cuda" in seen.argv)
    assert found.argv[-2:] == ("--device", "cuda")


def line(job: str, state: str, reason: str = "None", nodes: str = "", starts: str = "Unknown") -> str:
    priority = "0" if reason == "job requeued in held state" else "4294901745"
    return "\x1f".join((job, state, reason, nodes, "p", starts, "Unknown", priority, "me", "sweep")) + "\n"


def test_lines_of_several_tasks_and_parts_are_read_as_jobs() -> None:
    told = line("3_[5-6,9%2]", "CANCELLED by 1000", nodes="None assigned") + line("3_[5-...]", "PENDING")
    told += line("7+0", "RUNNING", nodes="n1") + line("7+1", "RUNNING", nodes="n2")
    told += line("8", "PENDING", "job requeued in held state", starts=str(int(time.time()) + 366 * 86400))
    found = [(one.id, one.phase, one.nodes, one.starts) for one in Slurm().remembered(told)]
    cancelled = [(f"3_{task}", JobPhase.CANCELLED, None, None) for task in (5, 6, 9)]
    assert found == [*cancelled, ("7", JobPhase.RUNNING, "n1", None), ("8", JobPhase.HELD, None, None)]


def test_a_job_stays_in_the_list_whatever_separates_the_words_of_its_name() -> None:
    fields = ("17", "RUNNING", "None", "n1", "gpu", "1", "2", "7", "me", "a\u2028b\x1ec")
    assert [(one.id, one.name) for one in Slurm().listed("\x1f".join(fields) + "\n")] == [("17", "a\u2028b\x1ec")]
