"""What others write into a run directory must cost neither an exit code nor a request beside it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from mpstui.supervisor import loop
from mpstui.supervisor.attempt import Ending
from mpstui.supervisor.loop import Supervisor
from mpstui.supervisor.machine import Clock, Machine, this_machine
from mpstui.supervisor.state import Supervision
from mpstui.wire import rundir, storage
from mpstui.wire.records import QueueRule, Request

from .kit import Run, wait_for

MakeRun = Callable[..., Run]
SLEEPER = "import time; print('up', flush=True)\nwhile True: time.sleep(0.05)"
FAILS = "import time; time.sleep(0.5); raise SystemExit(3)"


def test_a_heartbeat_with_an_endless_number_costs_no_exit_code(make_run: MakeRun) -> None:
    run = make_run(FAILS)
    run.start()
    wait_for(run.dir.attempt(1).path.is_dir, "the attempt's folder")
    run.beat(step=10**400)
    assert run.wait_exit().code == 3
    assert run.wait_phase("ended").attempt == 1


@pytest.mark.parametrize("path", ["~nobody-of-this-name/beat.json", "with\0nothing.json"])
def test_a_watched_file_that_no_system_has_costs_no_exit_code(make_run: MakeRun, path: str) -> None:
    run = make_run(FAILS, watch={"heartbeat": path})
    run.start()
    assert run.wait_exit().code == 3
    assert run.wait_phase("ended").attempt == 1


def test_a_mistake_while_the_cause_is_sought_costs_the_cause_alone(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> None:
        raise ArithmeticError("of our own")

    monkeypatch.setattr("mpstui.supervisor.conclusion.find_cause", broken)
    run = make_run(FAILS)
    record = Supervision(run.dir, run.spec, None, this_machine()).conclusion(1, Ending(code=3), None, (), seen="this")
    assert (record.code, record.cause, record.evidence) == (3, None, {"seen": "this"})


def test_a_request_of_the_wrong_shape_costs_no_request_beside_it(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    assert run.status.supervisor is not None
    os.kill(run.status.supervisor[0], signal.SIGSTOP)  # so that both lie there at its next look
    wrong = {"id": "0", "action": "stop", "attempt": None, "by": "somebody", "time": 1.0, "options": "force"}
    storage.write_json(run.dir.request("0"), wrong)
    stop = run.ask("stop")
    os.kill(run.status.supervisor[0], signal.SIGCONT)
    assert run.wait_ack(stop).ok
    assert rundir.answer_to(run.dir, "0") is None


def test_a_mistake_in_one_request_costs_no_request_beside_it(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(SLEEPER)
    broken, sound = run.ask("pause"), run.ask("clear_cache")
    handled: list[Request] = []

    def handle(boss: Supervision, request: Request) -> None:
        handled.append(request)
        if request.id == broken.id:
            raise ArithmeticError("of our own")

    monkeypatch.setattr(loop, "handle", handle)
    Supervisor(run.dir, run.spec, None, Machine(Clock(), *this_machine()[1:])).tick()
    assert [request.id for request in handled] == [broken.id, sound.id]
    ack = rundir.answer_to(run.dir, broken.id)
    assert ack is not None
    assert not ack.ok
    assert "of our own" in ack.text


@pytest.mark.parametrize("action", ["pause", "continue", "clear_cache", "dump_stacks"])
def test_what_waits_for_its_turn_is_not_said_to_have_ended(make_run: MakeRun, action: str) -> None:
    first = make_run(SLEEPER)
    first.start()
    second = make_run(SLEEPER, queue=QueueRule(after=[{"run": first.dir.run, "when": "any"}]))
    second.start()
    second.wait_phase("queued")
    ack = second.wait_ack(second.ask(action))
    assert (ack.ok, ack.text) == (False, "this run has not started yet")
    assert time.time() - ack.time < 60.0


def test_a_checkpoint_whose_name_is_no_text_is_continued_from(make_run: MakeRun) -> None:
    run = make_run("import sys, time; print(ascii(sys.argv), flush=True); time.sleep(60)")
    name = os.fsdecode(b"caf\xe9.pt")
    path = run.checkpoint(name)
    run.start()
    run.wait_output("[")
    assert run.wait_ack(run.ask("restart", source=str(path))).ok
    run.wait_output(ascii(name)[1:-1], attempt=2)
    assert run.status.attempt == 2


WRONG_WORDS: tuple[dict[str, Any], ...] = (
    *({"env": {name: "x"}} for name in ("A=B", "A\0", "", "\ud800")),
    *({"env": {"A": value}} for value in ("x\0", "\ud800")),
    *({"argv": argv} for argv in ([], ["tr\0ue"], ["\ud800"])),
)


def test_a_launch_that_no_system_can_start_is_refused_and_stops_nothing(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    launches = [storage.to_json(run.spec.launch) for _ in WRONG_WORDS]
    for launch, wrong in zip(launches, WRONG_WORDS, strict=True):
        launch["variants"]["auto"].update(wrong)
    for asked in [run.ask("restart", launch=launch) for launch in launches]:
        answer = run.wait_ack(asked)
        assert not answer.ok
        assert "no system can" in answer.text
    assert (run.status.phase, run.status.attempt) == ("running", 1)
