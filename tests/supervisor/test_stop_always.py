"""Stop and kill work whatever the files say: on full disks, over damaged records, past a frozen supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from mpstui.core.launching.actions import Actions
from mpstui.core.model.errors import OperationError
from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.core.runs.files import LocalMachine, WitnessReader
from mpstui.wire import liveness, rundir, storage
from mpstui.wire.liveness import boot_id, system_process_table
from mpstui.wire.records import Ack, Request

from .kit import Run, alive, identity, wait_for

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


def snapshot(run: Run) -> RunSnapshot:
    """What a command knows of the run."""
    reader = WitnessReader(run.dir, LocalMachine(system_process_table(), boot_id()))
    reader.poll()
    state, reason = reader.judge(None)
    return RunSnapshot(
        run=run.dir.run, name="t", dir=run.dir.path, state=state, reason=reason, seen=time.time(), attempt=1
    )


def answered(run: Run, request: Request, actions: Actions) -> Ack:
    return wait_for(lambda: actions.answer(run.dir.path, request.id), f"an answer: {run.log()}")


def no_space(*_: object) -> Request:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("action", "code", "number"), [("stop", None, 15), ("kill", None, 9)])
def test_where_no_request_can_be_written_a_signal_to_the_supervisor_ends_it(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, action: str, code: int | None, number: int
) -> None:
    run, actions = up(make_run(STUBBORN if action == "kill" else WAITS)), Actions(os.environ)
    monkeypatch.setattr(rundir, "submit", no_space)
    found = answered(run, actions.send(snapshot(run), action), actions)
    assert found.ok
    assert "by a signal to its supervisor: no request could be written" in found.text
    record = run.wait_exit()
    assert (record.code, record.signal, record.requested_by) == (code, number, "SIGTERM to the supervisor")


def test_without_a_supervisor_it_says_why_and_what_to_do(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = up(make_run(WAITS))
    run.kill_supervisor()
    monkeypatch.setattr(rundir, "submit", no_space)
    with pytest.raises(OperationError, match="No space left on device") as raised:
        Actions(os.environ).send(snapshot(run), "kill")
    assert raised.value.hint is not None
    assert "free some space" in raised.value.hint


@pytest.mark.parametrize("supervised", [True, False])
def test_what_lives_is_ended_though_its_record_cannot_be_read(make_run: MakeRun, supervised: bool) -> None:
    run, actions = up(make_run(WAITS)), Actions(os.environ)
    trainer = run.status.trainer
    assert trainer is not None
    if not supervised:
        run.kill_supervisor()
    run.dir.spec.write_text("{torn")
    assert answered(run, actions.send(snapshot(run), "stop"), actions).ok
    assert run.wait_exit().action == "stop"
    assert not alive(trainer)
    run.wait_unsupervised()
    assert run.start() == 1  # nothing lives: there is nothing to act upon


def test_a_frozen_supervisor_is_told_of_and_goes_on_when_somebody_asks(make_run: MakeRun) -> None:
    run, actions = up(make_run(WAITS)), Actions(os.environ)
    supervisor = run.status.supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGSTOP)
    wait_for(lambda: "sees nothing" in snapshot(run).reason, "the silence to be told")
    assert answered(run, actions.send(snapshot(run), "stop"), actions).ok
    assert run.wait_exit().action == "stop"
    assert [event["text"] for event in run.events("note") if "was stopped by a signal" in event["text"]]


def test_a_paused_run_goes_on_without_the_supervisor_that_paused_it(make_run: MakeRun) -> None:
    run, actions = up(make_run(WAITS)), Actions(os.environ)
    assert answered(run, actions.send(snapshot(run), "pause"), actions).ok
    run.kill_supervisor()
    assert snapshot(run).state is State.UNSUPERVISED
    request = actions.send(replace(snapshot(run), paused=True), "continue")
    assert answered(run, request, actions).text == "continued"
    trainer = run.status.trainer
    assert trainer is not None
    wait_for(lambda: (found := system_process_table().find(trainer.pid)) and found.state != "T", "it to go on")


def test_a_process_that_only_has_the_number_gets_no_signal() -> None:
    assert not liveness.send_signal(liveness.ProcessIdentity(os.getpid(), 1), signal.SIGTERM)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows a process's environment and files")
def test_what_has_the_number_and_start_time_of_a_record_but_no_mark_gets_no_signal(
    make_run: MakeRun, bystander: subprocess.Popen[bytes]
) -> None:
    run, actions = up(make_run(WAITS)), Actions(os.environ)
    trainer, stranger = run.status.trainer, identity(bystander.pid)
    assert trainer is not None
    run.kill_supervisor()
    os.kill(trainer.pid, signal.SIGKILL)
    wait_for(lambda: not alive(trainer))
    true = run.status
    for forged in ({"trainer": stranger}, {"tree": [stranger]}):
        storage.write_json(run.dir.status, true._replace(**forged))
        assert snapshot(run).state is State.LOST
        answer = answered(run, actions.send(snapshot(run), "kill"), actions)
        assert f"pid {stranger.pid} of its record is left alone" in answer.text
        run.wait_unsupervised()
    assert answered(run, actions.send(snapshot(run), "restart"), actions).ok
    assert bystander.poll() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows a process's environment and files")
def test_a_stranger_among_the_recorded_is_left_alone_while_the_trainer_is_ended(
    make_run: MakeRun, bystander: subprocess.Popen[bytes]
) -> None:
    run, actions = up(make_run(WAITS)), Actions(os.environ)
    trainer, stranger = run.status.trainer, identity(bystander.pid)
    assert trainer is not None
    run.kill_supervisor()
    storage.write_json(run.dir.status, run.status._replace(trainer=stranger, tree=[stranger]))
    assert answered(run, actions.send(snapshot(run), "kill"), actions).ok
    assert not alive(trainer)
    assert alive(stranger)
    assert any("is left alone" in event["text"] for event in run.events("note"))


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
        Actions(os.environ).send(snapshot(run), "kill")
    assert bystander.poll() is None
    os.kill(real.pid, signal.SIGKILL)


def test_a_child_that_closed_everything_but_its_output_is_still_of_its_run(make_run: MakeRun) -> None:
    run, actions = up(make_run(WAITS_UNMARKED)), Actions(os.environ)
    trainer = run.status.trainer
    assert trainer is not None
    run.kill_supervisor()
    assert snapshot(run).state is State.UNSUPERVISED
    assert answered(run, actions.send(snapshot(run), "stop"), actions).ok
    assert not alive(trainer)
