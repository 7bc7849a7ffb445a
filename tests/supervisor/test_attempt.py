"""What the moves of the stop sequence become: signals, with a table and a signaller that only take notes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from mpstui.supervisor.attempt import Attempt, Ending
from mpstui.supervisor.family import Family, linux_heirs
from mpstui.supervisor.machine import Clock, Machine
from mpstui.supervisor.stop_sequence import StopStep
from mpstui.wire import liveness, storage
from mpstui.wire.liveness import Process, ProcessIdentity
from mpstui.wire.records import StopRule
from mpstui.wire.rundir import RunDir

from .kit import wait_begun

LEADER, WORKER, RANK = ProcessIdentity(100, 7), ProcessIdentity(101, 7), ProcessIdentity(102, 7)


class World:
    """Processes, time and the signals that were sent."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.rows = {
            100: Process(100, 1, 100, 100, 7, "S"),
            101: Process(101, 100, 100, 100, 7, "S"),
            102: Process(102, 100, 102, 102, 7, "S"),
        }
        self.sent: list[tuple[str, int]] = []
        clock = Clock(wall=lambda: self.now, monotonic=lambda: self.now)
        self.machine = Machine(clock, self, self, "boot")
        self.attempt = Attempt(RunDir(folder), 1, Family(LEADER), self.machine)

    def snapshot(self) -> Mapping[int, Process]:
        return self.rows

    def find(self, pid: int) -> Process | None:
        return self.rows.get(pid)

    def send(self, target: ProcessIdentity, number: int) -> bool:
        self.sent.append((str(target.pid), number))
        return True

    def send_group(self, group: int, proof: Iterable[ProcessIdentity], number: int) -> bool:
        proved = any(self.rows.get(member.pid) for member in proof)
        self.sent.append((f"group {group}", number) if proved else ("refused", number))
        return proved

    def climb(self, seconds: float) -> StopStep | None:
        self.now += seconds
        self.sent.clear()
        return self.attempt.advance_stop(lambda: False)


def test_a_stop_asks_the_group_once_and_kills_everybody_when_the_grace_is_over(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.attempt.stop(StopRule(grace_seconds=10.0), force=False)
    asked = [("group 100", signal.SIGTERM), *((name, signal.SIGCONT) for name in ("group 100", "100", "101", "102"))]
    assert world.sent == asked
    world.attempt.stop(StopRule(grace_seconds=10.0), force=False)
    assert world.sent == asked
    assert world.climb(9.0) is None
    assert world.sent == []
    assert world.climb(2.0) is StopStep.KILLING
    assert world.sent == [("group 100", 9), ("100", 9), ("101", 9), ("102", 9)]
    world.rows.clear()
    assert world.climb(1.2) is StopStep.GONE


def test_who_reports_is_asked_and_ends_its_own_workers(tmp_path: Path) -> None:
    """A loader's worker that dies of the signal takes the step with it at whose end the training would have saved."""
    world = World(tmp_path)
    world.rows[100] = Process(100, 1, 100, 100, 7, "S")  # a shell, say
    world.rows[103] = Process(103, 101, 100, 100, 7, "S")  # a worker of 101, in the same group
    world.rows[104] = Process(104, 101, 100, 100, 7, "S")  # a rank that 101 has started, which reports itself
    beats = world.attempt.run.attempt(1)
    beats.path.mkdir(parents=True)
    for rank, pid in ((0, 101), (1, 104), (2, 999)):
        storage.write_json(beats.heartbeat(rank), {"schema": 1, "time": 1.0, "seq": 1, "pid": pid, "rank": rank})
    world.attempt.stop(StopRule(grace_seconds=10.0), force=False)
    assert [name for name, number in world.sent if number == signal.SIGTERM] == ["100", "101", "104"]
    assert world.climb(1.0) is None
    assert world.sent == []
    del world.rows[101]
    world.rows[103] = world.rows[103]._replace(parent=1)
    assert world.climb(1.0) is None
    assert world.sent == [("103", signal.SIGTERM)], "nobody is left to end it"
    assert world.climb(1.0) is None
    assert world.sent == []


def test_a_paused_tree_is_asked_and_continued(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.attempt.pause()
    assert {number for _, number in world.sent} == {signal.SIGSTOP}
    world.sent.clear()
    world.attempt.stop(StopRule(), force=False)
    assert [number for _, number in world.sent] == [signal.SIGTERM] + [signal.SIGCONT] * 4
    assert not world.attempt.paused


def test_no_group_is_signalled_once_the_trainer_was_reaped(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.attempt.refresh()
    world.attempt.ending = Ending(code=1)
    del world.rows[100]
    world.attempt.stop(StopRule(), force=True)
    assert world.sent == [("101", 9), ("102", 9)]


def test_a_stop_that_was_sent_by_a_supervisor_before_us_is_not_sent_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.attempt.stop(StopRule(grace_seconds=10.0), force=False, asked_seconds_ago=4.0)
    assert {number for _, number in world.sent} == {signal.SIGCONT}
    assert world.climb(5.0) is None
    assert world.climb(1.5) is StopStep.KILLING


def test_the_tree_is_looked_at_often_at_first(tmp_path: Path) -> None:
    world = World(tmp_path)
    looked = []
    for _ in range(400):
        world.now += 0.1
        if world.attempt.refresh_when_due():
            looked.append(round(world.now, 1))
    assert looked[:3] == [0.5, 1.5, 3.5]
    assert looked[-1] - looked[-2] >= 9.9


def test_who_holds_the_lock_is_an_heir_and_who_looks_at_it_is_not(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    held = liveness.acquire(lock, inheritable=True)
    assert held is not None
    heir = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[held])
    reads = "import sys; file = open(sys.argv[1], 'rb'); print(flush=True); input()"
    reader = subprocess.Popen(
        [sys.executable, "-c", reads, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=True
    )
    assert reader.stdout is not None
    reader.stdout.readline()
    found = linux_heirs(lock, b"MPSTUI_RUN_DIR=" + os.fsencode(tmp_path))
    for process in (heir, reader):
        process.communicate(b"\n")
    liveness.release(held)
    if sys.platform.startswith("linux"):
        assert found == {heir.pid}


def test_a_run_launched_from_inside_is_not_its_heir(tmp_path: Path) -> None:
    mark = f"MPSTUI_RUN_DIR={tmp_path}"
    environment = {**os.environ, "MPSTUI_RUN_DIR": str(tmp_path)}
    command = [sys.executable, "-c", "input()"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    nested = subprocess.Popen([*command, "mpstui/supervisor/__main__.py"], stdin=subprocess.PIPE, env=environment)
    wait_begun(child, nested)
    found = linux_heirs(tmp_path / "run.lock", mark.encode())
    child.communicate(b"\n")
    nested.communicate(b"\n")
    if sys.platform.startswith("linux"):
        assert found == {child.pid}
