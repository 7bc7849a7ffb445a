"""What requests are answered, and what the exit record names, when accidents meet them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpstui.supervisor import launches
from mpstui.supervisor.attempt import Attempt, Child
from mpstui.supervisor.family import Family
from mpstui.supervisor.journal import MOST_AT_ONCE, Inbox
from mpstui.supervisor.loop import Supervisor, handle
from mpstui.supervisor.machine import Clock, this_machine
from mpstui.wire import rundir, storage
from mpstui.wire.records import LaunchTemplate, QueueRule, Request, Variant

from .kit import Run, decide, wait_for

MakeRun = Callable[..., Run]
WAITS = (
    "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nraise SystemExit(7)"
)


@pytest.mark.parametrize("action", ["stop", "restart"])
def test_what_ended_by_itself_before_our_signal_was_ended_by_nobody(make_run: MakeRun, action: str) -> None:
    run = make_run(WAITS)
    run.start()
    run.wait_output("up")
    supervisor = run.wait_phase("running").supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGSTOP)
    request = run.ask(action, source="scratch") if action == "restart" else run.ask(action)
    (run.home / "go").touch()
    trainer = run.status.trainer
    assert trainer is not None
    wait_for(lambda: Path(f"/proc/{trainer.pid}/stat").read_text().split()[2] == "Z", "the trainer to end")
    os.kill(supervisor.pid, signal.SIGCONT)
    assert run.wait_ack(request).ok
    record = run.wait_exit()
    assert (record.code, record.action, record.requested_by) == (7, None, None)


def test_a_pause_is_told_when_it_is_done() -> None:
    order: list[str] = []
    journal = SimpleNamespace(
        status=SimpleNamespace(attempt=1),
        event=lambda *_, **__: None,
        update=lambda **_: order.append("recorded"),
        answer=lambda *_, **__: order.append("answered"),
    )
    paused = SimpleNamespace(stop_sequence=None, pause=lambda: order.append("paused"))
    supervision: Any = SimpleNamespace(attempt=paused, trainer_lives=lambda: True, upcoming=None, journal=journal)
    handle(supervision, Request("1", "pause", 1, "ada@here:1", 0.0))
    assert order == ["paused", "recorded", "answered"]


def test_a_later_restart_takes_the_place_of_one_that_still_waits(make_run: MakeRun) -> None:
    run = make_run("print('up')", queue=QueueRule(group="mps"))
    run.start()
    run.wait_exit()
    run.wait_unsupervised()
    decide(run, "mps", paused=True)
    first = run.ask("restart", source="scratch")
    run.start()
    run.wait_phase("queued")
    run.kill_supervisor()
    storage.write_json(run.dir.status, run.status._replace(boot_id="the boot before"))
    second = run.ask("restart", source="scratch", by="bob@here:2")
    run.start()
    assert run.wait_ack(first).text == "not started: bob@here:2 asked for a restart after you"
    decide(run, "mps", paused=False)
    assert run.wait_ack(second).ok
    assert run.wait_exit(2).code == 0


def test_an_attempt_killed_before_it_became_the_program_is_not_told_of_as_started(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("print('up')")
    run.start()
    run.wait_exit()
    run.wait_unsupervised()
    request = run.ask("restart", source="scratch")
    supervisor = Supervisor(run.dir, run.spec, run.status, this_machine())
    monkeypatch.setattr(launches, "_announce", lambda *_: os.kill(os.getpid(), signal.SIGKILL))

    def ticked(found: Callable[[], object]) -> object:
        supervisor.tick()
        return found()

    wait_for(lambda: ticked(lambda: rundir.answer_to(run.dir, request.id)))
    found = run.wait_ack(request)
    assert (found.ok, found.text) == (False, "attempt 2 was killed by signal 9 as it started")
    wait_for(lambda: ticked(lambda: run.exit(2)))
    assert run.wait_exit(2).signal == 9


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can tell before it is a zombie")
def test_a_process_that_is_being_killed_has_been_killed() -> None:
    """Its files are closed, which is how its parent learns that it became the program, before it is a zombie.

    Those of a shell mostly are, and it begins many times as fast as a fork of all that tests have loaded.
    """
    for _ in range(100):
        told, open_in_child = os.pipe()
        os.set_inheritable(open_in_child, True)
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "kill -KILL $$"], {})
        os.close(open_in_child)
        os.read(told, 1)
        os.close(told)
        assert Child(pid).killed_by() == signal.SIGKILL
        os.waitpid(pid, 0)


def test_of_a_flood_the_ends_come_first_and_each_file_is_read_once(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("pass")
    flood = [run.ask("continue") for _ in range(3 * MOST_AT_ONCE)]
    restart, stop = run.ask("restart"), run.ask("stop")
    inbox = Inbox(run.dir, Clock())
    handed = inbox.poll(trainer_lives=True)
    assert (handed[0], len(handed)) == (stop, 1 + MOST_AT_ONCE)
    assert inbox.newest_end == stop
    monkeypatch.setattr(storage, "read", None)
    for _ in range(3):
        handed += inbox.poll(trainer_lives=True)
    assert handed[1:] == [*flood, restart]


def test_a_restart_is_not_carried_out_after_a_stop_that_was_asked_for_later(make_run: MakeRun) -> None:
    run = make_run("print('up')")
    run.start()
    run.wait_exit()
    run.wait_unsupervised()
    restart, stop = run.ask("restart", source="scratch"), run.ask("stop", by="bob@here:2")
    run.start()
    assert run.wait_ack(stop).ok
    assert run.wait_ack(restart).text == "not restarted: bob@here:2 asked to stop it"
    run.wait_unsupervised()
    assert run.dir.attempt_numbers() == [1]


@pytest.mark.parametrize(("when", "cause"), [("ok", "dependency_failed"), ("fail", "dependency_failed"), ("any", None)])
def test_a_lost_run_is_neither_ok_nor_failed(make_run: MakeRun, when: str, cause: str | None) -> None:
    lost = make_run("import time; print('up', flush=True); time.sleep(60)")
    waiting = make_run("print('up')", queue=QueueRule(None, [{"run": lost.dir.run, "when": when}]))
    lost.start()
    lost.wait_output("up")
    trainer = lost.wait_phase("running").trainer
    lost.kill_supervisor()
    assert trainer is not None
    os.kill(trainer.pid, signal.SIGKILL)
    waiting.start()
    record = waiting.wait_exit()
    assert record.cause == cause
    if cause:
        assert "is lost, nobody saw how it ended" in record.evidence["dependency"]


def test_what_was_asked_by_an_earlier_supervisor_was_reached_by_its_signal(make_run: MakeRun) -> None:
    run = make_run(WAITS)
    run.start()
    run.wait_output("up")
    leader = run.wait_phase("running").trainer
    attempt = Attempt(run.dir, 1, Family(leader), this_machine())
    (run.home / "go").touch()
    run.wait_exit()
    attempt.stop(run.spec.stop, force=False, asked_seconds_ago=1.0)
    assert attempt.was_reached
    later = Attempt(run.dir, 1, Family(leader), this_machine())
    later.stop(run.spec.stop, force=False)
    assert not later.was_reached


def test_a_restart_that_cannot_start_stops_nothing_first(make_run: MakeRun) -> None:
    run = make_run(WAITS)
    run.start()
    run.wait_output("up")
    here = run.wait_phase("running").trainer
    script, plain, home = run.home / "moved", run.home / "plain.py", str(run.home)
    script.write_text("#!/no/such/venv/bin/python -u\nprint()")
    script.chmod(0o700)
    plain.write_text("print()")
    for argv, cwd, said in (
        (["/no/such/program", "x"], home, "there is no program /no/such/program that could be started"),
        (["no-such-program"], home, "there is no program no-such-program that could be started"),
        ([str(plain)], home, f"there is no program {plain} that could be started"),
        ([home], home, f"there is no program {home} that could be started"),
        (["./moved"], home, f"{home}/./moved is a script for /no/such/venv/bin/python, which is not there"),
        (["true"], "/no/such/folder", "there is no folder /no/such/folder"),
    ):
        launch = LaunchTemplate(device="auto", variants={"auto": Variant(argv)}, cwd=cwd)
        answer = run.wait_ack(run.ask("restart", source="scratch", launch=storage.to_json(launch)))
        assert (answer.ok, answer.text) == (False, said)
    assert run.status.trainer == here
    folder, script = run.home / "bin", run.home / "bin" / "told"
    folder.mkdir()
    script.write_text("#! /bin/sh\nexec echo here")
    script.chmod(0o700)
    found = Variant(["told"], {"PATH": f"/no/such:bin:{os.environ['PATH']}"})
    launch = LaunchTemplate(device="auto", variants={"auto": found}, cwd=home)
    assert run.wait_ack(run.ask("restart", source="scratch", launch=storage.to_json(launch))).ok
    run.wait_output("here", 2)
