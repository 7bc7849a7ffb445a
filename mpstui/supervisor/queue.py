"""Waiting for one's turn: the dependencies first, then a slot of the group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from ..wire import locks, queues, records
from ..wire.jsontext import UnreadableRecord
from ..wire.queues import Queue, QueueFiles
from ..wire.records import QueueRule, Status
from ..wire.rundir import RunDir
from . import dependencies
from .dependencies import Outcome, Verdict
from .machine import Machine

POLL_SECONDS = 1.0


def may_claim(run: str, order: Sequence[str], contenders: Collection[str], free: int) -> bool:
    """Whether ``run`` is near enough to the front.

    Only contenders count: those whose supervisor lives and that wait for a slot and for nothing else.
    """
    ahead = [name for name in order[: order.index(run)] if name in contenders] if run in order else list(contenders)
    return len(ahead) < free


def joined(queue: Queue, run: str) -> Queue:
    """The queue with ``run`` at its end, unless it is there."""
    return queue if run in queue.order else queue.but(order=[*queue.order, run])


def left(queue: Queue, run: str) -> Queue:
    """The queue without ``run``."""
    return queue.but(order=[name for name in queue.order if name != run])


class Turn(NamedTuple):
    """What came of asking."""

    go: bool
    waiting_for: str | None = None
    message: str = ""
    never: bool = False
    """A dependency can never be met any more."""


GO = Turn(True)


class Turnstile:
    """One run's place in its queue. The slot, once claimed, is kept until the supervisor leaves."""

    def __init__(self, run: RunDir, rule: QueueRule, machine: Machine) -> None:
        self.slot: int | None = None
        """Descriptor of the slot's lock, inheritable."""
        self._run = run
        self._rule = rule
        self._machine = machine
        self._files: QueueFiles | None = queues.files_of(run, rule.group) if rule.group else None
        self._ask_at = 0.0
        self._last = Turn(False)

    @property
    def needed(self) -> bool:
        """Whether this run waits for anything at all."""
        return bool(self._rule.group or self._rule.after)

    def ask(self, *, dependencies_matter: bool, status: Status) -> Turn:
        """Whether it is our turn now; looks at most once a second."""
        now = self._machine.clock.monotonic()
        if now >= self._ask_at:
            self._ask_at = now + POLL_SECONDS
            self._last = self._look(dependencies_matter, status)
        return self._last

    def leave(self) -> None:
        """Give up the place in the line (the slot, if there is one, is kept)."""
        if self._files is not None:
            self._edit(self._files, lambda queue: left(queue, self._run.run))

    def close(self) -> None:
        """Give the slot back; a trainer that still lives keeps it through its own descriptor."""
        if self.slot is not None:
            locks.release(self.slot)
            self.slot = None

    def _look(self, dependencies_matter: bool, status: Status) -> Turn:
        if self.slot is not None and not dependencies_matter:
            return GO
        queue: Queue | None = None
        if self._files is not None:
            queue = self._edit(self._files, lambda found: joined(found, self._run.run))
            if queue is None:
                return Turn(False, "group", f"queue group {self._rule.group} cannot be read or written")
            if queue.paused:
                return Turn(False, "group", f"queue group {self._rule.group} is paused")
        turn = self._dependencies() if dependencies_matter else GO
        if not turn.go or queue is None or self._files is None or self.slot is not None:
            return turn
        is_first = queue.order[:1] == [self._run.run]
        if not is_first and status.waiting_for != "slot":
            return self._waiting()  # say first that we contend, so that those behind us see it; claim at the next look
        return self._claim(self._files)

    def _waiting(self) -> Turn:
        return Turn(False, "slot", f"waits for a slot of queue group {self._rule.group}")

    def _dependencies(self) -> Turn:
        found = [(after, self._outcome(after.get("run", ""))) for after in self._rule.after]
        verdicts = [dependencies.judge(after.get("when", "ok"), outcome) for after, outcome in found]
        verdict = dependencies.combine(verdicts)
        if verdict is Verdict.GO:
            return GO
        index = verdicts.index(verdict)
        after, outcome = found[index]
        if verdict is Verdict.NEVER:
            return Turn(False, "runs", dependencies.sentence(after, outcome), never=True)
        return Turn(False, "runs", f"waits for run {after.get('run')}")

    def _outcome(self, run: str) -> Outcome:
        if not run or "/" in run or run.startswith("."):
            return Outcome.MISSING
        other = RunDir(self._run.path.parent / run)
        return dependencies.outcome(other, self._machine.table, self._machine.boot_id)

    def _claim(self, files: QueueFiles) -> Turn:
        """Take a free slot if nobody who could take it now is before us; under the group's lock, so one at a time."""

        def claim(queue: Queue) -> Queue:
            free = queues.free_slots(files, queue)
            contenders = {name for name in queue.order if name != self._run.run and self._contends(name)}
            if free and may_claim(self._run.run, queue.order, contenders, len(free)):
                self.slot = locks.acquire(files.slot(free[0]), inheritable=True)
            return queue if self.slot is None else left(queue, self._run.run)

        self._edit(files, claim)
        return GO if self.slot is not None else self._waiting()

    def _contends(self, run: str) -> bool:
        other = RunDir(self._run.path.parent / run)
        try:
            status = records.read(Status, other.status)
        except (OSError, UnreadableRecord):
            return False
        waits = status is not None and status.phase == "queued" and status.waiting_for == "slot"
        return waits and locks.is_held(other.supervisor_lock)

    def _edit(self, files: QueueFiles, change: Callable[[Queue], Queue]) -> Queue | None:
        try:
            return queues.edit(files, change)
        except (OSError, UnreadableRecord):
            return None
