"""The Linux sources: parsers on text of our own, file trees below a root of our own, and the running kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.telemetry.model import ProcessFacts
from mpstui.core.telemetry.source import SourceError, SourceRequest
from mpstui.core.telemetry.sources import cgroup, cpuinfo, host, pressure, smaps
from mpstui.core.telemetry.trees import ParentCache, ProcessTable, descendants
from tests.core.telemetry import recordings

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc of the running kernel")
MEBIBYTE = 2**20
HELD_MEBIBYTES = 64
HOLDER = f"import sys; held = bytearray(b'x' * ({HELD_MEBIBYTES} << 20)); print('ready', flush=True); sys.stdin.read()"


def write(root: Path, **files: str) -> Path:
    """Files below ``root``; ``__`` in a name stands for a slash and ``_dot_`` for a dot."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """A child that holds 64 MiB and is ready."""
    child = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    yield child
    child.kill()
    child.communicate()


def test_pressure_levels() -> None:
    assert pressure.parse(recordings.PSI_CALM) == ("normal", 1.5)
    assert pressure.parse(recordings.PSI_CALM.replace("some avg10=1.50", "some avg10=12.00")) == ("warn", 12.0)
    assert pressure.parse(recordings.PSI_CALM.replace("full avg10=0.50", "full avg10=33.00")) == ("critical", 1.5)


@pytest.mark.parametrize(
    "text", ["", "some", "some avg10=", "full avg10=1.0 avg60=0", "avg10=3.0", "some avg10=1", "some avg10=12,5 x"]
)
def test_pressure_without_the_some_line_is_unknown(text: str) -> None:
    assert pressure.parse(text) == (None, None)


def test_pressure_source_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="CONFIG_PSI"):
        pressure.MemoryPressure(tmp_path).read(SourceRequest())
    with pytest.raises(SourceError, match="no line that begins"):
        pressure.MemoryPressure(write(tmp_path, proc__pressure__memory="")).read(SourceRequest())


def test_cgroup_v2_takes_the_tightest_ancestor_and_leaves_out_the_cache(tmp_path: Path) -> None:
    top = "sys__fs__cgroup__"
    files = {
        "proc__self__cgroup": "0::/jobs/train\n",
        f"{top}jobs__memory_dot_max": "4000000\n",
        f"{top}jobs__memory_dot_current": "3000000\n",
        f"{top}jobs__memory_dot_stat": "anon 1\ninactive_file 500000\n",
        f"{top}jobs__train__memory_dot_max": "max\n",
        f"{top}jobs__train__cpu_dot_max": "150000 100000\n",
    }
    facts = cgroup.ControlGroup(write(tmp_path, **files)).read(SourceRequest())
    assert facts.host.cgroup_limit_bytes == 4_000_000
    assert facts.host.cgroup_used_bytes == 2_500_000
    assert facts.host.cgroup_cpu_limit == 1.5


def test_cgroup_v1_in_a_container_reads_the_top_of_the_mount(tmp_path: Path) -> None:
    top = "sys__fs__cgroup__memory__memory_dot_"
    files = {
        "proc__self__cgroup": "5:cpu,cpuacct:/\n4:memory:/docker/0123abcd\n",
        f"{top}limit_in_bytes": "8000000\n",
        f"{top}usage_in_bytes": "6000000\n",
        f"{top}stat": "inactive_file 1\ntotal_inactive_file 1000000\n",
    }
    facts = cgroup.ControlGroup(write(tmp_path, **files)).read(SourceRequest())
    assert (facts.host.cgroup_limit_bytes, facts.host.cgroup_used_bytes) == (8_000_000, 5_000_000)


def test_cgroup_without_limit_says_so(tmp_path: Path) -> None:
    limit = {"sys__fs__cgroup__memory__memory_dot_limit_in_bytes": "9223372036854771712\n"}
    facts = cgroup.ControlGroup(write(tmp_path, proc__self__cgroup="4:memory:/\n", **limit)).read(SourceRequest())
    assert facts.host.cgroup_limit_bytes is None
    assert "no memory limit" in facts.reasons["cgroup_limit_bytes"]


def test_cgroup_v1_cpu_limit(tmp_path: Path) -> None:
    top = "sys__fs__cgroup__cpu__cpu_dot_cfs_"
    files = {"proc__self__cgroup": "5:cpu:/\n", f"{top}quota_us": "250000\n", f"{top}period_us": "100000\n"}
    assert cgroup.ControlGroup(write(tmp_path, **files)).read(SourceRequest()).host.cgroup_cpu_limit == 2.5


def test_the_processor_is_named_or_the_reason_is(tmp_path: Path) -> None:
    source = cpuinfo.CpuInfo(tmp_path)
    with pytest.raises(SourceError, match="cannot be read"):
        source.read(SourceRequest())
    write(tmp_path, proc__cpuinfo="processor\t: 0\nmodel name\t: Example CPU 3000 @ 2GHz \nprocessor\t: 1\n")
    assert source.read(SourceRequest()).host.chip == "Example CPU 3000 @ 2GHz"
    write(tmp_path, proc__cpuinfo="processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t: 3800MHz\n")
    assert source.read(SourceRequest()).host.chip == "POWER9, altivec supported"
    write(tmp_path, proc__cpuinfo="processor\t: 0\nCPU Family\t: LoongArch\nModel Name\t: Example-3A\n")
    assert source.read(SourceRequest()).host.chip == "Example-3A"
    write(tmp_path, proc__cpuinfo="processor\t: 0\nBogoMIPS\t: 1\ncpu cores\t: 4\n")
    with pytest.raises(SourceError, match="names no processor"):
        source.read(SourceRequest())


def test_cgroup_path_that_leaves_the_mount_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, proc__self__cgroup="0::/../..\n", sys__memory_dot_max="1\n", sys__fs__cgroup__memory_dot_max="7\n")
    assert cgroup.ControlGroup(tmp_path).read(SourceRequest()).host.cgroup_limit_bytes == 7


@pytest.mark.parametrize("text", ["", "max", "-1", "0", "12x", "1e9", "²"])
def test_cgroup_limit_that_is_none(text: str) -> None:
    assert cgroup.parse_limit(text) is None


@pytest.mark.parametrize("text", ["", "max 100000", "100000", "0 100000", "1 0", "a b"])
def test_cpu_limit_that_is_none(text: str) -> None:
    assert cgroup.parse_cpu_max(text) is None


@given(st.text(max_size=200))
def test_linux_parsers_say_nothing_of_what_is_no_figure(text: str) -> None:
    _, share = pressure.parse(text)
    figures = (share, smaps.parse(text), smaps.parse_resident(text, 4096), cgroup.parse_limit(text))
    assert all(figure is None or figure >= 0 for figure in (*figures, cgroup.parse_cpu_max(text)))
    assert all(path.startswith("/") for path in cgroup.parse_membership(text).values())


def test_proportional_memory_counts_swap() -> None:
    assert smaps.parse(recordings.SMAPS_ROLLUP) == (90_000 + 2_000) * 1024
    assert smaps.parse(recordings.SMAPS_ROLLUP.replace("Pss:", "Qss:", 1)) is None


def test_proportional_memory_spares_the_huge_and_skips_the_dead(tmp_path: Path) -> None:
    pages = smaps.MAX_RESIDENT_BYTES // 4096 + 1
    write(tmp_path, proc__1__statm=f"1 {pages} 0", proc__2__statm="1 30000 0", proc__3__statm="0 0 0")
    write(tmp_path, proc__2__smaps_rollup=recordings.SMAPS_ROLLUP)
    facts = smaps.ProportionalMemory(tmp_path, 4096).read(SourceRequest({"run": (1, 2, 3, 4)}))
    assert {pid: known.footprint_bytes for pid, known in facts.processes.items()} == {1: None, 2: 92_000 * 1024, 3: 0}
    assert "too large" in facts.reasons["footprint_bytes"]


@linux_only
def test_memory_agrees_with_the_kernel(holder: subprocess.Popen[str]) -> None:
    pid = holder.pid
    table = ProcessTable().read(SourceRequest({"run": (pid,)}))
    proportional = smaps.ProportionalMemory(page_bytes=os.sysconf("SC_PAGE_SIZE")).read(SourceRequest({"run": (pid,)}))
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kernel_rss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Rss:")) * 1024
    rss, footprint = table.processes[pid].rss_bytes, proportional.processes[pid].footprint_bytes
    assert rss is not None
    assert footprint is not None
    assert rss == pytest.approx(kernel_rss, abs=2 * MEBIBYTE)
    assert footprint == pytest.approx(smaps.parse(rollup), abs=2 * MEBIBYTE)
    assert HELD_MEBIBYTES * MEBIBYTE < footprint <= rss


@linux_only
def test_a_zombie_is_counted_with_no_memory() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        facts = ProcessTable().read(SourceRequest({"run": (child.pid,)}))
        assert facts.processes[child.pid].rss_bytes == 0
    finally:
        child.wait()


def test_tree_expands_through_generations_and_survives_a_cycle() -> None:
    parents = {1: 0, 0: 0, 10: 1, 11: 10, 12: 11, 20: 1, 30: 31, 31: 30}
    assert set(descendants(parents, (10,))) == {10, 11, 12}
    assert set(descendants(parents, (10, 11, 99))) == {10, 11, 12}
    assert set(descendants(parents, (30,))) == {30, 31}


def test_table_leaves_out_processes_that_ended_meanwhile() -> None:
    table = ProcessTable(lambda: {5: 1, 6: 5}, lambda pid: ProcessFacts(parent=1) if pid == 5 else None)
    assert set(table.read(SourceRequest({"run": (5,)})).processes) == {5}


def test_parents_are_asked_of_new_and_orphaned_processes_alone() -> None:
    parents = {1: 0, 5: 1, 6: 5}
    asked: list[int] = []

    def read_parent(pid: int) -> int | None:
        asked.append(pid)
        return parents.get(pid)

    cache = ParentCache(lambda: tuple(parents), read_parent)
    assert cache() == parents
    asked.clear()
    parents[7] = 6
    assert cache() == parents
    assert set(asked) == {1, 7}, "the parent of process 1 is no process that could be seen alive"
    asked.clear()
    del parents[5]
    parents[6] = 1
    assert cache() == {1: 0, 6: 1, 7: 6}
    assert 7 not in asked


def test_a_process_id_used_again_is_found_by_asking_all_now_and_then() -> None:
    parents = {1: 0, 5: 1, 6: 5}
    cache = ParentCache(lambda: tuple(parents), parents.get)
    cache()
    parents[6] = 1
    assert cache()[6] == 5
    assert [cache() for _ in range(ParentCache.FULL_EVERY)][-1][6] == 1


def test_cpu_share_ignores_guest_time_and_falling_counters() -> None:
    before = {"user": 10.0, "guest": 5.0, "idle": 100.0, "iowait": 4.0, "steal": 9.0}
    after = {"user": 13.0, "guest": 8.0, "idle": 106.0, "iowait": 5.0, "steal": 2.0}
    assert host.busy_percent(before, after) == pytest.approx(30.0)
    assert host.busy_percent(after, after) is None


def test_first_cpu_reading_is_unknown_with_its_reason() -> None:
    source = host.HostCpu(iter([{"user": 0.0, "idle": 0.0}, {"user": 1.0, "idle": 3.0}]).__next__)
    first = source.read(SourceRequest())
    assert first.host.cpu_percent is None
    assert "two readings" in first.reasons["cpu_percent"]
    assert source.read(SourceRequest()).host.cpu_percent == 25.0


def test_memory_of_this_machine_adds_up() -> None:
    facts = host.HostMemory().read(SourceRequest()).host
    assert facts.memory_total_bytes is not None
    assert facts.memory_used_bytes is not None
    assert facts.memory_available_bytes is not None
    assert facts.memory_used_bytes + facts.memory_available_bytes == facts.memory_total_bytes
