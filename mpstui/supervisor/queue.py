"""Waiting for one's turn: the dependencies first, then a slot of the group."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from ..wire import liveness, queues, records
from ..wire.queues import Queue, QueueBusy, QueueFiles
from ..wire.records import GpuRule, LaunchRecord, QueueRule, Status
from ..wire.rundir import RunDir
from ..wire.storage import UnreadableRecord
from . import dependencies, gpus
from .dependencies import Outcome, Verdict
from .machine import Machine

POLL_SECONDS = 1.0


def may_claim(run: str, order: Sequence[str], contenders: Collection[str], free: int) -> bool:
    """Whether ``run`` is near enough to the front.

    Only contenders count: those whose supervisor lives and that wait for a slot and for nothing else.
    """
    ahead = [name for name in order[: order.index(run)] if name in contenders] if run in order else list(contenders)
    return len(ahead) < free


def joined(queue: Queue, run: str, devices: Sequence[str] = ()) -> Queue:
    """The queue with ``run`` at its end, unless it is there, and the devices that the last one may choose from."""
    order = queue.order if run in queue.order else [*queue.order, run]
    known = list(devices) if devices and order[-1] == run else queue.devices
    return queue._replace(order=order, devices=known)


def left(queue: Queue, run: str) -> Queue:
    """The queue without ``run``."""
    return queue._replace(order=[name for name in queue.order if name != run])


class Turn(NamedTuple):
    """What came of asking."""

    go: bool
    waiting_for: str | None = None
    message: str = ""
    never: bool = False
    """A dependency can never be met any more."""


GO = Turn(True)


class Turnstile:
    """One run's place in its queue. The slot and the GPUs, once claimed, are kept until the supervisor leaves."""

    def __init__(self, run: RunDir, rule: QueueRule, machine: Machine, wanted: GpuRule | None = None) -> None:
        self.gpus: list[str] = []
        """The devices this run has for itself, as ``CUDA_VISIBLE_DEVICES`` names them."""
        self._slot: int | None = None
        self._held: list[int] = []
        self._wanted = wanted if wanted is not None and wanted.devices else None
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

    @property
    def kept(self) -> tuple[int, ...]:
        """Descriptors of the locks of the slot and the GPUs, which the trainer keeps though this supervisor dies."""
        return (() if self._slot is None else (self._slot,)) + tuple(self._held)

    def ask(self, *, dependencies_matter: bool, status: Status) -> Turn:
        """Whether it is our turn now; looks at most once a second."""
        now = self._machine.clock.monotonic()
        if now >= self._ask_at:
            self._ask_at = now + POLL_SECONDS
            try:
                self._last = self._look(dependencies_matter, status)
            except QueueBusy:
                self._ask_at = now  # what it waited for is as true as it was; editors need milliseconds
        return self._last

    def leave(self) -> None:
        """Give up the place in the line (the slot, if there is one, is kept)."""
        if self._files is not None:
            with contextlib.suppress(QueueBusy):  # whoever has ended is passed over, wherever it stands
                self._edit(self._files, lambda queue: left(queue, self._run.run))

    def close(self) -> None:
        """Give slot and GPUs back; a trainer that still lives keeps them through its own descriptors."""
        gpus.release(self._held)
        if self._slot is not None:
            liveness.release(self._slot)
            self._slot = None

    def _look(self, dependencies_matter: bool, status: Status) -> Turn:
        if self._slot is not None and not dependencies_matter:
            return GO
        queue: Queue | None = None
        if self._files is not None:
            devices = self._wanted.devices if self._wanted else ()
            queue = self._edit(self._files, lambda found: joined(found, self._run.run, devices))
            if queue is None:
                return Turn(False, "group", f"queue group {self._rule.group} cannot be read or written")
            if queue.paused:
                return Turn(False, "group", f"queue group {self._rule.group} is paused")
        turn = self._dependencies() if dependencies_matter else GO
        if not turn.go or queue is None or self._files is None or self._slot is not None:
            return turn
        is_first = queue.order[:1] == [self._run.run]
        if not is_first and status.waiting_for != "slot":
            return self._waiting()  # say first that we contend, so that those behind us see it; claim at the next look
        return self._claim(self._files, status)

    def _waiting(self) -> Turn:
        count = self._wanted.takes if self._wanted else 0
        what = {0: "a slot", 1: "a free GPU"}.get(count, f"{count} free GPUs")
        return Turn(False, "slot", f"waits for {what} of queue group {self._rule.group}")

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

    def _claim(self, files: QueueFiles, status: Status) -> Turn:
        """Take what is free if nobody who could take it now is before us; under the group's lock, so one at a time."""

        def claim(queue: Queue) -> Queue:
            slot = self._next_slot(files, queue)
            if slot is None or not self._take_gpus(files, queue, status):
                return queue
            self._slot = liveness.acquire(files.slot(slot), inheritable=True)
            if self._slot is None:
                gpus.release(self._held)
                return queue
            return left(queue, self._run.run)

        self._edit(files, claim)
        return GO if self._slot is not None else self._waiting()

    def _next_slot(self, files: QueueFiles, queue: Queue) -> int | None:
        """The slot to take. Where GPUs are given and nobody set the slots, they alone say how many run at once."""
        if self._wanted is not None and not queue.by_hand:
            return next(queues.free_slots(files, queues.MOST_SLOTS), None)
        free = list(queues.free_slots(files, queue.slots))
        if not free:
            return None
        contenders = {name for name in queue.order if name != self._run.run and self._contends(name)}
        return free[0] if may_claim(self._run.run, queue.order, contenders, len(free)) else None

    def _take_gpus(self, files: QueueFiles, queue: Queue, status: Status) -> bool:
        """Hold as many as this run takes, leaving those that whoever waits before us will get."""
        if self._wanted is None:
            return True
        most = gpus.shares(self._wanted, queue.slots if queue.by_hand else None)
        used = gpus.loads(files, self._wanted.devices, most)
        for ahead in self._ahead(queue):
            if all(used[name] >= most for name in self._wanted.devices):
                return False
            used = {**gpus.loads(files, ahead.devices, most), **used}
            gpus.choose(used, ahead, most)
        chosen = gpus.choose(used, self._wanted, most, self._had(status.attempt))
        held = gpus.hold(files, chosen, most) if len(chosen) == self._wanted.takes else None
        self._held, self.gpus = held or [], chosen if held else []
        return held is not None

    def _ahead(self, queue: Queue) -> Iterator[GpuRule]:
        """What those who wait for a slot before us will take of the GPUs."""
        for name in queue.order[: queue.order.index(self._run.run)] if self._run.run in queue.order else ():
            spec = dependencies.read_spec(RunDir(self._run.path.parent / name)) if self._contends(name) else None
            if spec is not None and spec.gpus is not None:
                yield spec.gpus

    def _had(self, attempt: int) -> list[str]:
        """The GPUs of the last attempt: caches and logs speak of them."""
        try:
            last = records.read(LaunchRecord, self._run.attempt(attempt).launch)
        except (OSError, UnreadableRecord):
            return []
        return list(last.gpus) if last else []

    def _contends(self, run: str) -> bool:
        other = RunDir(self._run.path.parent / run)
        try:
            status = records.read(Status, other.status)
        except (OSError, UnreadableRecord):
            return False
        waits = status is not None and status.phase == "queued" and status.waiting_for == "slot"
        return waits and liveness.is_held(other.supervisor_lock)

    def _edit(self, files: QueueFiles, change: Callable[[Queue], Queue]) -> Queue | None:
        """None: the file cannot be read or written.

        Raises:
            QueueBusy: somebody else edits it right now, which says nothing about it.
        """
        try:
            return queues.edit(files, change)
        except QueueBusy:
            raise
        except (OSError, UnreadableRecord):
            return None
