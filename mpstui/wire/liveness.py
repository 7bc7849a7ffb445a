"""Who is alive: kernel locks that die with their holders, and processes that no recycled pid can impersonate.

A lock is held while some process has the descriptor; the kernel drops it at death and at reboot. A process is its pid
*and* its start time, within one boot of the machine. psutil is not used: the supervisor stays small, and psutil's
public creation time moves with the clock.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

PROBE_PATIENCE_SECONDS = 0.25


def acquire(path: Path, *, inheritable: bool = False) -> int | None:
    """Take the lock and return its descriptor, or None when another process holds it.

    Tries for a quarter of a second: a reader in :func:`is_held` holds a shared lock for some microseconds.

    Args:
        inheritable: let children keep the lock alive through the same open file description (``run.lock``).

    Raises:
        OSError: the file cannot be made, or the file system knows no locks.
    """
    descriptor = _take(path, fcntl.LOCK_EX)
    if descriptor is not None and inheritable:
        os.set_inheritable(descriptor, True)
    return descriptor


def release(descriptor: int) -> None:
    """Drop our hold. A child that inherited the descriptor keeps the lock."""
    os.close(descriptor)


def place_of(descriptor: int) -> Path | None:
    """Return where the file of a lock held by this process is now; None if it is deleted or cannot be found."""
    try:
        if sys.platform == "darwin":
            name = os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        else:
            name = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
        return Path(name) if os.path.samestat(os.stat(name), os.fstat(descriptor)) else None  # noqa: PTH116
    except (OSError, AttributeError):
        return None


def is_held(path: Path) -> bool:
    """True if some process holds the lock exclusively; a missing file is held by nobody.

    Probes with a shared lock, so that simultaneous readers do not see each other.
    """
    return _is_refused(path, fcntl.LOCK_SH)


def share(path: Path) -> int | None:
    """Take a shared hold and return its descriptor: any number of processes may have one (open screens).

    Returns None when the lock cannot be had within a quarter of a second.

    Raises:
        OSError: the file cannot be made, or the file system knows no locks.
    """
    return _take(path, fcntl.LOCK_SH)


def is_shared(path: Path) -> bool:
    """True if some process holds the lock, shared or exclusively; a missing file is held by nobody."""
    return _is_refused(path, fcntl.LOCK_EX)


def _is_refused(path: Path, kind: int) -> bool:
    """True if a lock of this kind cannot be had now.

    Opens the file read-only: this is how the supervisor tells observers from processes that inherited the lock.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)
    return False


def _take(path: Path, kind: int) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + PROBE_PATIENCE_SECONDS
    last = False
    try:
        while not last:
            last = time.monotonic() >= deadline  # before the try: a process that was suspended meanwhile tries again
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                return descriptor
            except BlockingIOError:
                time.sleep(0 if last else 0.01)
    except OSError as error:
        os.close(descriptor)
        raise OSError(error.errno, error.strerror, str(path)) from error
    os.close(descriptor)
    return None


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
        """What tells this process from every other."""
        return ProcessIdentity(self.pid, self.start)

    @property
    def alive(self) -> bool:
        """False for a zombie, which holds and runs nothing."""
        return self.state not in {"Z", "X"}


class ProcessTable(Protocol):
    """Where processes are looked up; tests hand in their own."""

    def snapshot(self) -> Mapping[int, Process]:
        """Every process that can be seen now, by pid."""
        ...

    def find(self, pid: int) -> Process | None:
        """One process, or None when it is gone or never was."""
        ...


class LinuxProcessTable:
    """Reads ``/proc``."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root

    def snapshot(self) -> dict[int, Process]:
        found = (self.find(int(entry.name)) for entry in os.scandir(self._root) if entry.name.isdigit())
        return {process.pid: process for process in found if process}

    def find(self, pid: int) -> Process | None:
        try:
            text = Path(f"{self._root}/{pid}/stat").read_bytes().decode("utf-8", "replace")
        except OSError:
            return None
        return parse_proc_stat(text)

    def below(self, roots: Iterable[int]) -> dict[int, Process] | None:
        """Return ``roots`` and all their descendants, at a cost independent of what else runs on the machine.

        None if the kernel keeps no lists of children. A process that begins or ends meanwhile may be missing, along
        with its descendants.
        """
        if not Path(f"{self._root}/self/task/{threading.get_native_id()}/children").exists():
            return None
        found: dict[int, Process] = {}
        waiting = list(roots)
        while waiting:
            pid = waiting.pop()
            process = self.find(pid) if pid not in found else None
            if process is not None:
                found[pid] = process
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    for thread in os.scandir(f"{self._root}/{pid}/task"):
                        waiting += map(int, Path(f"{thread.path}/children").read_bytes().split())
        return found


class PsProcessTable:
    """Asks ``ps``, for systems without ``/proc``. The parser is tested; the call itself needs a real Mac."""

    def snapshot(self) -> dict[int, Process]:
        return {process.pid: process for process in parse_ps(self._ps("-A"))}

    def find(self, pid: int) -> Process | None:
        return next(iter(parse_ps(self._ps("-p", str(pid)))), None)

    def _ps(self, *selection: str) -> str:
        columns = "pid=,ppid=,pgid=,sess=,stat=,lstart="
        return output_of("ps", *selection, "-o", columns, env={**os.environ, "LC_ALL": "C"})


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
    """True if exactly that process is alive, and not a later one with its pid."""
    found = table.find(identity.pid)
    return found is not None and found.start == identity.start and found.alive


def environment_of(pid: int) -> list[bytes]:
    """Return the environment a process was started with, as ``NAME=value`` (Linux); empty for a zombie.

    Raises:
        OSError: the process is gone or another user's, or there is no ``/proc``.
    """
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def has_open(pid: int, *files: Path) -> bool:
    """True if a process has one of these files open for writing, as one that inherited a lock does (Linux).

    A file open for reading proves nothing: a screen may be probing the lock, or a backup copying the file.

    Raises:
        OSError: the process is gone or another user's, or there is no ``/proc``.
    """
    names = {str(file) for file in files}
    with os.scandir(f"/proc/{pid}/fd") as entries:
        return any(os.readlink(entry.path) in names and writes(pid, entry.name) for entry in entries)  # noqa: PTH115


def writes(pid: int, descriptor: str) -> bool:
    """True if a process has opened this descriptor for writing (Linux). Raises OSError."""
    flags = re.search(rb"^flags:\s*([0-7]+)", Path(f"/proc/{pid}/fdinfo/{descriptor}").read_bytes(), re.MULTILINE)
    return flags is not None and int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY


def send_signal(target: ProcessIdentity, number: int) -> bool:
    """Signal exactly that process; True when it was sent. On Linux a pidfd closes the gap between check and signal."""
    try:
        descriptor = os.pidfd_open(target.pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        return False
    try:
        if not is_same(system_process_table(), target):
            return False
        if descriptor is None:
            os.kill(target.pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def descendants(snapshot: Mapping[int, Process], roots: Iterable[int]) -> list[Process]:
    """Return all descendants of ``roots``, parents first, without the roots themselves."""
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
    """Return an id that changes with every boot; empty if the system has none (then nothing is concluded from it)."""
    if sys.platform == "darwin":
        return output_of("sysctl", "-n", "kern.bootsessionuuid").strip()
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@functools.cache
def machine_id() -> str:
    """Return an id of this machine that survives a reboot, made from the host name if the system has no id.

    Hashed, because the system's own id is meant to stay on the machine.
    """
    import hashlib  # half a megabyte, and no supervisor needs it

    if sys.platform == "darwin":
        known = output_of("ioreg", "-rd1", "-c", "IOPlatformExpertDevice").partition("IOPlatformUUID")[2][:60]
    else:
        try:
            known = Path("/etc/machine-id").read_text(errors="replace").strip()
        except OSError:
            known = ""
    return hashlib.sha256(f"mpstui:{known or os.uname().nodename}".encode()).hexdigest()[:16]


def output_of(*command: str, env: Mapping[str, str] | None = None) -> str:
    """Return what a system program prints; empty if there is no such program, or it takes more than five seconds."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, env=env, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
