"""One attempt: its processes, its stop sequence, and how its trainer ended.

The end is found out without reaping: while the trainer is a zombie, no other process can get its pid or group number.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..wire import heartbeat, liveness, storage
from ..wire.liveness import LinuxProcessTable, Process, ProcessIdentity
from ..wire.records import StopRule
from ..wire.rundir import RunDir, mark_of
from . import family, stop_sequence
from .family import Family
from .machine import Machine
from .stop_sequence import Move, Sight, StopSequence, StopStep

TREE_REFRESH_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses between looks for children, which appear early. One look costs about 10 ms of CPU time."""
ORPHAN_LOOK_SECONDS = 0.1 if Path("/proc/self").exists() else 1.0
"""How often to check whether an adopted trainer lives: that reads a file in ``/proc``, or starts ``ps``."""
_FLAGS_FIELD, _PF_EXITING = 6, 0x4
"""proc(5): the ninth field of ``stat``, counted here from the end of the name in brackets, and a flag in it."""
_MAXRSS_UNIT = 1 if os.uname().sysname == "Darwin" else 1024
"""getrusage(2): bytes on macOS, kilobytes on Linux."""


class Ending(NamedTuple):
    """Exit code or signal; neither if nobody was there to see it."""

    code: int | None = None
    signal: int | None = None
    core: bool = False
    rusage: Mapping[str, float] = MappingProxyType({})

    @property
    def unknown(self) -> bool:
        """Whether nobody saw how it ended."""
        return self.code is None and self.signal is None


class Child:
    """A child process of this supervisor."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._note = None if hasattr(os, "waitid") else ExitNote(pid, select)

    def has_ended(self) -> bool:
        """Whether it is a zombie by now; it stays one."""
        if self._note is not None:
            return self._note.has_come()
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        except ChildProcessError:
            return True

    def killed_by(self) -> int | None:
        """The signal that ended it, if one has; does not reap it. None: it runs, it exited, or it cannot be told."""
        if self._note is not None:
            return None
        patience = 0 if _is_ending(self.pid) else os.WNOHANG
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | patience)
        return found.si_status if found is not None and found.si_code != os.CLD_EXITED else None

    def reap(self) -> Ending:
        """Collect it. After this, another process may get its pid."""
        try:
            _, status, usage = os.wait4(self.pid, 0)
        except ChildProcessError:
            return Ending()
        rusage = {
            "user_seconds": round(usage.ru_utime, 3),
            "system_seconds": round(usage.ru_stime, 3),
            "max_rss_bytes": float(usage.ru_maxrss * _MAXRSS_UNIT),
        }
        return ending_of(status, rusage)


def _is_ending(pid: int) -> bool:
    """Whether the kernel is tearing it down: its files are closed, and in a moment it will be a zombie."""
    try:
        flags = int(storage.read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()[_FLAGS_FIELD])
    except (OSError, ValueError, IndexError):  # elsewhere than on Linux too
        return False
    return bool(flags & _PF_EXITING)


class ExitNote:
    """The kernel's word that a process ended, through kqueue(2), which does not reap it either.

    For CPython on macOS before 3.13, which has no ``os.waitid``. Not verified on a Mac.
    """

    def __init__(self, pid: int, kernel: Any) -> None:
        self._queue = kernel.kqueue()
        self._ended = False
        event = kernel.kevent(pid, filter=kernel.KQ_FILTER_PROC, flags=kernel.KQ_EV_ADD, fflags=kernel.KQ_NOTE_EXIT)
        try:
            self._queue.control([event], 0, 0)
        except ProcessLookupError:
            self._ended = True  # it was a zombie already

    def has_come(self) -> bool:
        """Whether it has ended; does not wait."""
        self._ended = self._ended or bool(self._queue.control(None, 1, 0))
        return self._ended


def ending_of(status: int, rusage: dict[str, float] | None = None) -> Ending:
    """Read a wait status."""
    if os.WIFSIGNALED(status):
        return Ending(signal=os.WTERMSIG(status), core=os.WCOREDUMP(status), rusage=rusage or {})
    return Ending(code=os.WEXITSTATUS(status), rusage=rusage or {})


class Attempt:
    """The processes of attempt ``number``: started by us, adopted, or what is left of them."""

    def __init__(
        self,
        run: RunDir,
        number: int,
        processes: Family,
        machine: Machine,
        *,
        child: Child | None = None,
        paused: bool = False,
    ) -> None:
        self.run = run
        self.number = number
        self.family = processes
        self.child = child
        self.paused = paused
        self.stop_sequence: StopSequence | None = None
        self.ending: Ending | None = None
        self.everywhere: Callable[[int], bool] | None = None
        """Sends a signal to the training on all nodes of its job; False: it cannot."""
        self.was_reached = False
        """Whether a signal of ours reached the living trainer; if none did, it ended by itself."""
        self._spared: dict[ProcessIdentity, ProcessIdentity] = {}
        """Who was not asked to end, with the process that will end it."""
        self._machine = machine
        self._refreshes = 0
        self._next_refresh = machine.clock.monotonic() + TREE_REFRESH_SECONDS[0]
        self._orphan_check = (0.0, True)

    def lock_is_held(self) -> bool:
        """Whether the trainer or a process that inherited its descriptors is alive."""
        return liveness.is_held(self.run.run_lock)

    def leader_is_alive(self) -> bool:
        """Whether the trainer itself runs: for an adopted one by the process table or, without its pid, the lock."""
        if self.ending is not None:
            return False
        if self.child is not None:
            return not self.child.has_ended()
        now = self._machine.clock.monotonic()
        if now >= self._orphan_check[0]:
            leader = self.family.leader
            alive = liveness.is_same(self._machine.table, leader) if leader else self.lock_is_held()
            self._orphan_check = (now + ORPHAN_LOOK_SECONDS, alive)
        return self._orphan_check[1]

    @property
    def is_settled(self) -> bool:
        """Whether the trainer is our child, has run for a while, and nobody is ending it."""
        grown_up = self._refreshes == len(TREE_REFRESH_SECONDS) - 1
        return grown_up and self.child is not None and self.ending is None and self.stop_sequence is None

    def collect(self) -> Ending:
        """Reap the trainer, once."""
        if self.ending is None:
            self.ending = self.child.reap() if self.child else Ending()
        return self.ending

    def refresh(self, *, thorough: bool = False, snapshot: Mapping[int, Process] | None = None) -> Family:
        """Bring the family up to date; ``thorough`` also looks for what slipped out of the tree (Linux).

        Args:
            snapshot: the processes that may belong to it; None: all of the machine.
        """
        heirs = family.linux_heirs(self.run.run_lock, mark_of(self.run)) if thorough else ()
        snapshot = self._machine.table.snapshot() if snapshot is None else snapshot
        if self._machine.adopts:
            trainer, mark = self.child.pid if self.child else None, mark_of(self.run)
            heirs = {*heirs, *family.orphans(snapshot, trainer, mark)}
        self.family = family.grow(self.family, snapshot, heirs, family.linux_supervises)
        return self.family

    def refresh_when_due(self) -> bool:
        """Refresh the family if it is time to; True if it was refreshed."""
        now = self._machine.clock.monotonic()
        if now < self._next_refresh:
            return False
        self._refreshes = min(self._refreshes + 1, len(TREE_REFRESH_SECONDS) - 1)
        self._next_refresh = now + TREE_REFRESH_SECONDS[self._refreshes]
        table, below = self._machine.table, None
        if self.child is not None and self._machine.adopts and isinstance(table, LinuxProcessTable):
            # Orphans become our children, so our descendants are enough: two hundred supervisors need not read each
            # other's.
            below = table.below([os.getpid(), *(member.pid for member in self.family.members)])
        self.refresh(snapshot=below)
        return True

    def stop(self, rule: StopRule, *, force: bool, asked_seconds_ago: float | None = None) -> None:
        """Begin the stop sequence, or speed up the one that runs: there is never a second.

        Args:
            asked_seconds_ago: when an earlier supervisor asked the trainer to end. It is not asked again: many programs
                save at the first signal and drop everything at the second.
        """
        now = self._machine.clock.monotonic()
        self.refresh(thorough=True)
        self.was_reached = self.was_reached or asked_seconds_ago is not None
        moves: tuple[Move, ...] = ()
        if self.stop_sequence is None and asked_seconds_ago is not None and not force:
            self.stop_sequence, moves = (
                StopSequence(rule, StopStep.ASKED, now - asked_seconds_ago, now),
                (Move.CONTINUE,),
            )
        elif self.stop_sequence is None:
            self.stop_sequence, moves = stop_sequence.begin(rule, now, force=force)
        elif force:
            self.stop_sequence, moves = stop_sequence.escalate(self.stop_sequence, now)
        self._carry_out(moves)

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the trainer, whoever sent it."""
        leader = self.family.leader
        found = self._machine.table.find(leader.pid) if leader is not None and self.ending is None else None
        return found is not None and leader is not None and found.start == leader.start and found.state == "T"

    def advance_stop(self, is_saving: Callable[[], bool]) -> StopStep | None:
        """Look what is left and use more force when it is time; returns the new step if it changed, else None."""
        if self.stop_sequence is None or self.stop_sequence.over:
            return None
        leader = self.leader_is_alive()
        self.refresh(thorough=not leader)
        self._ask_left_behind(leader=leader)
        asked = self.stop_sequence.step is StopStep.ASKED
        sight = Sight(leader, bool(self.family.others) or self.lock_is_held(), leader and asked and is_saving())
        before = self.stop_sequence.step
        self.stop_sequence, moves = stop_sequence.advance(self.stop_sequence, sight, self._machine.clock.monotonic())
        if Move.KILL in moves:
            self.refresh(thorough=True)
        self._carry_out(moves)
        return self.stop_sequence.step if self.stop_sequence.step is not before else None

    def pause(self) -> None:
        """Stop every process of the tree where it is; its memory stays taken."""
        self.refresh()
        self._to_all(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Let every process of the tree continue."""
        self.refresh()
        self._to_all(signal.SIGCONT)
        self.paused = False

    def _carry_out(self, moves: tuple[Move, ...]) -> None:
        self._orphan_check = (0.0, True)  # look now
        self.was_reached = self.was_reached or (bool(moves) and self.leader_is_alive())
        for move in moves:
            if move is Move.CONTINUE:
                self._to_all(signal.SIGCONT)
                self.paused = False
            elif move is Move.KILL:
                if self.everywhere is not None:
                    self.everywhere(signal.SIGKILL)
                self._to_all(signal.SIGKILL)
            elif self.stop_sequence is not None:
                self._ask(stop_sequence.asking_signal(self.stop_sequence.rule))

    def _ask(self, number: int) -> None:
        """Ask the main process group, which passes it on (torchrun does). If the leader is gone, ask each process.

        A process that reports ends its own children. A data loader's worker would die of the signal, and the training
        with it before the end of the step at which it saves.
        """
        if self.everywhere is not None and self.everywhere(number):
            return
        group = self._reachable_group()
        if group is not None and (reporters := self._reporters()):
            rows = self._machine.table.snapshot()
            self._spared = family.children_of(reporters, self.family, rows)
            if any(rows[one.pid].group == group for one in self._spared):
                for one in self.family.members:
                    if one not in self._spared and one.pid in rows and rows[one.pid].group == group:
                        self._machine.signaller.send(one, number)
                return
        self._spared = {}
        if group is None or not self._to_group(number):
            for member in self.family.others:
                self._machine.signaller.send(member, number)

    def _reporters(self) -> list[ProcessIdentity]:
        """The members that write heartbeats."""
        folder = self.run.attempt(self.number)
        beats = map(heartbeat.read, (folder.heartbeat(), *folder.rank_heartbeats().values()))
        pids = {beat.pid for beat in beats if beat is not None}
        return [one for one in self.family.members if one.pid in pids]

    def _ask_left_behind(self, *, leader: bool) -> None:
        """Ask those that were spared, once nobody is left who would end them."""
        living = {*self.family.others, *((self.family.leader,) if leader and self.family.leader else ())}
        left = [one for one, reporter in self._spared.items() if reporter not in living]
        for one in left:
            del self._spared[one]
            if one in living and self.stop_sequence is not None:
                self._machine.signaller.send(one, stop_sequence.asking_signal(self.stop_sequence.rule))

    def _to_all(self, number: int) -> None:
        self._to_group(number)
        for member in self.family.members if self.ending is None else self.family.others:
            self._machine.signaller.send(member, number)

    def _to_group(self, number: int) -> bool:
        group = self._reachable_group()
        return group is not None and self._machine.signaller.send_group(group, self.family.members, number)

    def _reachable_group(self) -> int | None:
        """The trainer's group while the trainer exists, even as a zombie; then None: the number may be another's."""
        leader = self.family.leader
        return leader.pid if leader is not None and self.ending is None else None
