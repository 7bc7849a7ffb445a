"""Waiting for one's turn: the pure rules, and real runs that wait for each other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.core.launching.actions import Actions, SupervisorRecovery
from mpstui.core.model.home import Home
from mpstui.supervisor import queue as waiting_line
from mpstui.supervisor.machine import this_machine
from mpstui.supervisor.queue import Outcome, QueueSlot, Verdict, joined, judge, left, may_claim
from mpstui.wire import liveness, queues, storage
from mpstui.wire.liveness import boot_id, system_process_table
from mpstui.wire.queues import Queue
from mpstui.wire.records import LaunchTemplate, QueueRule, Status, Variant
from mpstui.wire.rundir import RunDir

from .kit import Run, decide, python, wait_for

MakeRun = Callable[..., Run]
WAITS = "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('{}'): time.sleep(0.02)"
ONE = QueueRule(group="mps")


@pytest.mark.parametrize(
    ("when", "outcome", "verdict"),
    [
        ("ok", Outcome.OK, Verdict.GO),
        ("ok", Outcome.FAILED, Verdict.NEVER),
        ("fail", Outcome.FAILED, Verdict.GO),
        ("fail", Outcome.OK, Verdict.NEVER),
        ("any", Outcome.OK, Verdict.GO),
        ("any", Outcome.FAILED, Verdict.GO),
        ("any", Outcome.PENDING, Verdict.WAIT),
        ("ok", Outcome.LOST, Verdict.NEVER),
        ("fail", Outcome.LOST, Verdict.NEVER),
        ("any", Outcome.LOST, Verdict.GO),
        ("ok", Outcome.MISSING, Verdict.NEVER),
        ("any", Outcome.MISSING, Verdict.NEVER),
    ],
)
def test_one_rule(when: str, outcome: Outcome, verdict: Verdict) -> None:
    assert judge(when, outcome) is verdict


def test_a_run_that_ended_without_a_record_is_lost_and_neither_ok_nor_failed(make_run: MakeRun) -> None:
    run = make_run("pass")
    storage.write_json(run.dir.status, Status(run.dir.run, "running", 1, 0.0, boot_id="the boot before"))
    storage.make_private_folder(run.dir.attempt(1).path)
    run.dir.attempt(1).output.write_text("step 1\n")
    assert waiting_line.outcome(run.dir, system_process_table(), boot_id()) is Outcome.LOST


@pytest.mark.parametrize(
    ("outcomes", "go", "never", "message"),
    [
        ([], True, False, ""),
        ([Outcome.OK, Outcome.OK], True, False, ""),
        ([Outcome.OK, Outcome.PENDING], False, False, "waits for run 1"),
        ([Outcome.PENDING, Outcome.FAILED], False, True, "run 1 did not finish, and this one"),
    ],
)
def test_all_rules_must_say_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcomes: list[Outcome], go: bool, never: bool, message: str
) -> None:
    monkeypatch.setattr("mpstui.supervisor.queue.outcome", lambda run, *_: outcomes[int(run.run)])
    rule = QueueRule(after=[{"run": str(number)} for number in range(len(outcomes))])
    slot = QueueSlot(RunDir(tmp_path / "runs" / "me"), rule, this_machine())
    found = slot.ask(dependencies_matter=True, status=Status("me", "queued", 1, 0.0))
    assert (found.go, found.never) == (go, never)
    assert found.message.startswith(message)


def test_only_contenders_before_us_count() -> None:
    order = ["a", "b", "c"]
    assert may_claim("a", order, {"b", "c"}.__contains__, 1)
    assert not may_claim("b", order, {"a"}.__contains__, 1)
    assert may_claim("b", order, {"a"}.__contains__, 2)
    assert may_claim("c", order, set[str]().__contains__, 1)
    assert not may_claim("c", order, set[str]().__contains__, 0)


def test_joining_twice_keeps_the_place() -> None:
    queue = joined(joined(Queue("g"), "a"), "b")
    assert joined(queue, "a").order == ["a", "b"]
    assert left(queue, "a").order == ["b"]


def test_the_devices_are_those_of_the_newest_run_also_where_it_waits_already() -> None:
    queue = joined(joined(Queue("g", devices=["0"]), "a", ["0", "1"]), "b")
    assert queue.devices == ["0", "1"]
    assert joined(queue, "b", ["2"]).devices == ["2"]
    assert joined(queue, "a", ["2"]).devices == ["0", "1"]  # else two that wait would write in turn, for ever


def test_who_meets_another_editor_goes_on_waiting_for_what_it_waited_for(make_run: MakeRun) -> None:
    first, second = make_run(WAITS.format("go"), queue=ONE), make_run("print('up')", queue=ONE)
    first.start()
    first.wait_output("up")
    second.start()
    wait_for(lambda: second.status.waiting_for == "slot", "the second to wait for a slot")
    files = queues.files_of(first.dir, "mps")
    held = wait_for(lambda: liveness.acquire(files.lock), "the group to be free")
    time.sleep(2.2)  # two looks
    assert (second.status.waiting_for, second.status.message) == ("slot", "waits for a slot of queue group mps")
    liveness.release(held)
    (first.home / "go").touch()
    assert second.wait_exit().code == 0


def test_an_edit_is_refused_while_another_one_holds_the_group(make_run: MakeRun) -> None:
    files = queues.files_of(make_run("pass").dir, "My Group")
    queues.edit(files, lambda queue: queue._replace(slots=3))
    assert files.state.name == "my-group.json"
    assert queues.read(files).slots == 3
    held = liveness.acquire(files.lock)
    assert held is not None
    with pytest.raises(queues.QueueBusy):
        queues.edit(files, lambda queue: queue)
    liveness.release(held)


def test_a_stop_right_after_a_restart_that_waits_says_what_became_of_both(make_run: MakeRun) -> None:
    run = make_run("print('up')", queue=ONE)
    run.start()
    run.wait_exit()
    run.wait_unsupervised()
    decide(run, "mps", paused=True)
    restart = run.ask("restart")
    run.start()
    run.wait_phase("queued")
    stop = run.wait_ack(run.ask("stop", by="bob@here:2"))
    assert (stop.ok, stop.text) == (True, "cancelled: attempt 2 will not start")
    assert run.wait_ack(restart).text == "not started: bob@here:2 asked to stop it"
    run.wait_unsupervised()
    assert (run.status.phase, run.status.attempt) == ("ended", 1)


def test_one_slot_runs_one_after_the_other_and_the_dead_free_theirs(make_run: MakeRun) -> None:
    first = make_run(WAITS.format("never"), queue=ONE)
    second = make_run(WAITS.format("two"), queue=ONE)
    third = make_run("print('up')", queue=ONE)
    for run in (first, second, third):
        run.start()
        run.wait_phase("running", "queued")
    first.wait_output("up")
    wait_for(lambda: second.status.waiting_for == "slot", "the second to wait for a slot")
    files = queues.files_of(first.dir, "mps")
    first.wait_phase("running")
    first.kill_supervisor()
    time.sleep(1.2)
    assert second.status.phase == "queued"  # the trainer keeps the slot without its supervisor
    trainer = first.status.trainer
    assert trainer is not None
    first.start()
    first.wait_ack(first.ask("kill"))
    second.wait_output("up")
    assert queues.read(files).order == [third.dir.run]
    (second.home / "two").touch()
    assert third.wait_exit().code == 0
    assert queues.read(files).order == []


def test_a_paused_group_passes_nothing_on_and_a_failed_dependency_is_final(make_run: MakeRun) -> None:
    broken = make_run("raise SystemExit(1)")
    waiting = make_run("print('up')", queue=QueueRule("mps", [{"run": broken.dir.run, "when": "ok"}]))
    decide(waiting, "mps", paused=True)
    broken.start()
    broken.wait_exit()
    broken.wait_unsupervised()
    waiting.start()
    wait_for(lambda: waiting.status.waiting_for == "group", "the run to find the group paused")
    time.sleep(1.2)  # one more look
    assert waiting.exit() is None
    decide(waiting, "mps", paused=False)
    record = waiting.wait_exit()
    assert record.cause == "dependency_failed"
    assert broken.dir.run in record.evidence["dependency"]


def test_a_stage_gets_the_checkpoint_of_the_one_before(make_run: MakeRun) -> None:
    stage1 = make_run(WAITS.format("go"))
    stage2 = make_run(queue=QueueRule(None, [{"run": stage1.dir.run, "when": "ok"}]))
    argv = [*python("import sys; print(sys.argv[1])"), "{after.checkpoint}"]
    stage2.respec(launch=LaunchTemplate("auto", {"auto": Variant(argv)}, str(stage2.home)))
    stage2.start()
    assert stage2.wait_phase("queued").waiting_for in (None, "runs")
    stage1.start()
    stage1.wait_output("up")
    path = stage1.checkpoint("last.pt")
    (stage1.home / "go").touch()
    assert stage2.wait_exit().code == 0
    assert stage2.output() == f"{path}\n"


def test_a_stage_without_one_before_it_gets_an_empty_checkpoint(make_run: MakeRun) -> None:
    alone = make_run("pass")
    argv = [*python("import sys; print(repr(sys.argv[1]))"), "{after.checkpoint}"]
    alone.respec(launch=LaunchTemplate("auto", {"auto": Variant(argv)}, str(alone.home)))
    alone.start()
    assert alone.wait_exit().code == 0
    assert alone.output() == "''\n"


def test_a_queued_run_survives_its_supervisor_and_can_be_taken_back(make_run: MakeRun) -> None:
    waiting = make_run("print('up')", queue=QueueRule(None, [{"run": make_run("pass").dir.run, "when": "ok"}]))
    waiting.start()
    waiting.wait_phase("queued")
    waiting.kill_supervisor()
    assert waiting.start() == 0
    waiting.wait_phase("queued")
    assert waiting.wait_ack(waiting.ask("stop", by="ada@mac:1")).ok
    record = waiting.wait_exit()
    assert (record.action, record.requested_by, record.code) == ("stop", "ada@mac:1", None)
    assert waiting.output() == ""


def test_a_broken_stage_is_mended_in_place_and_the_next_one_asked_again(make_run: MakeRun) -> None:
    broken = make_run("import os; raise SystemExit(int(os.environ['MPSTUI_ATTEMPT']) == 1)")
    waiting = make_run("print('up')", queue=QueueRule(None, [{"run": broken.dir.run, "when": "ok"}]))
    broken.start()
    broken.wait_exit()
    broken.wait_unsupervised()
    waiting.start()
    assert waiting.wait_exit().cause == "dependency_failed"
    waiting.wait_unsupervised()
    broken.ask("restart", source="scratch")
    broken.start()
    assert broken.wait_exit(2).code == 0
    broken.wait_unsupervised()
    request = waiting.ask("restart", source="scratch")
    waiting.start()
    assert waiting.wait_ack(request).ok
    assert waiting.wait_exit(2).code == 0
    assert waiting.output(2) == "up\n"


def test_a_run_in_a_group_goes_through_the_line_again_when_it_is_restarted(make_run: MakeRun) -> None:
    first, second = make_run("print('one')", queue=ONE), make_run(WAITS.format("two"), queue=ONE)
    first.start()
    first.wait_exit()
    first.wait_unsupervised()
    second.start()
    second.wait_output("up")
    first.ask("restart", source="scratch")
    first.start()
    assert first.wait_phase("queued").waiting_for in (None, "slot")
    (second.home / "two").touch()
    assert first.wait_exit(2).code == 0


def test_a_reboot_keeps_the_order_of_the_line(make_run: MakeRun, tmp_path: Path) -> None:
    runs = [make_run(f"open('starts', 'a').write('{number}')", queue=ONE) for number in range(4)]
    line = [runs[number] for number in (2, 0, 3, 1)]
    decide(runs[0], "mps", order=[run.dir.run for run in line], paused=True)
    for run in runs:
        run.start()
    for run in runs:
        run.wait_waiting_for("group")
        run.kill_supervisor()
        storage.write_json(run.dir.status, run.status._replace(waiting_for="slot"))  # as before the group was paused
    decide(runs[0], "mps", paused=False)
    home = Home(tmp_path / "home", tmp_path / "home" / "config")
    SupervisorRecovery(home, Actions(os.environ).supervise, Actions(os.environ).supervising_many).respawn_missing()
    for run in line:
        run.wait_exit()
    assert (tmp_path / "home" / "starts").read_text() == "2031"
