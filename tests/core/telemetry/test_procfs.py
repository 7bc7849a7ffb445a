"""Without psutil the same is told, and a far machine with a bare Python shows what others do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.core.telemetry import procfs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
BARE = """
import sys
sys.path.insert(0, sys.argv[1])
from mpstui.core.telemetry.procfs import psutil
from mpstui.core.telemetry import trees
from mpstui.core.telemetry.sources import host
from mpstui.core.telemetry.source import SourceRequest
import os
assert psutil.__name__.endswith("procfs")
assert os.getpid() in trees.ParentCache()()
facts = trees.ProcessTable().read(SourceRequest({"me": (os.getpid(),)})).processes[os.getpid()]
cpu = host.HostCpu()
cpu.read(SourceRequest())
memory = host.HostMemory().read(SourceRequest()).host
print(facts.parent, facts.rss_bytes > 1 << 20, facts.cpu_seconds > 0)
print(memory.memory_total_bytes, cpu._before["user"] > 0)
"""


def test_it_tells_what_psutil_tells() -> None:
    pid = os.getpid()
    ours, theirs = procfs.Process(pid), psutil.Process(pid)
    assert (ours.ppid(), ours.status() == procfs.STATUS_ZOMBIE) == (theirs.ppid(), False)
    assert ours.memory_info().rss == pytest.approx(theirs.memory_info().rss, rel=0.1)
    assert sum(ours.cpu_times()) == pytest.approx(sum(theirs.cpu_times()[:2]), abs=0.5)
    assert procfs.virtual_memory().total == psutil.virtual_memory().total
    assert procfs.swap_memory().total == psutil.swap_memory().total
    assert procfs.cpu_times()._asdict().keys() >= {"user", "system", "idle", "iowait"}
    assert procfs.cpu_times()["user"] == pytest.approx(psutil.cpu_times().user, rel=0.1, abs=5)
    assert set(procfs.pids()) & set(psutil.pids()) >= {1, pid}


def test_children_and_the_dead() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            (found,) = (one for one in procfs.Process(os.getpid()).children(recursive=True) if one.pid == child.pid)
            assert hash(found) == hash(procfs.Process(child.pid))
        finally:
            child.kill()
        child.wait()
        with pytest.raises(procfs.NoSuchProcess):
            procfs.Process(child.pid)
        with pytest.raises(procfs.NoSuchProcess):
            found.memory_info()


def test_a_bare_python_reads_telemetry() -> None:
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BARE, str(Path.cwd())],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert told.stdout.split() == [str(os.getpid()), "True", "True", str(psutil.virtual_memory().total), "True"], told
