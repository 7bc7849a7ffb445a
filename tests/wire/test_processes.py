"""Locks and process identity, with real processes and recorded tables."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mpstui.wire import liveness
from mpstui.wire.liveness import LinuxProcessTable, Process, ProcessIdentity, descendants, parse_proc_stat, parse_ps

PS = """
    1     0     1      0 Ss   Sat Nov 21 11:47:00 2026
  501     1   501 8a21c0 S    Sat Nov 21 11:48:00 2026
  502   501   501      0 R+   Sat Nov 21 11:48:01 2026
  bad line
  503   501   501      0 S    not a date
"""


def test_a_lock_is_held_as_long_as_a_descriptor_lives_somewhere(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    assert not liveness.is_held(path)
    mine = liveness.acquire(path, inheritable=True)
    assert mine is not None
    assert liveness.is_held(path)
    assert liveness.acquire(path) is None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(mine,))
    liveness.release(mine)
    assert liveness.is_held(path)
    child.communicate(b"\n")
    assert not liveness.is_held(path)


def test_asking_does_not_get_in_the_way_of_taking(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.touch()
    import fcntl

    reader = os.open(path, os.O_RDONLY)
    fcntl.flock(reader, fcntl.LOCK_SH)
    assert not liveness.is_held(path)
    os.close(reader)
    taken = liveness.acquire(path)
    assert taken is not None
    liveness.release(taken)


def test_a_command_name_may_hold_anything() -> None:
    text = "42 (a) b (c)) S 7 42 41 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1"
    assert parse_proc_stat(text) == Process(42, 7, 42, 41, 12345, "S")
    assert parse_proc_stat("") is None
    assert parse_proc_stat("nonsense") is None


def test_ps_of_a_mac_gives_the_group_for_a_session() -> None:
    found = parse_ps(PS)
    assert [(one.pid, one.parent, one.session, one.state) for one in found] == [
        (1, 0, 1, "S"),
        (501, 1, 501, "S"),
        (502, 501, 501, "R"),
    ]
    assert found[2].start - found[1].start == 1


def test_descendants_come_parents_first_and_circles_end() -> None:
    rows = [(10, 1), (11, 10), (12, 11), (13, 10), (14, 14), (20, 1)]
    table = {pid: Process(pid, parent, pid, pid, 1, "S") for pid, parent in rows}
    assert [one.pid for one in descendants(table, [10])] == [11, 13, 12]
    assert descendants(table, [14]) == []


def test_this_process_is_itself_and_nobody_else() -> None:
    table = liveness.system_process_table()
    me = table.find(os.getpid())
    assert me is not None
    assert liveness.is_same(table, me.identity)
    assert not liveness.is_same(table, ProcessIdentity(me.pid, me.start + 1))
    assert me.pid in table.snapshot()


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
def test_those_below_a_process_are_found_without_a_look_at_all_others(tmp_path: Path) -> None:
    forks = (
        "threading.Thread(target=lambda: time.sleep(60) if os.fork() else print(flush=True) or time.sleep(60)).start()"
    )
    top = subprocess.Popen([sys.executable, "-c", f"import os, threading, time\n{forks}"], stdout=subprocess.PIPE)
    assert top.stdout is not None
    top.stdout.readline()
    table = LinuxProcessTable()
    try:
        whole = table.snapshot()
        expected = {top.pid, *(one.pid for one in descendants(whole, [top.pid]))}
        assert table.below([top.pid, 1 << 22]) == {pid: table.find(pid) for pid in expected}
        assert len(expected) == 2
        mine = table.below([os.getpid()])
        assert mine is not None
        assert top.pid in mine
        assert LinuxProcessTable(tmp_path).below([1]) is None
    finally:
        for process in descendants(table.snapshot(), [top.pid]):
            os.kill(process.pid, signal.SIGKILL)
        top.kill()
        top.wait()


def test_a_process_that_is_gone_is_not_found(tmp_path: Path) -> None:
    assert LinuxProcessTable(tmp_path).find(1) is None
    (tmp_path / "7").mkdir()
    assert LinuxProcessTable(tmp_path).snapshot() == {}
