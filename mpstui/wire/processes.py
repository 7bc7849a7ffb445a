"""Who is running, told from who was: process identity is pid *and* start time, within one boot of the machine.

psutil is not used here: the supervisor stays small, and psutil's public creation time moves with the clock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol


class ProcessIdentity(NamedTuple):
    """A process that cannot be confused with a later one of the same pid (within one boot)."""

    pid: int
    start: int
    """Linux: clock ticks since boot (``/proc/PID/stat`` field 22). macOS: Unix seconds (``ps -o lstart``)."""


class Process(NamedTuple):
    """One row of the process table."""

    pid: int
    parent: int
    group: int
    session: int
    start: int
    state: str
    """First letter of the kernel's state: R, S, D or U (uninterruptible), T (stopped), Z (zombie)."""

    @property
    def identity(self) -> ProcessIdentity:
        """The part that names this process and no other."""
        return ProcessIdentity(self.pid, self.start)

    @property
    def alive(self) -> bool:
        """A zombie holds nothing and runs nothing."""
        return self.state not in {"Z", "X"}


class ProcessTable(Protocol):
    """Where processes are looked up; tests hand in their own."""

    def snapshot(self) -> Mapping[int, Process]:
        """Every process that can be seen now, by pid."""
        ...

    def find(self, pid: int) -> Process | None:
        """One process, or None."""
        ...


class LinuxProcessTable:
    """Reads ``/proc``."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root

    def snapshot(self) -> dict[int, Process]:
        """Every process that can be seen now, by pid."""
        found = (self.find(int(entry.name)) for entry in os.scandir(self._root) if entry.name.isdigit())
        return {process.pid: process for process in found if process}

    def find(self, pid: int) -> Process | None:
        """One process, or None when it is gone or never was."""
        try:
            text = Path(f"{self._root}/{pid}/stat").read_bytes().decode("utf-8", "replace")
        except OSError:
            return None
        return parse_proc_stat(text)


class PsProcessTable:
    """Asks ``ps``, for systems without ``/proc``; the parser is tested, the call needs a real Mac."""

    def snapshot(self) -> dict[int, Process]:
        """Every process that can be seen now, by pid."""
        return {process.pid: process for process in parse_ps(self._ps("-A"))}

    def find(self, pid: int) -> Process | None:
        """One process, or None when it is gone or never was."""
        return next(iter(parse_ps(self._ps("-p", str(pid)))), None)

    def _ps(self, *selection: str) -> str:
        command = ["ps", *selection, "-o", "pid=,ppid=,pgid=,sess=,stat=,lstart="]
        environment = {**os.environ, "LC_ALL": "C"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=5, env=environment, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout


def system_process_table() -> ProcessTable:
    """The table of the machine this runs on."""
    return LinuxProcessTable() if sys.platform.startswith("linux") else PsProcessTable()


def parse_proc_stat(text: str) -> Process | None:
    """Read one ``/proc/PID/stat``; the command name may hold spaces and parentheses (proc(5))."""
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    pid = head.partition(" ")[0]
    if len(fields) < 20 or not pid.isdigit():
        return None
    return Process(
        pid=int(pid),
        state=fields[0],
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start=int(fields[19]),
    )


def parse_ps(text: str) -> list[Process]:
    """Read ``ps -o pid=,ppid=,pgid=,sess=,stat=,lstart=``; lstart is ``Sat Nov 21 11:47:00 2026`` in the C locale.

    macOS prints ``sess`` as a kernel address or 0; the process group stands in for it there.
    """
    processes = []
    for line in text.splitlines():
        fields = line.split(None, 5)
        if len(fields) < 6 or not (fields[0].isdigit() and fields[1].isdigit() and fields[2].isdigit()):
            continue
        try:
            start = int(time.mktime(time.strptime(fields[5].strip(), "%a %b %d %H:%M:%S %Y")))
        except ValueError:
            continue
        pid, parent, group = int(fields[0]), int(fields[1]), int(fields[2])
        session = int(fields[3]) if fields[3].isdigit() and fields[3] != "0" else group
        processes.append(Process(pid, parent, group, session, start, fields[4][:1]))
    return processes


def is_same(table: ProcessTable, identity: ProcessIdentity) -> bool:
    """Whether exactly that process is alive; a recycled pid is somebody else."""
    found = table.find(identity.pid)
    return found is not None and found.start == identity.start and found.alive


def descendants(snapshot: Mapping[int, Process], roots: Iterable[int]) -> list[Process]:
    """Children, children's children and so on of ``roots``, parents first, without the roots."""
    children: dict[int, list[Process]] = {}
    for process in snapshot.values():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    seen = set(roots)
    queue = list(seen)
    while queue:
        for child in children.get(queue.pop(0), ()):
            if child.pid not in seen:
                seen.add(child.pid)
                found.append(child)
                queue.append(child.pid)
    return found


def boot_id() -> str:
    """A text that changes with every boot; empty where the system tells none (then nothing is concluded from it)."""
    if sys.platform == "darwin":
        return _boot_session_uuid()
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _boot_session_uuid() -> str:
    try:
        done = subprocess.run(
            ["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
