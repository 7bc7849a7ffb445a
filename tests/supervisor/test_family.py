"""Whom signals reach, with a process table that is a dictionary."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import mpstui.supervisor
from mpstui.supervisor.family import HELPER, Family, SystemSignaller, grow, infer_leader, linux_supervises, orphans
from mpstui.wire.liveness import Process, ProcessIdentity, system_process_table

from .kit import Run, alive, identity, wait_begun, wait_for


class Table(dict[int, Process]):
    """A process table to order."""

    def snapshot(self) -> Mapping[int, Process]:
        return self

    def find(self, pid: int) -> Process | None:
        return self.get(pid)

    def add(
        self, pid: int, parent: int = 1, session: int = 0, group: int = 0, start: int = 7, state: str = "S"
    ) -> None:
        self[pid] = Process(pid, parent, group or session or pid, session or pid, start, state)


LEADER = ProcessIdentity(100, 7)
SUPERVISOR = str(Path(mpstui.supervisor.__file__).with_name("__main__.py"))


def test_children_of_children_and_session_mates_belong() -> None:
    table = Table()
    table.add(100)
    table.add(101, parent=100, session=100)
    table.add(102, parent=101)
    table.add(103, parent=1, session=100)
    table.add(200)
    assert [pid for pid, _ in grow(Family(LEADER), table).others] == [101, 102, 103]


def test_members_are_remembered_when_their_parents_are_gone() -> None:
    table = Table()
    table.add(100)
    table.add(102, parent=100)
    family = grow(Family(LEADER), table)
    del table[100]
    table[102] = Process(102, 1, 102, 102, 7, "S")
    table.add(105, parent=102)
    assert [pid for pid, _ in grow(family, table).others] == [102, 105]


def test_a_supervisor_that_a_member_starts_is_a_stranger_and_what_it_starts_too() -> None:
    table = Table()
    for pid in (100, 101, 102, 103, 104):  # trainer, `mpstui run`, its child, the supervisor, the trainer of that run
        table.add(pid, parent=pid - 1)
    table.add(105, parent=101)
    family = Family(LEADER, (ProcessIdentity(102, 7),))
    assert [pid for pid, _ in grow(family, table, supervises={102, 103}.__contains__).others] == [101, 105]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_supervisor_is_known_by_its_command() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", SUPERVISOR], stdin=subprocess.PIPE) as child:
        wait_for(lambda: linux_supervises(child.pid))
        child.communicate(b"\n")
    assert not linux_supervises(os.getpid())
    assert not linux_supervises(child.pid)


def test_a_recycled_pid_is_nobody_of_ours_nor_are_its_children_and_session() -> None:
    table = Table()
    table.add(100, start=9)
    table.add(101, parent=100, session=100)
    table.add(102, start=9)
    assert grow(Family(LEADER, (ProcessIdentity(102, 7),)), table).others == ()


def test_the_dead_init_and_ourselves_never_belong() -> None:
    table = Table()
    table.add(100)
    table.add(101, parent=100, state="Z")
    table.add(os.getpid(), parent=100)
    table.add(1, parent=0)
    assert grow(Family(LEADER), table, heirs=[1, os.getpid()]).others == ()


def test_a_leader_is_inferred_only_when_there_is_one_candidate() -> None:
    table = Table()
    table.add(100)
    table.add(101, parent=100)
    others = (ProcessIdentity(100, 7), ProcessIdentity(101, 7))
    assert infer_leader(Family(None, others), table) == Family(LEADER, (ProcessIdentity(101, 7),))
    table.add(101, parent=1)
    assert infer_leader(Family(None, others), table).leader is None


@pytest.fixture
def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)


def test_a_signal_reaches_the_process_it_is_meant_for_and_no_later_one(sleeper: subprocess.Popen[bytes]) -> None:
    signaller = SystemSignaller(system_process_table())
    me = identity(sleeper.pid)
    stranger = ProcessIdentity(me.pid, me.start - 1)
    assert not signaller.send(stranger, signal.SIGKILL)
    assert not signaller.send_group(me.pid, [stranger], signal.SIGKILL)
    assert not signaller.send_group(me.pid, [], signal.SIGKILL)
    assert alive(me)
    assert signaller.send_group(me.pid, [me], signal.SIGKILL)
    wait_for(lambda: not alive(me))
    assert signaller.send_group(me.pid, [me], signal.SIGKILL)  # a zombie still holds its group's number
    sleeper.wait()
    assert not signaller.send_group(me.pid, [me], signal.SIGKILL)


def test_init_everybody_and_ourselves_are_out_of_bounds() -> None:
    signaller = SystemSignaller(system_process_table())
    for pid in (-1, 0, 1, os.getpid()):
        assert not signaller.send(ProcessIdentity(pid, 0), 0)
    for group in (-1, 0, 1, os.getpgrp()):
        assert not signaller.send_group(group, [identity(os.getpid())], 0)


DAEMON = (
    "import os, time\n"
    "if os.fork() == 0:\n"
    " os.setsid()\n"
    " if os.fork() == 0:\n"
    "  open('daemon', 'w').write(str(os.getpid())); os.closerange(0, 64)\n"
    "  os.execve('/bin/sleep', ['sleep', '60'], {})\n"
    " os._exit(0)\n"
    "os.wait(); print('up', flush=True); time.sleep(60)"
)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has subreapers")
def test_a_daemon_without_a_trace_is_found_and_collected(make_run: Callable[..., Run]) -> None:
    run = make_run(DAEMON)
    run.start()
    run.wait_output("up")
    told = run.home / "daemon"
    daemon = identity(int(wait_for(lambda: told.read_text() if told.exists() else None, "the daemon")))
    assert run.wait_ack(run.ask("kill")).ok
    assert not alive(daemon)
    run.wait_unsupervised()
    assert system_process_table().find(daemon.pid) is None, "nobody collected it"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has subreapers")
def test_orphans_are_no_helpers_nor_what_these_started_nor_of_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    helper = subprocess.Popen(["sleep", "60"])
    started = subprocess.Popen(["sleep", "60"], env={HELPER: "1"})
    foreign = subprocess.Popen(["sleep", "60"], env={"MPSTUI_RUN_DIR": "/another"})
    orphan = subprocess.Popen(["sleep", "60"], env={})
    try:
        wait_begun(started, foreign)
        monkeypatch.setattr("mpstui.supervisor.family.helpers", {helper.pid})
        rows = system_process_table()
        snapshot = {one.pid: rows.find(one.pid) for one in (helper, started, foreign, orphan)}
        mark = b"MPSTUI_RUN_DIR=/ours"
        assert orphans({pid: row for pid, row in snapshot.items() if row}, None, mark) == {orphan.pid}
        assert orphans({pid: row for pid, row in snapshot.items() if row}, orphan.pid, mark) == set()
    finally:
        for one in (helper, started, foreign, orphan):
            one.kill()
            one.wait()
