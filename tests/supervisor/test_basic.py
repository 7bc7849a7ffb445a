"""Start, output, exit record, stop, kill, restart, adopt: with real processes."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.supervisor.memory import oom_kills
from mpstui.wire import liveness
from mpstui.wire.checkpoints import mark
from mpstui.wire.liveness import ProcessIdentity
from mpstui.wire.records import StopRule, Variant
from tests.tensor_files import safetensors

from .kit import Run, alive, python, wait_for

MakeRun = Callable[..., Run]
SLEEPER = "import time; print('up', flush=True)\nwhile True: time.sleep(0.05)"
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile True: time.sleep(1)"

C_LIBRARY_SIGNALS = 1 << 31 | 1 << 32
"""Signals 32 and 33 belong to the C library: nobody may set them, and some parents hand them down ignored."""


def test_a_run_ends_with_its_output_and_exit_code_on_record(make_run: MakeRun) -> None:
    run = make_run("import os; print('hello', os.environ['MPSTUI_ATTEMPT']); raise SystemExit(3)")
    assert run.start() == 0
    record = run.wait_exit()
    assert (record.code, record.signal, record.requested_by, record.unknown) == (3, None, None, False)
    assert run.output() == "hello 1\n"
    assert record.started is not None
    assert record.ended >= record.started
    assert run.wait_phase("ended").trainer is not None
    run.wait_unsupervised()
    assert not liveness.is_held(run.dir.run_lock)
    assert [event["event"] for event in run.events()] == ["launched", "crash"]


def test_the_trainer_leads_its_own_session_with_default_signals(make_run: MakeRun) -> None:
    code = (
        "import os, signal as s, sys; print(os.getsid(0) == os.getpid() == os.getpgrp(), os.getppid() > 0,"
        "open('/proc/self/status').read().split('SigIgn:')[1].split()[0], sys.stdin.read() == '',"
        "os.environ['PYTHONUNBUFFERED'], os.environ['PYTHONFAULTHANDLER'])"
    )
    # Python itself ignores SIGPIPE and SIGXFSZ: what it found is seen from a program that is not Python.
    run = make_run(argv=["/bin/sh", "-c", "grep SigIgn /proc/self/status"])
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run.start()
    finally:
        signal.signal(signal.SIGHUP, old)
    run.wait_exit()
    ignored = int(run.output().split()[1], 16)
    assert ignored & ~C_LIBRARY_SIGNALS == 0
    other = make_run(code)
    other.start()
    other.wait_exit()
    assert other.output().split()[:2] == ["True", "True"]
    assert other.output().split()[3:] == ["True", "1", "1"]


def test_a_program_that_is_not_there_is_a_spawn_error_with_its_name(make_run: MakeRun) -> None:
    run = make_run(argv=["/no/such/program"])
    run.start()
    record = run.wait_exit()
    assert record.spawn_error == "No such file or directory: /no/such/program"
    assert (record.code, record.signal) == (None, None)


def test_stop_asks_and_is_answered_when_nothing_is_left(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    assert run.wait_phase("running").trainer is not None
    ack = run.wait_ack(run.ask("stop", by="ada@mac:7"))
    record = run.wait_exit()
    assert ack.ok
    assert ack.by == "supervisor"
    assert (record.signal, record.action, record.requested_by) == (signal.SIGTERM, "stop", "ada@mac:7")
    assert run.status.phase == "ended"
    assert "sender" not in record.evidence


_WITH_WORKER = """
import json, os, signal, time
asked = []
worker = os.fork()
while worker == 0:
    time.sleep(0.1)
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
beat = os.path.join(os.environ["MPSTUI_RUN_DIR"], "attempts", "1", "heartbeat.json")
with open(beat, "w") as file:
    json.dump({"schema": 1, "time": time.time(), "seq": 1, "pid": os.getpid()}, file)
print("up")
while not asked:
    time.sleep(0.01)
for _ in range(50):
    time.sleep(0.01)
    if os.waitpid(worker, os.WNOHANG) != (0, 0):
        raise SystemExit("a worker was killed")
print("saved")
"""


def test_a_training_that_saves_when_asked_has_its_workers_until_then(make_run: MakeRun) -> None:
    run = make_run(_WITH_WORKER)
    run.start()
    run.wait_output("up")
    ack = run.wait_ack(run.ask("stop"))
    record = run.wait_exit()
    assert (ack.ok, record.code, record.action) == (True, 0, "stop")
    assert run.output().splitlines() == ["up", "saved"]


def test_a_signal_that_somebody_else_sent_is_said_to_be_one(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    trainer = run.wait_phase("running").trainer
    assert trainer is not None
    os.kill(trainer.pid, signal.SIGKILL)
    record = run.wait_exit()
    assert (record.signal, record.action, record.requested_by) == (signal.SIGKILL, None, None)
    assert record.evidence["sender"] == "SIGKILL was not sent by mpstui"
    if oom_kills() is not None:  # this system counts what it kills
        assert len({"memory", "no_memory_kill"} & set(record.evidence)) == 1


def test_a_stubborn_trainer_is_killed_after_the_grace(make_run: MakeRun) -> None:
    run = make_run(STUBBORN, stop=StopRule(grace_seconds=0.5))
    run.start()
    run.wait_output("up")
    run.wait_ack(run.ask("stop"))
    record = run.wait_exit()
    assert (record.signal, record.action) == (signal.SIGKILL, "stop")


def test_force_climbs_at_once_and_a_second_press_starts_nothing_new(make_run: MakeRun) -> None:
    run = make_run(STUBBORN, stop=StopRule(grace_seconds=60.0))
    run.start()
    run.wait_output("up")
    first = run.ask("stop")
    run.wait_phase("stopping")
    second = run.ask("stop")
    forced = run.ask("stop", force=True)
    assert all(run.wait_ack(item).ok for item in (first, second, forced))
    assert run.wait_exit().signal == signal.SIGKILL


def test_kill_does_not_ask(make_run: MakeRun) -> None:
    run = make_run(STUBBORN)
    run.start()
    run.wait_output("up")
    run.wait_ack(run.ask("kill"))
    record = run.wait_exit()
    assert (record.signal, record.action) == (signal.SIGKILL, "kill")


def test_pause_and_continue(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    assert run.wait_ack(run.ask("pause")).ok
    trainer = run.status.trainer
    assert trainer is not None
    wait_for(lambda: _state(trainer) == "T")
    assert run.status.paused
    assert run.wait_ack(run.ask("continue")).ok
    wait_for(lambda: _state(trainer) != "T")
    run.wait_ack(run.ask("pause"))
    run.wait_ack(run.ask("stop"))
    assert run.wait_exit().signal == signal.SIGTERM


def test_restart_takes_the_newest_checkpoint_to_another_device(make_run: MakeRun) -> None:
    code = "import sys, time; print(sys.argv[1:], flush=True)\nwhile True: time.sleep(1)"
    run = make_run(code)
    run.start()
    run.wait_output("[]")
    path = run.checkpoint("epoch-2.pt")
    run.checkpoint("epoch-3.pt", b"PK\x03\x04 torn")
    ack = run.wait_ack(run.ask("restart", device="cpu"))
    assert ack.ok
    assert ack.text == f"attempt 2 started on cpu, from {path}"
    run.wait_output(str(["--device", "cpu", "--resume", str(path)]), attempt=2)
    record = run.wait_exit(1)
    assert (record.action, record.signal) == ("restart", signal.SIGTERM)
    assert run.status.attempt == 2
    assert len([event for event in run.events() if "attempt 2 started" in event["text"]]) == 1
    late = run.wait_ack(run.ask("restart", attempt=1))
    assert not late.ok
    run.wait_ack(run.ask("kill", attempt=2))


@pytest.mark.parametrize("finite", [True, False])
def test_restart_passes_over_checkpoints_that_hold_nan_and_says_so(make_run: MakeRun, finite: bool) -> None:
    run = make_run("import sys, time; print(sys.argv[1:], flush=True)\nwhile True: time.sleep(1)")
    run.respec(launch=run.spec.launch._replace(checkpoints="checkpoints/*.safetensors"))
    run.start()
    run.wait_output("[]")
    now = time.time()
    files = {
        1: safetensors(run.dir.checkpoints / "epoch-1.safetensors", [1.0, 2.0] if finite else [math.nan, math.nan]),
        2: safetensors(run.dir.checkpoints / "epoch-2.safetensors", [math.nan, math.nan]),
        3: safetensors(run.dir.checkpoints / "epoch-3.safetensors", [math.nan, 1.0]),
    }
    for age, path in files.items():
        os.utime(path, (now - 100 + age, now - 100 + age))
    ack = run.wait_ack(run.ask("restart", device="cpu"))
    if finite:
        told = f"from {files[1]} (the newer epoch-3.safetensors and 1 other hold NaN)"
        arguments = ["--device", "cpu", "--resume", str(files[1])]
    else:
        told = "from step 0: no checkpoint is finite (epoch-3.safetensors and 2 others hold NaN)"
        arguments = ["--device", "cpu"]
    assert ack.text == f"attempt 2 started on cpu, {told}"
    run.wait_output(str(arguments), attempt=2)
    (event,) = [event for event in run.events() if event["event"] == "restart"]
    assert event["not_finite"] == [str(files[place]) for place in ((3, 2) if finite else (3, 2, 1))]
    run.wait_ack(run.ask("kill", attempt=2))


@pytest.mark.parametrize(("values", "note"), [([1.0, 2.0], ""), ([math.nan, math.nan], " (it holds NaN)")])
def test_a_restart_from_a_checkpoint_that_was_named_says_if_that_holds_nan(
    make_run: MakeRun, values: list[float], note: str
) -> None:
    run = make_run("import sys, time; print(sys.argv[1:], flush=True)\nwhile True: time.sleep(1)")
    run.start()
    run.wait_output("[]")
    path = safetensors(run.dir.path / "chosen.safetensors", values)
    ack = run.wait_ack(run.ask("restart", source=str(path)))
    assert ack.text == f"attempt 2 started, from {path}{note}"
    run.wait_ack(run.ask("kill", attempt=2))


def test_restart_leaves_the_newer_checkpoint_of_another_run_and_names_it(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("import sys, time; print(sys.argv[1:], flush=True)\nwhile True: time.sleep(1)")
    run.respec(launch=run.spec.launch._replace(checkpoints="shared/*.pt", cwd=str(tmp_path)))
    run.start()
    run.wait_output("[]")
    mine, theirs = tmp_path / "shared" / "step-1.pt", tmp_path / "shared" / "step-2.pt"
    mine.parent.mkdir()
    mine.write_bytes(b"weights")
    theirs.write_bytes(mark("20261121-114700-other").encode())
    os.utime(theirs, (time.time() + 1, time.time() + 1))
    ack = run.wait_ack(run.ask("restart", device="cpu"))
    assert ack.text.startswith(f"attempt 2 started on cpu, from {mine} ({theirs} is of run 20261121-114700-other; ")
    run.wait_ack(run.ask("kill", attempt=2))


def test_an_ended_run_is_restarted_by_whoever_asks(make_run: MakeRun) -> None:
    run = make_run("print('done')")
    run.start()
    run.wait_exit()
    run.wait_unsupervised()
    request = run.ask("restart")
    assert run.start() == 0
    assert run.wait_ack(request).ok
    assert run.wait_exit(2).code == 0


def test_an_ended_run_answers_and_leaves(make_run: MakeRun) -> None:
    run = make_run("print('done')")
    run.start()
    run.wait_exit()
    run.wait_unsupervised()
    before = run.dir.status.read_bytes()
    request = run.ask("clear_cache")
    assert run.start() == 0
    ack = run.wait_ack(request)
    assert (ack.ok, ack.text) == (False, "this run has ended")
    run.wait_unsupervised()
    assert run.dir.status.read_bytes() == before


def test_a_second_supervisor_is_turned_away(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    assert run.start() == 0
    run.wait_output("up")
    assert run.start() == 100
    run.wait_ack(run.ask("kill"))


def test_a_trainer_survives_its_supervisor_and_is_adopted(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    trainer = run.wait_phase("running").trainer
    run.kill_supervisor()
    assert trainer is not None
    assert alive(ProcessIdentity(*trainer))
    assert liveness.is_held(run.dir.run_lock)
    assert run.start() == 0
    status = run.wait_phase("running")
    assert status.adopted
    assert status.trainer == trainer
    assert run.wait_ack(run.ask("stop", by="bob@mac:1")).ok
    record = run.wait_exit()
    assert (record.unknown, record.code, record.signal) == (True, None, None)
    assert (record.action, record.requested_by) == ("stop", "bob@mac:1")


def test_an_adopted_end_without_a_code_keeps_the_last_heartbeat_as_evidence(make_run: MakeRun) -> None:
    run = make_run("import time, os\nwhile not os.path.exists('go'): time.sleep(0.02)")
    run.start()
    run.wait_phase("running")
    run.kill_supervisor()
    run.start()
    run.wait_phase("running")
    run.beat(phase="done", step=7)
    (run.home / "go").touch()
    record = run.wait_exit()
    assert record.unknown
    assert record.evidence["heartbeat"] == "the last heartbeat says phase done, step 7"


def test_a_hang_up_or_interrupt_of_the_supervisor_is_nothing_and_sigterm_is_a_stop(make_run: MakeRun) -> None:
    run = make_run(argv=python(SLEEPER))
    run.start()
    run.wait_output("up")
    supervisor = run.wait_phase("running").supervisor
    assert supervisor is not None
    os.kill(supervisor[0], signal.SIGHUP)
    os.kill(supervisor[0], signal.SIGINT)
    assert run.wait_ack(run.ask("pause")).ok
    os.kill(supervisor[0], signal.SIGTERM)
    record = run.wait_exit()
    assert (record.signal, record.action, record.requested_by) == (15, "stop", "SIGTERM to the supervisor")


def _state(process: ProcessIdentity) -> str:
    from mpstui.wire.liveness import system_process_table

    found = system_process_table().find(process.pid)
    return found.state if found else "gone"


def test_a_variable_that_must_not_be_seen_is_not(make_run: MakeRun) -> None:
    run = make_run("import os; print(sorted({'KEPT', 'GONE'} & set(os.environ)))")
    variant = Variant(run.spec.launch.variants["auto"].argv, unset=["GONE"])
    run.respec(launch=run.spec.launch._replace(variants={"auto": variant}))
    run.start(env={"KEPT": "1", "GONE": "1"})
    run.wait_exit()
    assert run.output() == "['KEPT']\n"
