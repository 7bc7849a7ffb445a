"""``psutil``, or the part of it that is used here, from ``/proc`` or ``ps``: another machine may not have it."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ...wire.liveness import descendants, output_of, system_process_table

_PROC = Path("/proc")
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
STATUS_ZOMBIE = "zombie"


class Error(Exception):
    """A process cannot be read."""


class NoSuchProcess(Error):
    """The process has ended."""


class AccessDenied(Error):
    """The process is another user's."""


class _Times(dict[str, float]):
    def _asdict(self) -> dict[str, float]:
        return dict(self)


class _ProcessTimes(NamedTuple):
    user: float
    system: float


class _ProcessMemory(NamedTuple):
    rss: int


class _Memory(NamedTuple):
    total: int
    available: int


class _Swap(NamedTuple):
    total: int
    used: int


def pids() -> list[int]:
    """Return the ids of all processes that can be seen."""
    if _PROC.is_dir():
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208
    return list(system_process_table().snapshot())


def cpu_count() -> int | None:
    """Return the number of logical cores."""
    return os.cpu_count()


def cpu_times() -> _Times:
    """Return the seconds of all cores since the machine was booted, by what they were used for."""
    ticks = (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]
    hertz = os.sysconf("SC_CLK_TCK")
    return _Times({name: int(count) / hertz for name, count in zip(_COLUMNS, ticks, strict=False)})


def virtual_memory() -> _Memory:
    """Return the bytes of memory, and those available without swapping."""
    if _PROC.is_dir():
        known = _kilobytes(_PROC / "meminfo")
        return _Memory(known["MemTotal"] * 1024, known["MemAvailable"] * 1024)
    pages = dict(re.findall(r"^Pages (\w+):\s+(\d+)", output_of("vm_stat"), re.MULTILINE))
    page = os.sysconf("SC_PAGE_SIZE")
    free = sum(int(pages.get(kind, 0)) for kind in ("free", "inactive"))
    return _Memory(os.sysconf("SC_PHYS_PAGES") * page, free * page)


def swap_memory() -> _Swap:
    """Return the bytes of swap, and those in use."""
    known = _kilobytes(_PROC / "meminfo")
    return _Swap(known["SwapTotal"] * 1024, (known["SwapTotal"] - known["SwapFree"]) * 1024)


def _kilobytes(path: Path) -> dict[str, int]:
    return {name: int(count) for name, count in re.findall(r"^(\w+):\s+(\d+) kB", path.read_text(), re.MULTILINE)}


class Process:
    """One process, like psutil's class of this name; without ``/proc`` only its parent and status are known."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        found = system_process_table().find(pid)
        if found is None:
            raise NoSuchProcess(pid)
        self._found = found

    def __hash__(self) -> int:
        return hash(self._found.identity)

    def oneshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def ppid(self) -> int:
        return self._found.parent

    def status(self) -> str:
        return STATUS_ZOMBIE if not self._found.alive else self._found.state

    def _fields(self) -> list[str]:
        try:
            return (_PROC / str(self.pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except FileNotFoundError as error:
            raise (NoSuchProcess if _PROC.is_dir() else AccessDenied)(self.pid) from error
        except OSError as error:
            raise NoSuchProcess(self.pid) from error

    def cpu_times(self) -> _ProcessTimes:
        hertz, fields = os.sysconf("SC_CLK_TCK"), self._fields()
        return _ProcessTimes(int(fields[11]) / hertz, int(fields[12]) / hertz)

    def memory_info(self) -> _ProcessMemory:
        return _ProcessMemory(int(self._fields()[21]) * os.sysconf("SC_PAGE_SIZE"))

    def children(self, *, recursive: bool) -> list[Process]:
        below = descendants(system_process_table().snapshot(), [self.pid])
        found = []
        for one in below:
            if recursive or one.parent == self.pid:
                try:
                    found.append(Process(one.pid))
                except NoSuchProcess:
                    continue
        return found

    def kill(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except OSError as error:
            raise NoSuchProcess(self.pid) from error


def _psutil() -> Any:
    try:
        return import_module("psutil")
    except ImportError:
        return sys.modules[__name__]


psutil: Any = _psutil()
