"""CPU, memory and swap of the machine through psutil: everything on Linux, the CPU alone on macOS."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..model import HostFacts
from ..procfs import psutil
from ..source import Facts, Host, Source, SourceRequest

CpuTimes = Mapping[str, float]
# Guest time is already part of user time, and waiting for a disk is idle time.
_COUNTED_TWICE = frozenset({"guest", "guest_nice"})
_IDLE = frozenset({"idle", "iowait"})


def busy_percent(before: CpuTimes, after: CpuTimes) -> float | None:
    """Return the percentage of all cores' time that was not idle between two readings; None if no time passed.

    A counter that falls, as happens when a core is taken offline, contributes nothing.
    """
    passed = {name: max(0.0, after[name] - before[name]) for name in after.keys() & before.keys() - _COUNTED_TWICE}
    total = sum(passed.values())
    idle = sum(seconds for name, seconds in passed.items() if name in _IDLE)
    return 100 * (total - idle) / total if total > 0 else None


def sources(host: Host) -> list[Source]:
    return [HostCpu()] if host.is_mac else [HostCpu(), HostMemory()]


class HostCpu(Source):
    """CPU use since the last reading.

    ``psutil.cpu_percent`` keeps its last reading per calling thread and would return 0.0 in each new thread.
    """

    name = "psutil cpu"
    gives = ("cpu_percent", "cpu_count")

    def __init__(self, read_times: Callable[[], CpuTimes] = lambda: psutil.cpu_times()._asdict()) -> None:
        self._read_times = read_times
        self._before: CpuTimes | None = None

    def read(self, request: SourceRequest) -> Facts:
        before, self._before = self._before, self._read_times()
        percent = None if before is None else busy_percent(before, self._before)
        reasons = {"cpu_percent": "a share of time needs two readings"} if percent is None else {}
        return Facts(host=HostFacts(cpu_percent=percent, cpu_count=psutil.cpu_count()), reasons=reasons)


class HostMemory(Source):
    """Memory on Linux; used is total minus available, so that caches that can be dropped do not count."""

    name = "psutil memory"
    gives = ("memory_total_bytes", "memory_used_bytes", "memory_available_bytes", "swap_used_bytes")

    def read(self, request: SourceRequest) -> Facts:
        memory = psutil.virtual_memory()
        host = HostFacts(
            memory_total_bytes=memory.total,
            memory_used_bytes=memory.total - memory.available,
            memory_available_bytes=memory.available,
        )
        try:
            with warnings.catch_warnings():
                # Where /proc/vmstat is missing (some containers) psutil warns, on the screen.
                warnings.simplefilter("ignore", RuntimeWarning)
                swap = psutil.swap_memory()
        except (OSError, ValueError, RuntimeError) as error:
            return Facts(host=host, reasons={"swap_used_bytes": f"the system does not report its swap: {error}"})
        return Facts(host=replace(host, swap_total_bytes=swap.total, swap_used_bytes=swap.used))
