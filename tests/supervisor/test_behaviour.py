"""Restart rule, survivors, records that cannot be read: with real processes."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mpstui.supervisor.journal import Journal
from mpstui.supervisor.machine import Clock
from mpstui.wire import storage
from mpstui.wire.liveness import ProcessIdentity
from mpstui.wire.records import CauseRule, ExitRecord, LaunchTemplate, QueueRule, RestartRule, Status, Variant

from .faults.stage import WRAPPED
from .kit import Run, alive, decide, python, wait_for

MakeRun = Callable[..., Run]
ONE = QueueRule(group="mps")
OOM = [CauseRule("mps_oom", patterns=["MPS backend out of memory"])]
CRASHES = """
import json, os, sys, time
folder, attempt = os.environ['MPSTUI_RUN_DIR'], os.environ['MPSTUI_ATTEMPT']
step = {steps}[int(attempt) - 1]
with open(folder + '/metrics.jsonl', 'a') as file:
    file.write(json.dumps(dict(time=time.time(), attempt=int(attempt), step=step, loss=0.5)) + '\\n')
print(sys.argv[1:], 'RuntimeError: MPS backend out of memory')
raise SystemExit({code})
"""


def crashing(make_run: MakeRun, steps: list[int], *, code: int = 1, **rule: object) -> Run:
    restart = RestartRule(**{"on": ["mps_oom"], "device": "cpu", "delays_seconds": [0.2], **rule})  # type: ignore[arg-type]
    return make_run(CRASHES.format(steps=steps, code=code), causes=OOM, restart=restart)


def test_a_known_crash_is_started_again_on_cpu_until_it_comes_no_further(make_run: MakeRun) -> None:
    run = crashing(make_run, [10, 20, 20])
    path = run.checkpoint("last.pt")
    run.start()
    assert run.wait_exit(1).cause == "mps_oom"
    assert run.wait_exit(3).cause == "mps_oom"
    run.wait_unsupervised()
    assert str(["--device", "cpu", "--resume", str(path)]) in run.output(2)
    status = run.status
    assert status.attempt == 3
    assert [entry["step"] for entry in status.restarts] == [10, 20]
    assert status.message == "not restarted: it crashed at the same step twice (20)"
    assert [event["attempt"] for event in run.events("crash")] == [1, 2, 3]


def test_backing_off_can_be_seen_survived_called_off_and_cut_short(make_run: MakeRun) -> None:
    run = crashing(make_run, [10, 20, 30], delays_seconds=[60.0])
    run.start()
    status = run.wait_phase("backing_off")
    assert status.next_start is not None
    assert status.next_start > status.updated + 50
    run.kill_supervisor()
    run.start()
    run.wait_phase("backing_off")
    assert run.wait_ack(run.ask("restart", source="scratch")).ok
    assert run.wait_exit(2).cause == "mps_oom"
    run.wait_phase("backing_off")
    assert run.wait_ack(run.ask("stop", attempt=2)).ok
    run.wait_unsupervised()
    assert run.status.phase == "ended"
    assert run.status.next_start is None
    assert run.exit(3) is None


def test_a_crash_of_another_kind_is_left_alone(make_run: MakeRun) -> None:
    run = crashing(make_run, [10], on=["metal_cmdbuf"])
    run.start()
    run.wait_exit()
    run.wait_unsupervised()
    assert run.status.attempt == 1
    assert "mps_oom is not in the profile's list" in (run.status.message or "")


def test_survivors_are_named_and_a_later_kill_finds_them(make_run: MakeRun) -> None:
    code = (
        "import os, signal, time\nif os.fork() == 0:\n"
        " os.setsid(); signal.signal(15, signal.SIG_IGN)\n while True: time.sleep(1)\n"
        "print('up'); time.sleep(0.1); os._exit(4)"
    )
    run = make_run(code)
    run.start()
    record = run.wait_exit()
    assert record.code == 4
    assert len(record.survivors) == 1
    found = wait_for(lambda: [ProcessIdentity(*pair) for pair in run.status.tree], "the tree")
    assert [one.pid for one in found] == record.survivors
    assert alive(found[0])
    assert run.wait_ack(run.ask("kill")).ok
    assert not alive(found[0])
    assert run.exit() == record


def test_an_end_before_the_end_is_told_from_a_finish(make_run: MakeRun) -> None:
    code = (
        "import json, os, signal, sys, time\n"
        "def term(n, f): sys.exit(0)\nsignal.signal(15, term)\n"
        "path = f\"{os.environ['MPSTUI_RUN_DIR']}/attempts/1/heartbeat.json\"\n"
        "json.dump(dict(schema=1, time=time.time(), seq=1, phase='train', step=812), open(path, 'w'))\n"
        "print('up', flush=True)\nwhile True: time.sleep(0.05)"
    )
    run = make_run(code)
    run.start()
    run.wait_output("up")
    trainer = run.wait_phase("running").trainer
    assert trainer is not None
    os.kill(trainer[0], signal.SIGTERM)
    record = run.wait_exit()
    assert (record.code, record.requested_by) == (0, None)
    assert "phase train, step 812" in record.evidence["unfinished"]


def test_edit_and_restart_replaces_the_template_for_good(make_run: MakeRun) -> None:
    run = make_run("raise SystemExit(3)")
    run.start()
    run.wait_exit()
    run.wait_unsupervised()
    edited = LaunchTemplate("cpu", {"cpu": Variant(python("print('edited')"))}, str(run.home))
    request = run.ask("restart", launch=storage.to_json(edited))
    run.start()
    assert run.wait_ack(request).text == (
        "attempt 2 started on cpu, from step 0 unless it resumes by itself"
        " ([resume] args, or `mpstui run --resume`, tell how)"
    )
    run.wait_exit(2)
    run.wait_unsupervised()
    again = run.ask("restart", attempt=2)
    run.start()
    assert run.wait_ack(again).ok
    assert run.wait_exit(3).code == 0
    assert run.output(3) == "edited\n"


def test_a_restart_that_cannot_work_stops_nothing(make_run: MakeRun) -> None:
    run = make_run("import time; print('up', flush=True); time.sleep(30)")
    run.start()
    run.wait_output("up")
    assert "nothing says how to run this program on tpu" in run.wait_ack(run.ask("restart", device="tpu")).text
    assert "there is no checkpoint" in run.wait_ack(run.ask("restart", source="/no/such.pt")).text
    assert run.status.phase == "running"
    run.wait_ack(run.ask("kill"))


def test_a_newer_schema_is_looked_at_and_not_touched(make_run: MakeRun) -> None:
    run = make_run("print('never')")
    storage.write_json(run.dir.status, {**storage.to_json(Status(run.dir.run, "running", 1, 0.0)), "schema": 99})
    before = run.dir.status.read_bytes()
    assert run.start() == 1
    assert "newer" in run.log()
    assert run.dir.status.read_bytes() == before
    assert run.output() == ""


def test_a_run_without_a_spec_and_wrong_use_say_so(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("print('never')")
    run.dir.spec.unlink()
    assert run.start() == 1
    assert "is missing" in run.log()


def test_an_exit_record_is_written_once(make_run: MakeRun) -> None:
    run = make_run("")
    journal = Journal(run.dir, Status(run.dir.run, "running", 1, 0.0), Clock())
    journal.exit(ExitRecord(1, 1.0, code=3))
    journal.exit(ExitRecord(1, 2.0, code=0))
    found = storage.read(ExitRecord, run.dir.attempt(1).exit)
    assert found is not None
    assert found.code == 3
    assert not journal.pending


def test_what_cannot_be_written_is_kept_and_written_later(make_run: MakeRun) -> None:
    run = make_run("")
    now = [0.0]
    journal = Journal(run.dir, Status(run.dir.run, "running", 1, 0.0), Clock(monotonic=lambda: now[0]))
    attempts = run.dir.path / "attempts"
    attempts.rmdir()
    attempts.write_text("in the way")
    journal.exit(ExitRecord(1, 1.0, code=3))
    kept = [journal.pending]
    attempts.unlink()
    journal.retry()  # too early: it is tried again after a second
    kept.append(journal.pending)
    now[0] = 1.5
    journal.retry()
    kept.append(journal.pending)
    assert kept == [True, True, False]
    assert run.wait_exit().code == 3


def _has_told(run: Run) -> bool:
    return bool(run.events("phase") or run.events("launched"))


def _is_removed(folder: Path) -> bool:
    """Remove a folder as far as it goes: whoever was opening a file in it when it was renamed makes that file there."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def test_nobody_waits_for_a_run_whose_folder_was_deleted(make_run: MakeRun) -> None:
    waiting = make_run("print('never')", queue=QueueRule(None, [{"run": make_run("pass").dir.run, "when": "ok"}]))
    living = make_run("import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)")
    waiting.start()
    living.start()
    supervisors = []
    for run, phase in ((waiting, "queued"), (living, "running")):
        found = run.wait_phase(phase).supervisor
        assert found is not None
        supervisors.append(ProcessIdentity(*found))
        wait_for(partial(_has_told, run), "the last word before it only looks")
        gone = run.dir.path.rename(run.home / f"gone-{phase}")  # in one step: who looks there now finds nothing
        wait_for(partial(_is_removed, gone), "the last of its files")
    wait_for(lambda: not alive(supervisors[0]), "the supervisor of a deleted run that waited")
    assert alive(supervisors[1])
    (living.home / "go").touch()
    wait_for(lambda: not alive(supervisors[1]), "the supervisor of a deleted run that ran")
    assert not waiting.dir.path.exists()
    assert not living.dir.path.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="nothing wakes the loop elsewhere: it looks five times a second")
def test_a_loop_that_rests_is_woken_by_requests_and_by_the_end(make_run: MakeRun) -> None:
    run, waiting = make_run("import time\nprint('up', flush=True)\ntime.sleep(600)"), make_run("pass", queue=ONE)
    decide(waiting, "mps", paused=True)
    for one in (run, waiting):
        one.start(WRAPPED, "--quiet-tick", "600")
    run.wait_output("up")
    waiting.wait_waiting_for("group")
    time.sleep(0.7)  # it looks around some times, and rests from then on
    for action in ("pause", "continue"):
        assert run.wait_ack(run.ask(action)).ok
    trainer = run.status.trainer
    assert trainer is not None
    os.kill(trainer.pid, signal.SIGKILL)
    assert run.wait_exit().signal == signal.SIGKILL
    assert waiting.wait_ack(waiting.ask("stop")).ok
    for one in (run, waiting):
        one.wait_unsupervised()
