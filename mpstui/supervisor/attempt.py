"""One attempt: its processes, its stop sequence, and how its trainer ended.

Its end is noticed without reaping it: while the trainer is a zombie, no other process can get its pid or group number.
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
"""Pauses between looks for children, most of which appear early. One look costs about 10 ms of CPU time."""
ORPHAN_LOOK_SECONDS = 0.1 if Path("/proc/self").exists() else 1.0
"""How often to check whether an adopted trainer is alive: it means reading a file in ``/proc``, or starting ``ps``."""
_FLAGS_FIELD, _PF_EXITING = 6, 0x4
"""proc(5): the ninth field of ``stat``, counted here from after the name in parentheses, and one of its flags."""
_MAXRSS_UNIT = 1 if os.uname().sysname == "Darwin" else 1024
"""getrusage(2): bytes on macOS, kilobytes on Linux."""


class Ending(NamedTuple):
    """How a process ended: exit code or signal; neither if nobody saw it."""

    code: int | None = None
    signal: int | None = None
    core: bool = False
    rusage: Mapping[str, float] = MappingProxyType({})

    @property
    def unknown(self) -> bool:
        """True if nobody saw how it ended."""
        return self.code is None and self.signal is None


class Child:
    """A child process of this supervisor."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._note = None if hasattr(os, "waitid") else ExitNote(pid, select)

    def has_ended(self) -> bool:
        """True if it has become a zombie; it stays one."""
        if self._note is not None:
            return self._note.has_come()
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        except ChildProcessError:
            return True

    def killed_by(self) -> int | None:
        """Return the signal that ended it, without reaping it; None if it runs, exited, or this cannot be told."""
        if self._note is not None:
            return None
        patience = 0 if _is_ending(self.pid) else os.WNOHANG
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | patience)
        return found.si_status if found is not None and found.si_code != os.CLD_EXITED else None

    def reap(self) -> Ending:
        """Reap it. After this, another process may get its pid."""
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
    """True if the kernel is tearing it down: in a moment it will be a zombie."""
    try:
        flags = int(storage.read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()[_FLAGS_FIELD])
    except (OSError, ValueError, IndexError):  # it is gone, or this is not Linux
        return False
    return bool(flags & _PF_EXITING)


class ExitNote:
    """The kernel's notice that a process has ended, through kqueue(2), which does not reap it either.

    For CPython before 3.13 on macOS, which has no ``os.waitid``. Not verified on a Mac.
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
        """True if it has ended; does not wait."""
        self._ended = self._ended or bool(self._queue.control(None, 1, 0))
        return self._ended


def ending_of(status: int, rusage: dict[str, float] | None = None) -> Ending:
    """Decode a wait status."""
    if os.WIFSIGNALED(status):
        return Ending(signal=os.WTERMSIG(status), core=os.WCOREDUMP(status), rusage=rusage or {})
    return Ending(code=os.WEXITSTATUS(status), rusage=rusage or {})


class Attempt:
    """The processes of attempt ``number``, started by us or adopted, or those that are left."""

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
        """Sends a signal to the training on all nodes of its job; returns False if that failed."""
        self.was_reached = False
        """True once a signal of ours has reached the living trainer; if none did, it ended by itself."""
        self._spared: dict[ProcessIdentity, ProcessIdentity] = {}
        """The processes not asked to end, each with the process expected to end it."""
        self._machine = machine
        self._refreshes = 0
        self._next_refresh = machine.clock.monotonic() + TREE_REFRESH_SECONDS[0]
        self._orphan_check = (0.0, True)

    def lock_is_held(self) -> bool:
        """True if the trainer, or a process that inherited its descriptors, is alive."""
        return liveness.is_held(self.run.run_lock)

    def leader_is_alive(self) -> bool:
        """True if the trainer itself runs; for an adopted one, by the process table or, without a pid, the lock."""
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
        """True if the trainer is our child, has run for a while, and is not being ended."""
        grown_up = self._refreshes == len(TREE_REFRESH_SECONDS) - 1
        return grown_up and self.child is not None and self.ending is None and self.stop_sequence is None

    def collect(self) -> Ending:
        """Reap the trainer, once."""
        if self.ending is None:
            self.ending = self.child.reap() if self.child else Ending()
        return self.ending

    def refresh(self, *, thorough: bool = False, snapshot: Mapping[int, Process] | None = None) -> Family:
        """Bring the family up to date; ``thorough`` also finds processes that slipped out of the tree (Linux).

        Args:
            snapshot: the processes that may belong to it; None: all on this machine.
        """
        heirs = family.linux_heirs(self.run.run_lock, mark_of(self.run)) if thorough else ()
        snapshot = self._machine.table.snapshot() if snapshot is None else snapshot
        if self._machine.adopts:
            trainer, mark = self.child.pid if self.child else None, mark_of(self.run)
            heirs = {*heirs, *family.orphans(snapshot, trainer, mark)}
        self.family = family.grow(self.family, snapshot, heirs, family.linux_supervises)
        return self.family

    def refresh_when_due(self) -> bool:
        """Refresh the family if it is time; True if it was refreshed."""
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
        """Begin the stop sequence, or with ``force`` speed up the one in progress: there is never a second.

        Args:
            asked_seconds_ago: how long ago an earlier supervisor asked the trainer to end. It is not asked again: many
                programs save at the first signal and drop everything at the second.
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
        """True if a signal, whoever sent it, has suspended the trainer."""
        leader = self.family.leader
        found = self._machine.table.find(leader.pid) if leader is not None and self.ending is None else None
        return found is not None and leader is not None and found.start == leader.start and found.state == "T"

    def advance_stop(self, is_saving: Callable[[], bool]) -> StopStep | None:
        """Check what is left and use more force when it is time; returns the new step if it changed, else None."""
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
        """Suspend every process of the tree; it keeps its memory."""
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
        """Signal the main process group, whose leader may pass it on (torchrun does); without a leader, each process.

        Children of a process that writes heartbeats are left for it to end. A data loader's worker would die of the
        signal, and the training with it, before the end of the step at which it saves.
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
        """Ask the spared processes to end once the process that was to end them is gone."""
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
        """Return the trainer's group while it exists, even as a zombie; then None: the number may be reused."""
        leader = self.family.leader
        return leader.pid if leader is not None and self.ending is None else None
