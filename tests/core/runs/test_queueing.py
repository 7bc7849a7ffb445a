"""Queue groups as people see and change them: real files, and two processes that change one group at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpstui.core.launching.actions import SupervisorRecovery
from mpstui.core.model.errors import OperationError, UsageError
from mpstui.core.model.home import Home
from mpstui.core.model.queue_place import QueuePlace, ordinal
from mpstui.core.model.snapshot import State
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.queueing import find_group, list_groups, move_run, moved, set_paused, set_slots
from mpstui.core.runs.waiting import is_abandoned
from mpstui.wire import liveness, queues, rundir, storage
from mpstui.wire.liveness import boot_id
from mpstui.wire.queues import QueueFiles
from mpstui.wire.records import (
    Ack,
    ExitRecord,
    GpuRule,
    LaunchRecord,
    LaunchTemplate,
    QueueRule,
    Spec,
    Status,
    Variant,
)
from mpstui.wire.rundir import RunDir

MOVER = """\
import sys
from pathlib import Path
from mpstui.core.model.home import Home
from mpstui.core.runs.queueing import move_run, set_slots
from mpstui.wire.rundir import RunDir
home, run = Home(Path(sys.argv[1]), Path(sys.argv[1])), sys.argv[2]
for turn in range(15):
    move_run(home, RunDir(home.runs / run), "first" if turn % 2 else "last")
    if turn == 7:
        set_slots(home, "mps", int(sys.argv[3])) if sys.argv[3] != "0" else None
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, tmp_path)


def queued(home: Home, run: str, rule: QueueRule, waiting_for: str | None = "slot") -> RunDir:
    """A run that waits and whose supervisor has died, in the line if it has a group."""
    folder = RunDir(home.runs / run)
    folder.path.mkdir(parents=True)
    template = LaunchTemplate("cpu", {"cpu": Variant([sys.executable])}, str(home.state))
    storage.write_json(folder.spec, Spec(run, f"name of {run}", 1.0, template, queue=rule))
    storage.write_json(folder.status, Status(run, "queued", 1, 2.0, waiting_for=waiting_for))
    if rule.group:
        queues.edit(QueueFiles(home.queue, rule.group), lambda found: found._replace(order=[*found.order, run]))
    return folder


def order(home: Home, group: str = "mps") -> list[str]:
    return list(queues.read(QueueFiles(home.queue, group)).order)


def test_groups_tell_who_waits_and_for_what(home: Home) -> None:
    for run in "ab":
        queued(home, run, QueueRule("mps"))
    queued(home, "c", QueueRule("mps", [{"run": "a", "when": "ok"}]), "runs")
    queued(home, "d", QueueRule(None, [{"run": "b", "when": "any"}]), "runs")
    group, loose = list_groups(home)
    assert (group.name, group.slots, group.paused, group.running) == ("mps", 1, False, ())
    assert [(item.run, item.place and item.place.sentence()) for item in group.waiting] == [
        ("a", "1st in mps"),
        ("b", "2nd in mps"),
        ("c", "after name of a"),
    ]
    assert loose.name is None
    assert [item.place and item.place.sentence() for item in loose.waiting] == ["after name of b"]


def test_what_has_its_slot_runs_and_what_has_ended_is_gone(home: Home) -> None:
    running, ended = queued(home, "a", QueueRule("mps")), queued(home, "b", QueueRule("mps"))
    storage.write_json(running.status, Status("a", "running", 1, 2.0))
    storage.write_json(ended.status, Status("b", "ended", 1, 2.0))
    held = liveness.acquire(running.supervisor_lock)
    assert held is not None
    (group,) = list_groups(home)
    assert [(item.run, item.supervised) for item in group.running] == [("a", True)]
    assert group.waiting == ()
    liveness.release(held)


def test_pause_and_slots_are_kept(home: Home) -> None:
    queued(home, "a", QueueRule("mps"))
    set_paused(home, "mps", True)
    set_slots(home, "mps", 3)
    group = find_group(home, "mps")
    assert (group.paused, group.slots, order(home)) == (True, 3, ["a"])
    assert group.waiting[0].place == QueuePlace("mps", 1, True, ())
    assert set_paused(home, "mps", False).paused is False


def test_wrong_wishes_are_refused(home: Home) -> None:
    queued(home, "a", QueueRule("mps"))
    loose = queued(home, "b", QueueRule(None, [{"run": "a", "when": "ok"}]))
    with pytest.raises(UsageError, match="no queue group 'msp'") as refused:
        set_paused(home, "msp", True)
    assert "mps" in refused.value.hint
    with pytest.raises(UsageError, match="1 to"):
        set_slots(home, "mps", 0)
    with pytest.raises(UsageError, match="not 'left'"):
        move_run(home, loose, "left")
    with pytest.raises(OperationError, match="no queue group"):
        move_run(home, loose, "up")
    with pytest.raises(OperationError, match="not queued"):
        move_run(home, RunDir(home.runs / "nobody"), "up")


@pytest.mark.parametrize(
    ("direction", "after"),
    [("up", "xbacd"), ("down", "xacbd"), ("first", "xbacd"), ("last", "xacdb")],
)
def test_a_move_steps_over_what_does_not_wait(direction: str, after: str) -> None:
    assert "".join(moved("xabcd", "abcd", "b", direction)) == after


@pytest.mark.parametrize(("direction", "run"), [("up", "a"), ("first", "a"), ("down", "c"), ("last", "c")])
def test_a_move_beyond_the_end_changes_nothing(direction: str, run: str) -> None:
    assert moved("abc", "abc", run, direction) == ["a", "b", "c"]


def test_a_move_is_told_by_place(home: Home) -> None:
    first, _, last = (queued(home, run, QueueRule("mps")) for run in "abc")
    queues.edit(QueueFiles(home.queue, "mps"), lambda found: found._replace(order=["gone", *found.order]))
    found = move_run(home, last, "first")
    assert (found.group, found.place, found.count) == ("mps", 1, 3)
    assert order(home) == ["gone", "c", "a", "b"]
    assert move_run(home, first, "down").place == 3


def test_two_processes_that_change_one_group_lose_nothing(home: Home) -> None:
    for run in "abcd":
        queued(home, run, QueueRule("mps"))
    arguments = [("a", "0"), ("d", "5")]
    movers = [subprocess.Popen([sys.executable, "-c", MOVER, str(home.state), *words]) for words in arguments]
    assert [mover.wait(60) for mover in movers] == [0, 0]
    assert sorted(order(home)) == ["a", "b", "c", "d"]
    assert order(home).index("b") < order(home).index("c")
    assert find_group(home, "mps").slots == 5


def test_an_unreadable_group_is_named_and_left_alone(home: Home) -> None:
    queued(home, "a", QueueRule("mps"))
    file = QueueFiles(home.queue, "mps").state
    file.write_text("{not json")
    with pytest.raises(OperationError, match="queue group mps cannot be read"):
        list_groups(home)
    with pytest.raises(OperationError, match="queue group mps cannot be changed"):
        set_slots(home, "mps", 2)
    assert file.read_text() == "{not json"


def test_a_run_that_just_starts_has_devices_nobody_knows_yet(home: Home) -> None:
    runs = [queued(home, run, QueueRule("cuda")) for run in "ab"]
    for run, rule in zip(runs, (GpuRule(["0"]), None), strict=True):
        spec = storage.read(Spec, run.spec)
        assert spec is not None
        storage.write_json(run.spec, spec._replace(gpus=rule))
        storage.write_json(run.status, Status(run.run, "starting", 1, 2.0))
    held = [liveness.acquire(run.supervisor_lock) for run in runs]
    assert [(member.run, member.gpus) for member in find_group(home, "cuda").running] == [("b", ()), ("a", None)]
    runs[0].attempt(1).path.mkdir(parents=True)
    launched = LaunchRecord(1, 2.0, ["python"], "/", "cuda", gpus=["0"])
    storage.write_json(runs[0].attempt(1).launch, launched)
    assert [member.gpus for member in find_group(home, "cuda").running] == [(), ("0",)]
    for lock in held:
        assert lock is not None
        liveness.release(lock)


def test_only_a_waiting_run_without_supervisor_is_revived_and_once(home: Home) -> None:
    dead, alive, over = (queued(home, run, QueueRule("mps")) for run in "abc")
    over.attempt(1).path.mkdir(parents=True)
    storage.write_json(over.attempt(1).exit, ExitRecord(1, 2.0, code=0))
    held = liveness.acquire(alive.supervisor_lock)
    assert held is not None
    started: list[str] = []
    recovery = SupervisorRecovery(home, lambda run: started.append(run.run))
    assert recovery.respawn_missing() == ["a"] == started
    assert recovery.respawn_missing() == []
    liveness.release(held)
    assert recovery.respawn_missing() == ["b"]
    tick = dead.status.stat().st_mtime_ns
    storage.write_json(dead.status, Status("a", "queued", 1, 3.0))
    os.utime(dead.status, ns=(tick, tick))  # the clocks of some file systems tick a few times a second
    assert recovery.respawn_missing() == ["a"]


def test_a_restart_that_is_owed_is_revived_within_the_same_boot(home: Home) -> None:
    now, then, refused = (queued(home, run, QueueRule()) for run in "abc")
    for run in (now, then, refused):
        run.attempt(1).path.mkdir(parents=True)
        storage.write_json(run.attempt(1).exit, ExitRecord(1, 2.0, code=1, cause="mps_oom"))
    crashed = Status("run", "backing_off", 1, 2.0, next_start=9.0, boot_id=boot_id())
    storage.write_json(now.status, crashed)
    storage.write_json(then.status, crashed._replace(boot_id="another"))
    storage.write_json(refused.status, crashed._replace(phase="ended", next_start=None))
    assert [run.run for run in (now, then, refused) if is_abandoned(run)] == ["a"]
    storage.write_json(now.status, crashed._replace(phase="queued", waiting_for="slot"))
    assert is_abandoned(now)


def test_a_run_that_waits_again_is_revived_while_its_restart_is_wished_for(home: Home) -> None:
    run = queued(home, "a", QueueRule("mps"))
    run.attempt(1).path.mkdir(parents=True)
    storage.write_json(run.attempt(1).exit, ExitRecord(1, 2.0, code=1))
    assert not is_abandoned(run)
    request = rundir.submit(run, rundir.new_request("restart", 1, 3.0))
    assert is_abandoned(run)
    rundir.answer(run, Ack(request.id, False, "supervisor", 4.0, "taken back"))
    assert not is_abandoned(run)


def test_one_run_that_cannot_be_revived_does_not_stop_the_others(home: Home) -> None:
    for run in "ab":
        queued(home, run, QueueRule("mps"))
    started: list[str] = []

    def supervise(run: RunDir) -> None:
        if run.run == "b":
            raise PermissionError(13, "Permission denied")
        started.append(run.run)

    with pytest.raises(OperationError, match="no supervisor for waiting run b: Permission denied"):
        SupervisorRecovery(home, supervise).respawn_missing()
    assert started == ["a"]


def test_the_monitor_tells_the_place_of_a_queued_run(home: Home) -> None:
    held = [liveness.acquire(queued(home, run, QueueRule("mps")).supervisor_lock) for run in "ab"]
    monitor = Monitor(home)
    newest, oldest = monitor.refresh()
    assert (newest.state, newest.queue, oldest.queue) == (
        State.QUEUED,
        QueuePlace("mps", 2, behind=("name of a",)),
        QueuePlace("mps", 1),
    )
    move_run(home, RunDir(home.runs / "b"), "first")
    assert monitor.refresh()[0].queue == QueuePlace("mps", 1)
    for descriptor in held:
        liveness.release(descriptor or 0)


def test_ordinals() -> None:
    told = [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 22, 101, 111)]
    assert told == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "101st", "111th"]
