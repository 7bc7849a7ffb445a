"""Parsers of what the machine says: memory, kills for memory, holes in files. The calls on macOS need a real Mac."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from mpstui.supervisor import disk_space, machine, memory
from mpstui.supervisor.disk_space import Hole, plan_hole
from mpstui.supervisor.machine import Clock
from mpstui.supervisor.memory import MachineMemory, MemoryWatch, judge_release

GIB = 1 << 30
VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10000.
Pages active:                            400000.
Pages inactive:                           20000.
Pages speculative:                         3000.
Pages throttled:                              0.
Pages wired down:                        100000.
Pages purgeable:                            500.
"Translation faults":                 123456789.
"""


def test_meminfo_and_vm_stat() -> None:
    assert memory.parse_meminfo("MemTotal: 9 kB\nMemAvailable:    2048 kB\n") == MachineMemory(2 << 20)
    assert memory.parse_meminfo("nonsense") == MachineMemory()
    assert memory.parse_vm_stat(VM_STAT) == MachineMemory(33500 * 16384, 100000 * 16384)
    assert memory.parse_vm_stat("vm_stat: failed") == MachineMemory()


def test_oom_kills_are_counted() -> None:
    assert memory.parse_oom_kills("pgfault 1\noom_kill 3\n") == 3
    assert memory.parse_oom_kills("pgfault 1\n") is None


def test_the_next_attempt_waits_for_memory_but_not_for_ever() -> None:
    before = MachineMemory(100 * GIB, 10 * GIB)
    half = MachineMemory(50 * GIB)
    assert judge_release(before, None, MachineMemory(90 * GIB), 0.0).ready
    assert not judge_release(before, None, half, 0.0).ready
    assert not judge_release(before, MachineMemory(40 * GIB), half, 29.0).ready
    assert judge_release(before, MachineMemory(int(49.5 * GIB)), half, 2.0).ready
    late = judge_release(before, MachineMemory(40 * GIB), half, 30.0)
    assert late.ready
    assert "50.0 GiB" in late.warning
    assert not late.leaked
    assert judge_release(before, None, MachineMemory(50 * GIB, 40 * GIB), 30.0).leaked
    assert judge_release(MachineMemory(), None, MachineMemory(), 0.0).ready


def test_the_watch_looks_once_a_second_and_counts_kills_of_its_own_time() -> None:
    now, free, kills, looks = [0.0], [100 * GIB], [5], [0]

    def read() -> MachineMemory:
        looks[0] += 1
        return MachineMemory(free[0])

    watch = MemoryWatch(Clock(monotonic=lambda: now[0]), read, lambda: kills[0])
    assert watch.poll().ready
    watch.measure()
    assert watch.new_kills() == 0
    free[0], kills[0], looks[0] = 50 * GIB, 6, 0
    watch.wait_anew()
    seen = []
    for _ in range(10):
        now[0] += 0.2
        free[0] += 2 * GIB
        seen.append(watch.poll().ready)
    assert not any(seen)
    assert looks[0] == 2
    for _ in range(2):
        now[0] += 1.0
        seen.append(watch.poll().ready)
    assert seen[-2:] == [False, True]
    assert watch.new_kills() == 1


def jetsam(*processes: dict[str, object]) -> str:
    body = {"largestProcess": "python3.11", "processes": list(processes)}
    return json.dumps({"bug_type": "298"}) + "\n" + json.dumps(body, indent=2)


def test_a_jetsam_report_names_its_victims() -> None:
    text = jetsam({"pid": 7, "name": "python3.11", "reason": "vm-pageshortage"}, {"pid": 8, "name": "Finder"})
    assert machine.parse_jetsam(text, 7) == (
        "killed by macOS for memory (vm-pageshortage); largest process: python3.11"
    )
    assert machine.parse_jetsam(text, 8) is None
    assert machine.parse_jetsam(text, 9) is None
    assert machine.parse_jetsam("not a report", 7) is None


def test_the_kernel_log_is_searched_for_the_pid_and_no_part_of_it() -> None:
    lines = ["memorystatus: killing largest compressed process python3.11 [4321] 43350 MB", "memorystatus: idle"]
    assert machine.parse_memorystatus(lines, 4321) == lines[0]
    assert machine.parse_memorystatus(lines, 432) is None


def test_caffeinate_follows_the_trainer_and_lets_the_display_sleep() -> None:
    command = machine.caffeinate_command(42)
    assert command[-2:] == ["-w", "42"]
    assert "-d" not in command


@pytest.mark.macos
@pytest.mark.skipif(not machine.ON_MACOS, reason="needs a real Mac")
def test_the_mac_tells_its_memory() -> None:
    found = memory.read_memory()
    assert found.available
    assert found.wired


def test_a_hole_leaves_the_head_and_the_newest_part() -> None:
    assert plan_hole(100 << 20, 50 << 20, 64 << 20, 4096) is None
    hole = plan_hole(100 << 20, 100 << 20, 64 << 20, 4096)
    assert hole is not None
    assert hole.start == disk_space.HEAD_BYTES
    assert (100 << 20) - hole.end + hole.start <= 48 << 20
    assert hole.end % 4096 == 0
    assert plan_hole(100, 4096, 0, 4096) is None
    assert plan_hole(10 << 20, 10 << 20, 4096, 4096) == Hole(4096, (10 << 20) - 4096)


def test_the_oldest_part_is_given_back_and_offsets_stay(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"first line\n" + b"x" * (4 << 20) + b"last line\n")
    size = path.stat().st_size
    try:
        hole = disk_space.trim(path, 1 << 20)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        pytest.skip("this file system knows no holes")
    assert hole is not None
    data = path.read_bytes()
    assert len(data) == size
    assert data.startswith(b"first line")
    assert data.endswith(b"last line\n")
    assert set(data[hole.start : hole.end]) == {0}
    assert path.stat().st_blocks * 512 < 1 << 20
    assert disk_space.trim(path, 1 << 20) is None


def test_a_file_system_that_cannot_says_so_and_nothing_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    with pytest.raises(OSError, match=r".+"):
        disk_space.punch(descriptor, Hole(0, 4096))
    os.close(descriptor)
