"""One living attempt: its processes, its end, and the stop ladder while it is climbed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from ..wire import liveness
from ..wire.liveness import ProcessIdentity
from ..wire.records import StopRule
from ..wire.rundir import RunDir
from . import family, ladder
from .exits import Child, Ending
from .family import Family
from .ladder import Ladder, Move, Rung, Sight
from .machine import Machine
from .spawn import mark

TREE_REFRESH_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Children appear early; later a look now and then is enough. One look costs about 10 ms of CPU time."""
ORPHAN_LOOK_SECONDS = 0.1 if Path("/proc/self").exists() else 1.0
"""How often an adopted trainer is looked for: one look is a file in ``/proc``, or one start of ``ps``."""


class Attempt:
    """The processes of attempt ``number``, whether we started them, adopted them, or only their remains are left."""

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
        self.ladder: Ladder | None = None
        self.ending: Ending | None = None
        self._machine = machine
        self._looks = 0
        self._next_look = machine.clock.monotonic() + TREE_REFRESH_SECONDS[0]
        self._orphan_check = (0.0, True)

    @property
    def adopted(self) -> bool:
        """Not our child: its exit code cannot be known."""
        return self.child is None

    def lock_is_held(self) -> bool:
        """Whether the trainer or an heir of its descriptors lives."""
        return liveness.is_held(self.run.run_lock)

    def leader_is_alive(self) -> bool:
        """Whether the trainer itself runs."""
        if self.ending is not None:
            return False
        if self.child is not None:
            return not self.child.has_ended()
        return self._adopted_is_alive()

    def _adopted_is_alive(self) -> bool:
        """Asks the table; without an identity the lock must do."""
        now = self._machine.clock.monotonic()
        if now >= self._orphan_check[0]:
            leader = self.family.leader
            alive = family.leader_is_alive(self.family, self._machine.table) if leader else self.lock_is_held()
            self._orphan_check = (now + ORPHAN_LOOK_SECONDS, alive)
        return self._orphan_check[1]

    def collect(self) -> Ending:
        """Reap the trainer, once."""
        if self.ending is None:
            self.ending = self.child.reap() if self.child else Ending()
        return self.ending

    def look(self, *, thorough: bool = False) -> Family:
        """Bring the family up to date; ``thorough`` also looks for what slipped out of the tree (Linux)."""
        heirs = family.linux_heirs(self.run.run_lock, mark(self.run)) if thorough else ()
        self.family = family.grow(self.family, self._machine.table.snapshot(), heirs, family.linux_supervises)
        return self.family

    def look_when_due(self) -> bool:
        """A look from time to time; True when there was one."""
        now = self._machine.clock.monotonic()
        if now < self._next_look:
            return False
        self._looks = min(self._looks + 1, len(TREE_REFRESH_SECONDS) - 1)
        self._next_look = now + TREE_REFRESH_SECONDS[self._looks]
        self.look()
        return True

    def press(self, rule: StopRule, *, force: bool, asked_seconds_ago: float | None = None) -> None:
        """Start the ladder, or climb it faster; a second press never starts a second one.

        Args:
            asked_seconds_ago: the trainer was asked by a supervisor before this one and is not asked again: many
                programs save at the first signal and drop everything at the second.
        """
        now = self._machine.clock.monotonic()
        self.look(thorough=True)
        moves: tuple[Move, ...] = ()
        if self.ladder is None and asked_seconds_ago is not None and not force:
            self.ladder, moves = Ladder(rule, Rung.ASKED, now - asked_seconds_ago, now), (Move.CONTINUE,)
        elif self.ladder is None:
            self.ladder, moves = ladder.begin(rule, now, force=force)
        elif force:
            self.ladder, moves = ladder.escalate(self.ladder, now)
        self._carry_out(moves)

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the trainer, whoever sent it."""
        leader = self.family.leader
        found = self._machine.table.find(leader.pid) if leader is not None and self.ending is None else None
        return found is not None and leader is not None and found.start == leader.start and found.state == "T"

    def climb(self, is_saving: Callable[[], bool]) -> Rung | None:
        """One look down and, when it is time, one rung up; the rung when it changed."""
        if self.ladder is None or self.ladder.over:
            return None
        leader = self.leader_is_alive()
        self.look(thorough=not leader)
        asked = self.ladder.rung is Rung.ASKED
        sight = Sight(leader, bool(self.family.others) or self.lock_is_held(), leader and asked and is_saving())
        before = self.ladder.rung
        self.ladder, moves = ladder.advance(self.ladder, sight, self._machine.clock.monotonic())
        if Move.KILL in moves:
            self.look(thorough=True)
        self._carry_out(moves)
        return self.ladder.rung if self.ladder.rung is not before else None

    def pause(self) -> None:
        """Stop every process of the tree where it is; its memory stays taken."""
        self.look()
        self._to_all(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Let every process of the tree go on."""
        self.look()
        self._to_all(signal.SIGCONT)
        self.paused = False

    def _carry_out(self, moves: tuple[Move, ...]) -> None:
        for move in moves:
            if move is Move.CONTINUE:
                self._to_all(signal.SIGCONT)
                self.paused = False
            elif move is Move.KILL:
                self._to_all(signal.SIGKILL)
            elif self.ladder is not None:
                self._ask(ladder.asking_signal(self.ladder.rule))

    def _ask(self, number: int) -> None:
        """Ask the main process group: it passes the word on (torchrun does). With the leader gone, ask each one."""
        if self._reachable_group() is None or not self._to_group(number):
            for member in self.family.others:
                self._machine.signaller.send(member, number)

    def _to_all(self, number: int) -> None:
        self._to_group(number)
        for member in self._targets():
            self._machine.signaller.send(member, number)

    def _to_group(self, number: int) -> bool:
        group = self._reachable_group()
        return group is not None and self._machine.signaller.send_group(group, self.family.members, number)

    def _reachable_group(self) -> int | None:
        """The trainer's group, as long as the trainer is there or a zombie: later its number may be anybody's."""
        leader = self.family.leader
        return leader.pid if leader is not None and self.ending is None else None

    def _targets(self) -> tuple[ProcessIdentity, ...]:
        return self.family.members if self.ending is None else self.family.others
