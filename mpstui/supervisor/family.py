"""Which processes belong to an attempt, and signals that reach only those.

The family is the trainer, its descendants, and every process proved to come from it. The link from child to parent is
lost when the parent dies, so members are remembered by pid and start time as long as they live. On Linux three more
proofs find processes that slipped away: an inherited descriptor of ``run.lock``, the mark in the environment, and being
an orphan that has become a child of the supervisor.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from ..wire.liveness import Process, ProcessIdentity, ProcessTable, descendants, environment_of, has_open

_SUPERVISOR = b"supervisor/__main__.py"
_PR_SET_CHILD_SUBREAPER = 36
HELPER = "MPSTUI_HELPER"
"""Set in the environment of everything a supervisor starts besides the trainer, and so of their children."""
_MARKS = (f"{HELPER}=".encode(), b"MPSTUI_RUN_DIR=")
helpers: set[int] = set()
"""Pids of the processes that this supervisor has started besides the trainer."""


class Family(NamedTuple):
    """The trainer and the other living members, each only once."""

    leader: ProcessIdentity | None
    others: tuple[ProcessIdentity, ...] = ()

    @property
    def members(self) -> tuple[ProcessIdentity, ...]:
        """All members, the leader first."""
        return (self.leader, *self.others) if self.leader else self.others


def grow(
    family: Family,
    snapshot: Mapping[int, Process],
    heirs: Iterable[int] = (),
    supervises: Callable[[int], bool] = lambda pid: False,
) -> Family:
    """Return the family as of ``snapshot``, without the dead, with new descendants, session mates and heirs.

    A pid with a different start time is a stranger and is never included by its number. Neither is the supervisor of a
    run launched from inside this one, nor its children: until it has taken over its run, it is the launcher's child.
    """
    known = [member for member in family.members if _is_there(member, snapshot)]
    roots = {member.pid for member in known} | _session_mates(family.leader, known, snapshot)
    roots |= {pid for pid in heirs if pid in snapshot}
    everyone = [snapshot[pid] for pid in sorted(roots)] + descendants(snapshot, roots)
    if strangers := {process.pid for process in everyone if supervises(process.pid)}:
        rest = {pid: process for pid, process in snapshot.items() if pid not in strangers}
        return grow(family, rest, heirs, supervises)
    never = {0, 1, os.getpid(), os.getppid(), *([family.leader.pid] if family.leader else [])}
    others = [process.identity for process in everyone if process.alive and process.pid not in never]
    return Family(family.leader, tuple(sorted(others)))


def _is_there(member: ProcessIdentity, snapshot: Mapping[int, Process]) -> bool:
    found = snapshot.get(member.pid)
    return found is not None and found.start == member.start


def _session_mates(
    leader: ProcessIdentity | None, known: Iterable[ProcessIdentity], snapshot: Mapping[int, Process]
) -> set[int]:
    """Return the pids in the trainer's session, provided a known member proves that it is still the same session."""
    if leader is None or not any(snapshot[member.pid].session == leader.pid for member in known):
        return set()
    return {process.pid for process in snapshot.values() if process.session == leader.pid and process.pid > 1}


def children_of(
    parents: Collection[ProcessIdentity], family: Family, snapshot: Mapping[int, Process]
) -> dict[ProcessIdentity, ProcessIdentity]:
    """Map each member that descends from one of ``parents`` to that one; the parents themselves are left out."""
    found: dict[ProcessIdentity, ProcessIdentity] = {}
    pids, members = {one.pid for one in parents}, set(family.members)
    for parent in parents:
        below = {process.identity for process in descendants(snapshot, [parent.pid]) if process.pid not in pids}
        found |= dict.fromkeys(below & members, parent)
    return found


def infer_leader(family: Family, snapshot: Mapping[int, Process]) -> Family:
    """Return the family with its leader identified: the one session leader whose parent is not a member.

    For a trainer whose identity could not be recorded; unless there is exactly one candidate, nothing is guessed.
    """
    pids = {member.pid for member in family.others}
    heads = [pid for pid in pids if snapshot[pid].session == pid and snapshot[pid].parent not in pids]
    if family.leader is not None or len(heads) != 1:
        return family
    leader = snapshot[heads[0]].identity
    return Family(leader, tuple(member for member in family.others if member != leader))


def linux_supervises(pid: int) -> bool:
    """True if a process is a run's supervisor; False if there is no ``/proc``."""
    try:
        return _SUPERVISOR in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # gone meanwhile


def show_run(run: Path, instead_of: str) -> None:
    """Make ``ps`` show ``run`` as the last word of this process, padded with slashes, which a path ignores (Linux).

    A forked process shows its parent's command line; if that cannot be changed, it stays.

    Args:
        instead_of: the command line is replaced from this word on.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        first, after = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
        memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            words, found, _ = os.pread(memory, after - first, first).partition(os.fsencode(f"\0{instead_of}\0"))
            shown, room = os.fsencode(run), after - first - len(words) - 2
            if found and len(shown) <= room:
                os.pwrite(memory, shown.rjust(room, b"/"), first + len(words) + 1)
        finally:
            os.close(memory)


def linux_heirs(run_lock: Path, mark: bytes) -> set[int]:
    """Return pids that inherited a descriptor of ``run_lock`` or carry ``mark`` (``NAME=value``) in their environment.

    Sees only this user's processes; returns none if there is no ``/proc``. Takes about 30 microseconds per process, so
    it is called when an attempt ends, not while it runs.
    """
    if not sys.platform.startswith("linux"):
        return set()
    pids = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())
    return {pid for pid in pids if pid != os.getpid() and _is_heir(pid, run_lock, mark)}


def adopt_orphans() -> bool:
    """Have orphans among our descendants become our children instead of init's (Linux); True if it worked."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes  # missing in some Pythons; a supervisor can do without it

        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def orphans(snapshot: Mapping[int, Process], trainer: int | None, mark: bytes) -> set[int]:
    """Return pids that became children of this process when their parents died; those that have ended are reaped.

    Args:
        trainer: our own child, which is reaped elsewhere.
        mark: see :func:`.rundir.mark_of`. A process with another run's mark belongs to that run, whose supervisor died.
    """
    mine = [
        found for found in snapshot.values() if found.parent == os.getpid() and found.pid not in (trainer, *helpers)
    ]
    for found in mine:
        if not found.alive:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(found.pid, os.WNOHANG)
    return {found.pid for found in mine if found.alive and not _is_anothers(found.pid, mark)}


def _is_anothers(pid: int, mark: bytes) -> bool:
    try:
        marks = {word for word in environment_of(pid) if word.startswith(_MARKS)}
        return not marks <= {mark}
    except OSError:
        return True  # gone meanwhile, or owned by another user now: not ours to touch


def _is_heir(pid: int, run_lock: Path, mark: bytes) -> bool:
    try:
        if mark in environment_of(pid):
            # A run launched from inside this one has a supervisor that carries our mark, and a life of its own.
            return not linux_supervises(pid)
        return has_open(pid, run_lock)
    except OSError:
        return False  # gone meanwhile, or somebody else's


class Signaller(Protocol):
    """Where signals go; tests hand in their own."""

    def send(self, target: ProcessIdentity, number: int) -> bool:
        """Signal exactly this process, never a later one of the same pid; True if it was sent."""
        ...

    def send_group(self, group: int, proof: Iterable[ProcessIdentity], number: int) -> bool:
        """Signal a process group if one of ``proof`` is still in it; True if it was sent."""
        ...


class SystemSignaller:
    """Sends real signals."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table

    def send(self, target: ProcessIdentity, number: int) -> bool:
        """See :class:`Signaller`. On Linux a pidfd closes the gap between the check and the signal."""
        if target.pid <= 1 or target.pid == os.getpid():
            return False
        if hasattr(os, "pidfd_open"):
            return self._send_by_descriptor(target, number)
        return self._is(target) and _kill(target.pid, number)

    def send_group(self, group: int, proof: Iterable[ProcessIdentity], number: int) -> bool:
        """See :class:`Signaller`. A zombie is proof enough: it keeps the group's number from being reused."""
        if group <= 1 or group == os.getpgrp():
            return False
        for member in proof:
            found = self._table.find(member.pid)
            if found and found.start == member.start and found.group == group:
                return _kill(-group, number)
        return False

    def _is(self, target: ProcessIdentity) -> bool:
        found = self._table.find(target.pid)
        return found is not None and found.start == target.start

    def _send_by_descriptor(self, target: ProcessIdentity, number: int) -> bool:
        try:
            descriptor = os.pidfd_open(target.pid)
        except ProcessLookupError:
            return False
        except OSError:
            return self._is(target) and _kill(target.pid, number)  # a kernel before 5.3, or a sandbox forbids it
        try:
            if not self._is(target):
                return False
            signal.pidfd_send_signal(descriptor, number)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True


def _kill(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True
