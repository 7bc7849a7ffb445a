"""Stop and kill work whatever the files say: on full disks, over damaged records, past a frozen supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.launching.actions import Actions
from mpstui.core.model.errors import OperationError
from mpstui.core.model.snapshot import State
from mpstui.wire import liveness, rundir, storage
from mpstui.wire.liveness import system_process_table
from mpstui.wire.records import Request

from .kit import CAN_MOUNT, Run, act, alive, crowded, filled, identity, small_disk, snapshot_of, wait_for

MakeRun = Callable[..., Run]
WAITS = "import time\nprint('up', flush=True)\ntime.sleep(60)"
WAITS_UNMARKED = (
    "import os, sys, time\nos.closerange(3, 64)\nif os.environ.pop('MPSTUI_RUN_DIR', ''):\n"
    " os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {})\n"
    "print('up', flush=True)\ntime.sleep(60)"
)
"""Keeps neither the run's lock nor its environment: its output alone tells whose it is."""
STUBBORN = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with any run."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MPSTUI_")}
    with subprocess.Popen(["sleep", "60"], start_new_session=True, env=environ) as process:
        yield process
        process.kill()


def up(run: Run) -> Run:
    run.start()
    run.wait_output("up")
    run.wait_phase("running")
    return run


def no_space(*_: object) -> Request:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("action", "code", "number"), [("stop", None, 15), ("kill", None, 9)])
def test_where_no_request_can_be_written_a_signal_to_the_supervisor_ends_it(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, action: str, code: int | None, number: int
) -> None:
    run = up(make_run(STUBBORN if action == "kill" else WAITS))
    monkeypatch.setattr(rundir, "submit", no_space)
    found = act(run, action)
    assert found.ok
    assert "by a signal to its supervisor: no request could be written" in found.text
    record = run.wait_exit()
    assert (record.code, record.signal, record.requested_by) == (code, number, "SIGTERM to the supervisor")
    assert record.action == action


def test_without_a_supervisor_it_says_why_and_what_to_do(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = up(make_run(WAITS))
    run.kill_supervisor()
    monkeypatch.setattr(rundir, "submit", no_space)
    with pytest.raises(OperationError, match="No space left on device") as raised:
        Actions(os.environ).send(snapshot_of(run), "kill")
    assert raised.value.hint is not None
    assert "free some space" in raised.value.hint


@pytest.mark.parametrize("supervised", [True, False])
def test_what_lives_is_ended_though_its_record_cannot_be_read(make_run: MakeRun, supervised: bool) -> None:
    run = up(make_run(WAITS))
    trainer = run.status.trainer
    assert trainer is not None
    if not supervised:
        run.kill_supervisor()
    run.dir.spec.write_text("{torn")
    assert act(run, "stop").ok
    assert run.wait_exit().action == "stop"
    assert not alive(trainer)
    run.wait_unsupervised()
    assert run.start() == 1  # nothing lives: there is nothing to act upon


def test_a_frozen_supervisor_is_told_of_and_goes_on_when_somebody_asks(make_run: MakeRun) -> None:
    run = up(make_run(WAITS))
    supervisor = run.status.supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGSTOP)
    wait_for(lambda: "sees nothing" in snapshot_of(run).reason, "the silence to be told")
    assert act(run, "stop").ok
    assert run.wait_exit().action == "stop"
    assert [event["text"] for event in run.events("note") if "was stopped by a signal" in event["text"]]


def test_a_paused_run_goes_on_without_the_supervisor_that_paused_it(make_run: MakeRun) -> None:
    run = up(make_run(WAITS))
    assert act(run, "pause").ok
    run.kill_supervisor()
    assert snapshot_of(run).state is State.UNSUPERVISED
    assert act(run, "continue", paused=True).text == "Resumed."
    trainer = run.status.trainer
    assert trainer is not None
    wait_for(lambda: (found := system_process_table().find(trainer.pid)) and found.state != "T", "it to go on")


def test_a_process_that_only_has_the_number_gets_no_signal() -> None:
    assert not liveness.send_signal(liveness.ProcessIdentity(os.getpid(), 1), signal.SIGTERM)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows a process's environment and files")
def test_what_has_the_number_and_start_time_of_a_record_but_no_mark_gets_no_signal(
    make_run: MakeRun, bystander: subprocess.Popen[bytes]
) -> None:
    run = up(make_run(WAITS))
    trainer, stranger = run.status.trainer, identity(bystander.pid)
    assert trainer is not None
    run.kill_supervisor()
    os.kill(trainer.pid, signal.SIGKILL)
    wait_for(lambda: not alive(trainer))
    true = run.status
    for forged in ({"trainer": stranger}, {"tree": [stranger]}):
        storage.write_json(run.dir.status, true._replace(**forged))
        assert snapshot_of(run).state is State.LOST
        answer = act(run, "kill")
        assert f"left alone: pid {stranger.pid}," in answer.text
        run.wait_unsupervised()
    assert act(run, "restart").ok
    assert bystander.poll() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows a process's environment and files")
def test_a_stranger_among_the_recorded_is_left_alone_while_the_trainer_is_ended(
    make_run: MakeRun, bystander: subprocess.Popen[bytes]
) -> None:
    run = up(make_run(WAITS))
    trainer, stranger = run.status.trainer, identity(bystander.pid)
    assert trainer is not None
    run.kill_supervisor()
    storage.write_json(run.dir.status, run.status._replace(trainer=stranger, tree=[stranger]))
    assert act(run, "kill").ok
    assert not alive(trainer)
    assert alive(stranger)
    assert any("left alone" in event["text"] for event in run.events("note"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows a process's environment and files")
def test_a_stranger_recorded_as_the_supervisor_gets_no_signal(
    make_run: MakeRun, bystander: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = up(make_run(WAITS))
    real = run.status.supervisor
    assert real is not None
    os.kill(real.pid, signal.SIGSTOP)
    storage.write_json(run.dir.status, run.status._replace(supervisor=identity(bystander.pid)))
    monkeypatch.setattr(rundir, "submit", no_space)
    with pytest.raises(OperationError, match="No space left"):
        Actions(os.environ).send(snapshot_of(run), "kill")
    assert bystander.poll() is None
    os.kill(real.pid, signal.SIGKILL)


def test_a_child_that_closed_everything_but_its_output_is_still_of_its_run(make_run: MakeRun) -> None:
    run = up(make_run(WAITS_UNMARKED))
    trainer = run.status.trainer
    assert trainer is not None
    run.kill_supervisor()
    assert snapshot_of(run).state is State.UNSUPERVISED
    assert act(run, "stop").ok
    assert not alive(trainer)


@pytest.mark.skipif(not CAN_MOUNT, reason="only root can mount a small file system to fill")
@pytest.mark.parametrize("full", [filled, crowded])
def test_what_lives_without_a_supervisor_is_ended_on_a_full_disk_and_told(
    tmp_path: Path, full: Callable[[Path], AbstractContextManager[None]]
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        run = up(Run(disk, WAITS))
        trainer = run.status.trainer
        assert trainer is not None
        run.kill_supervisor()
        with full(disk):
            found = act(run, "stop")
            assert found.ok
            assert not alive(trainer)
            assert (found.by, run.wait_exit().action) == ("supervisor", "stop")
            assert snapshot_of(run).state is State.STOPPED
        run.wait_unsupervised()
        assert run.status.phase == "ended", "what was kept in memory is written when there is room again"


def test_what_lives_is_ended_though_its_status_lock_and_log_are_folders_and_pipes(make_run: MakeRun) -> None:
    run = up(make_run(WAITS))
    trainer = run.status.trainer
    assert trainer is not None
    run.kill_supervisor()
    for path in (run.dir.status, run.dir.supervisor_lock, run.dir.supervisor_log):
        path.unlink()
    run.dir.status.mkdir()
    run.dir.supervisor_lock.mkdir()
    os.mkfifo(run.dir.supervisor_log)
    actions = Actions(os.environ)
    request = actions.send(replace(snapshot_of(run), attempt=0), "stop")
    assert wait_for(lambda: actions.answer(run.dir.path, request.id)).ok
    assert not alive(trainer)
    assert wait_for(run.exit).action == "stop"


@pytest.mark.parametrize("poison", ["file", "pipe", "link", "endless", "missing"])
def test_a_request_is_written_whatever_has_taken_the_place_of_its_folder(tmp_path: Path, poison: str) -> None:
    run = rundir.create_run_dir(tmp_path / "runs", "t", 1.0)
    run.requests.rmdir()
    if poison == "file":
        run.requests.write_text("x")
    elif poison == "pipe":
        os.mkfifo(run.requests)
    elif poison != "missing":
        run.requests.symlink_to("/dev/zero" if poison == "endless" else "/nonexistent")
    asked = [rundir.submit(run, rundir.new_request(action, 1, 2.0)) for action in ("stop", "pause")]
    assert list(rundir.unanswered(run)) == asked
    assert len(list(run.path.glob("requests.aside-*"))) == (poison != "missing"), "it is kept"


def test_an_end_is_found_at_once_among_any_number_of_other_requests(tmp_path: Path) -> None:
    run = rundir.create_run_dir(tmp_path / "runs", "t", 1.0)
    stop = rundir.new_request("stop", 1, 5000.0)
    for moment in (*range(400), *range(10_000, 10_400)):
        request = rundir.new_request("pause", 1, float(moment))
        storage.write_json(run.request(request.id), request, sync=False)
    rundir.submit(run, stop)
    read = list(rundir.unanswered(run, set(), 100))
    assert stop in read
    assert len(read) <= 100
