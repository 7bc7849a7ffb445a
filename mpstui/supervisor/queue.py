"""The queue slot of one run: it waits first for its dependencies, then for a slot of its group and its GPUs.

Whoever has a slot or a GPU holds its kernel lock. Pure rules judge a dependency by the other run's witnesses.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from enum import Enum
from typing import NamedTuple

from ..wire import liveness, queues, storage
from ..wire.liveness import ProcessTable
from ..wire.queues import MOST_SLOTS, Queue, QueueBusy, QueueFiles
from ..wire.records import GpuRule, LaunchRecord, QueueRule, Spec, Status
from ..wire.rundir import RunDir
from ..wire.storage import UnreadableRecord
from . import witnesses
from .machine import Machine

POLL_SECONDS = 1.0


def may_claim(run: str, order: Sequence[str], contends: Callable[[str], bool], free: int) -> bool:
    """True if ``run`` is near enough to the front to take one of ``free`` slots.

    Only contenders are ahead of it: runs with a live supervisor that wait for a slot and nothing else. No more runs are
    checked than needed.
    """
    before = order[: order.index(run)] if run in order else order
    return sum(1 for _ in itertools.islice(filter(contends, before), free)) < free


def joined(queue: Queue, run: str, devices: Sequence[str] = ()) -> Queue:
    """Return the queue with ``run`` in it, at the end if it is new, and the devices the last run may choose from."""
    order = queue.order if run in queue.order else [*queue.order, run]
    known = list(devices) if devices and order[-1] == run else queue.devices
    return queue._replace(order=order, devices=known)


def left(queue: Queue, run: str) -> Queue:
    """Return the queue without ``run``."""
    return queue._replace(order=[name for name in queue.order if name != run])


class Admission(NamedTuple):
    """The answer to a run that asks to start."""

    go: bool
    waiting_for: str | None = None
    message: str = ""
    never: bool = False
    """A dependency can no longer be met."""


GO = Admission(True)


class QueueSlot:
    """One run's place in its queue. The slot and the GPUs, once claimed, are kept until the supervisor leaves."""

    def __init__(self, run: RunDir, rule: QueueRule, machine: Machine, wanted: GpuRule | None = None) -> None:
        self.gpus: list[str] = []
        """The devices reserved for this run, named as in ``CUDA_VISIBLE_DEVICES``."""
        self._slot: int | None = None
        self._held: list[int] = []
        self._wanted = wanted if wanted is not None and wanted.devices else None
        self._run = run
        self._rule = rule
        self._machine = machine
        self._files: QueueFiles | None = queues.files_of(run, rule.group) if rule.group else None
        self._known: tuple[tuple[int, int, int], Queue] | None = None
        """The stamp of the group's file when it was last read, and the group."""
        self._poll_at = 0.0
        self._last = Admission(False)

    @property
    def needed(self) -> bool:
        return bool(self._rule.group or self._rule.after)

    @property
    def kept(self) -> tuple[int, ...]:
        """Descriptors of the slot's and the GPUs' locks, which the trainer keeps even if this supervisor dies."""
        return (() if self._slot is None else (self._slot,)) + tuple(self._held)

    def ask(self, *, dependencies_matter: bool, status: Status) -> Admission:
        """Return whether the run may start now; checks at most once a second."""
        now = self._machine.clock.monotonic()
        if now >= self._poll_at:
            self._poll_at = now + POLL_SECONDS
            try:
                self._last = self._poll(dependencies_matter, status)
            except QueueBusy:
                self._poll_at = now  # keep the last answer and try again soon: an edit takes milliseconds
        return self._last

    def take_place(self) -> None:
        """Join the queue at its end; if somebody is editing it just now, at the next poll."""
        if self._files is not None and self._slot is None:
            with contextlib.suppress(QueueBusy):
                self._join(self._files)

    def leave(self) -> None:
        """Leave the queue, but keep a claimed slot."""
        if self._files is not None:
            with contextlib.suppress(QueueBusy):  # no harm: a run that has ended is skipped
                self._edit(self._files, lambda queue: left(queue, self._run.run))

    def close(self) -> None:
        """Release slot and GPUs; a trainer that is still alive keeps them through its own descriptors."""
        release(self._held)
        if self._slot is not None:
            liveness.release(self._slot)
            self._slot = None

    def _poll(self, dependencies_matter: bool, status: Status) -> Admission:
        if self._slot is not None and not dependencies_matter:
            return GO
        queue: Queue | None = None
        if self._files is not None:
            queue = self._join(self._files)
            if queue is None:
                return Admission(False, "group", f"queue group {self._rule.group} cannot be read or written")
            if queue.paused:
                return Admission(False, "group", f"queue group {self._rule.group} is paused")
        found = self._dependencies() if dependencies_matter else GO
        if not found.go or queue is None or self._files is None or self._slot is not None:
            return found
        is_first = queue.order[:1] == [self._run.run]
        if not is_first and status.waiting_for != "slot":
            return self._waiting()  # first let those behind us see that we contend; claim at the next poll
        by_gpus = self._wanted is not None and not queue.by_hand
        taken = not by_gpus and all(liveness.is_held(self._files.slot(number)) for number in range(queue.slots))
        return self._waiting() if taken else self._claim(self._files, status)

    def _join(self, files: QueueFiles) -> Queue | None:
        """Join the queue; while its file is unchanged, the group's lock, which editors may need, is not taken."""
        devices, stamp = self._wanted.devices if self._wanted else (), storage.stamp(files.state)
        if stamp is None or self._known is None or self._known[0] != stamp:
            queue = self._edit(files, lambda queue: joined(queue, self._run.run, devices))
            self._known = (stamp, queue) if stamp is not None and queue is not None else None
            return queue
        return self._known[1]

    def _waiting(self) -> Admission:
        count = self._wanted.takes if self._wanted else 0
        what = {0: "a slot", 1: "a free GPU"}.get(count, f"{count} free GPUs")
        return Admission(False, "slot", f"waits for {what} of queue group {self._rule.group}")

    def _dependencies(self) -> Admission:
        waits: Admission | None = None
        for after in self._rule.after:
            run = after.get("run", "")
            named = bool(run) and "/" not in run and not run.startswith(".")
            other = RunDir(self._run.path.parent / run)
            found = outcome(other, self._machine.table, self._machine.boot_id) if named else Outcome.MISSING
            verdict = judge(after.get("when", "ok"), found)
            if verdict is Verdict.NEVER:
                return Admission(False, "runs", sentence(after, found), never=True)
            if verdict is Verdict.WAIT and waits is None:
                waits = Admission(False, "runs", f"waits for run {run}")
        return waits or GO

    def _claim(self, files: QueueFiles, status: Status) -> Admission:
        """Take what is free unless a run ahead of us could take it now; under the group's lock, so one at a time."""

        def claim(queue: Queue) -> Queue:
            # If runs are given GPUs and nobody set the slots, the GPUs alone decide how many run at once.
            by_gpus = self._wanted is not None and not queue.by_hand
            slots = range(MOST_SLOTS if by_gpus else queue.slots)
            open_slots = (number for number in slots if not liveness.is_held(files.slot(number)))
            free = list(itertools.islice(open_slots, 1 if by_gpus else None))
            near = by_gpus or may_claim(self._run.run, queue.order, self._contends, len(free))
            if not free or not near or not self._take_gpus(files, queue, status):
                return queue
            self._slot = liveness.acquire(files.slot(free[0]), inheritable=True)
            if self._slot is None:
                release(self._held)
                return queue
            return left(queue, self._run.run)

        self._edit(files, claim)
        return GO if self._slot is not None else self._waiting()

    def _take_gpus(self, files: QueueFiles, queue: Queue, status: Status) -> bool:
        """Lock as many GPUs as this run takes, sparing those that the runs waiting ahead of us will get."""
        if self._wanted is None:
            return True
        most = shares(self._wanted, queue.slots if queue.by_hand else None)
        used = loads(files, self._wanted.devices, most)
        order = queue.order[: queue.order.index(self._run.run)] if self._run.run in queue.order else ()
        for name in filter(self._contends, order):
            ahead = storage.read_or_none(Spec, RunDir(self._run.path.parent / name).spec)
            if ahead is None or ahead.gpus is None:
                continue
            if all(used[name] >= most for name in self._wanted.devices):
                return False
            used = {**loads(files, ahead.gpus.devices, most), **used}
            choose(used, ahead.gpus, most)
        last = storage.read_or_none(LaunchRecord, self._run.attempt(status.attempt).launch)
        chosen = choose(used, self._wanted, most, last.gpus if last else ())  # caches and logs refer to the last ones
        held = hold(files, chosen, most) if len(chosen) == self._wanted.takes else None
        self._held, self.gpus = held or [], chosen if held else []
        return held is not None

    def _contends(self, run: str) -> bool:
        other = RunDir(self._run.path.parent / run)
        status = storage.read_or_none(Status, other.status)
        waits = status is not None and status.phase == "queued" and status.waiting_for == "slot"
        return waits and liveness.is_held(other.supervisor_lock)

    def _edit(self, files: QueueFiles, change: Callable[[Queue], Queue]) -> Queue | None:
        """Edit the group; None if the file cannot be read or written.

        Raises:
            QueueBusy: somebody else is editing it; the file may be fine.
        """
        try:
            return queues.edit(files, change)
        except QueueBusy:
            raise
        except (OSError, UnreadableRecord):
            return None


def shares(rule: GpuRule, slots: int | None) -> int:
    """Return how many runs may share one device: one, unless the slots call for more runs than the devices can hold.

    Args:
        slots: as set by a person; None if nobody set them.
    """
    return max(1, -(-(slots or 0) * rule.takes // len(rule.devices)))


def loads(files: QueueFiles, devices: Collection[str], most: int) -> dict[str, int]:
    """Return how many runs, at most ``most``, have each of the devices now."""
    return {name: sum(liveness.is_held(files.device(name, share)) for share in range(most)) for name in devices}


def choose(used: MutableMapping[str, int], rule: GpuRule, most: int, before: Collection[str] = ()) -> list[str]:
    """Return the devices a run would get, in the rule's order, counted as used; with too few, it waits.

    Args:
        used: device -> how many runs have it.
        most: how many runs may share one.
        before: the devices it had last time, preferred among equally used ones.
    """
    free = [name for name in rule.devices if used[name] < most]
    chosen = sorted(free, key=lambda name: (used[name], name not in before))[: rule.takes]
    for name in chosen:
        used[name] += 1
    return sorted(chosen, key=rule.devices.index)


def hold(files: QueueFiles, chosen: Sequence[str], most: int) -> list[int] | None:
    """Take the devices' locks and return their inheritable descriptors; None, holding none, if another was faster."""
    held: list[int] = []
    for name in chosen:
        paths = (files.device(name, share) for share in range(most))
        free = (path for path in paths if not liveness.is_held(path))
        lock = next((taken for path in free if (taken := liveness.acquire(path, inheritable=True)) is not None), None)
        if lock is None:
            release(held)
            return None
        held.append(lock)
    return held


def release(held: list[int]) -> None:
    """Release the locks; a trainer that is still alive keeps them through its own descriptors."""
    while held:
        liveness.release(held.pop())


class Outcome(Enum):
    """The state of another run."""

    PENDING = "pending"
    OK = "ok"
    FAILED = "failed"
    LOST = "lost"
    """It ended, and nobody saw how: neither ok nor failed."""
    MISSING = "missing"


class Verdict(Enum):
    """What another run's outcome means for the waiting run."""

    WAIT = "wait"
    GO = "go"
    NEVER = "never"


def judge(when: str, outcome: Outcome) -> Verdict:
    """Apply one ``after`` rule: ``ok``, ``any`` or ``fail``."""
    if outcome is Outcome.PENDING:
        return Verdict.WAIT
    if outcome is Outcome.MISSING:
        return Verdict.NEVER
    if when == "any":
        return Verdict.GO
    return Verdict.GO if outcome is (Outcome.FAILED if when == "fail" else Outcome.OK) else Verdict.NEVER


def outcome(run: RunDir, table: ProcessTable, boot_id: str) -> Outcome:
    """Return the outcome of another run; one that crashed and will be restarted has none yet."""
    if not run.path.is_dir():
        return Outcome.MISSING
    status = storage.read_or_none(Status, run.status)
    seen = witnesses.gather(run, status, table, boot_id)
    if not seen.ended:
        waits = seen.alive or not seen.begun or liveness.is_held(run.supervisor_lock)
        return Outcome.PENDING if waits else Outcome.LOST
    goes_on = seen.alive or seen.restart_due or liveness.is_held(run.supervisor_lock)
    if status is not None and status.phase != "ended" and goes_on:
        return Outcome.PENDING
    record, spec = witnesses.read_exit(run, seen.attempt), storage.read_or_none(Spec, run.spec)
    if record is None:
        return Outcome.LOST
    beat = witnesses.newest_beat(run, spec, record.attempt, record.started) if spec else None
    # Finished means: exit code 0 without a stop request and, if it wrote heartbeats, in phase `done`.
    done = beat is None or beat.phase in (None, "done")
    if record.unknown and record.requested_by is None:
        return Outcome.OK if beat is not None and beat.phase == "done" else Outcome.LOST
    return Outcome.OK if record.code == 0 and record.requested_by is None and done else Outcome.FAILED


def sentence(after: Mapping[str, str], found: Outcome) -> str:
    """Say why a dependency can no longer be met."""
    run, when = after.get("run", "?"), after.get("when", "ok")
    if found is Outcome.MISSING:
        return f"run {run} does not exist"
    how = {Outcome.OK: "finished", Outcome.LOST: "is lost, nobody saw how it ended"}.get(found, "did not finish")
    return f"run {run} {how}, and this one was to start when it {'fails' if when == 'fail' else 'is done'}"
