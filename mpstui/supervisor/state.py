"""The state of one supervised run, and the only moves that change it.

::

    idle ──schedule──> upcoming ──begin──> attempt ──begin_stop──> stop sequence ──end_attempt──> idle or upcoming
                          │                   └──its trainer ends──> draining ──end_attempt──> idle or upcoming
                          └──call_off──> idle

==============  ==============================================  ======================================================
state           phase on record                                 who moves on, and to what
==============  ==============================================  ======================================================
idle            ``ended``                                       a restart request (``loop``) schedules an attempt
upcoming        ``queued``, ``backing_off``, ``starting``       ``starting.start_when_due``: once it is due and slot,
                                                                memory and disk allow it, the attempt begins. A stop
                                                                calls it off, SIGTERM only ends the supervisor
attempt         ``running``                                     a stop, kill or restart begins the stop sequence; when
                                                                the trainer ends unasked, ``ending.watch`` records it,
                                                                applies the restart rule and drains
stop sequence   ``stopping``, ``stop_failed``                   ``ending.watch`` advances it until nothing lives; then
                                                                ``loop`` answers the requests and starts what they ask
draining        ``ended``, ``backing_off``                      ``ending.watch``: the children had ten seconds to leave;
                                                                those that stay are survivors
==============  ==============================================  ======================================================

A new supervisor may find a run in any of these states (``starting.arrive``), which ``witnesses`` tells. Nothing is
decided twice: one tick of ``loop`` takes requests, watches the attempt, answers, and starts what is due, in this order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..wire import storage
from ..wire.liveness import ProcessIdentity
from ..wire.records import ExitRecord, LaunchRecord, Rehearsal, Request, Spec, Status
from ..wire.rundir import RunDir
from ..wire.storage import UnreadableRecord
from . import conclusion, witnesses
from .alerts import Alerts
from .attempt import Attempt, Ending
from .checkpoints import SavingWatch
from .command import CannotCompose, Plan, prepare, require_there, template_of
from .family import Family
from .journal import Inbox, Journal
from .machine import Machine
from .memory import MemoryWatch
from .queue import QueueSlot

if TYPE_CHECKING:
    from .job import Job

NO_REQUEST: Mapping[str, None] = MappingProxyType({"request": None, "action": None, "asker": None})
"""Fields of the status if no request is being carried out."""
NO_FILE = "sigterm-"
"""Prefix of the ids of requests that have no file, and so get no answer file."""


def left_alone(strangers: Iterable[ProcessIdentity]) -> str:
    """Return a sentence about recorded processes that get no signal; empty if there are none."""
    pids = ", ".join(f"pid {member.pid}" for member in strangers)
    return pids and f"left alone: {pids}, tied to this run only by pid and start time"


def _rehearsal(options: Any) -> Rehearsal | None:
    try:
        return storage.from_json(Rehearsal, options) if isinstance(options, Mapping) else None
    except UnreadableRecord:
        return None


class Upcoming(NamedTuple):
    """An attempt to be started, and the monotonic time from which it may start."""

    plan: Plan
    due: float


class Supervision:
    """The state of one supervised run: at any time it has an attempt, or an upcoming one, or neither."""

    def __init__(self, run: RunDir, spec: Spec, status: Status | None, machine: Machine) -> None:
        base = status or Status(run.run, "starting", 0, machine.clock.wall(), boot_id=machine.boot_id)
        self.run = run
        self.spec = spec
        self.machine = machine
        self.found = status
        """The status that the previous supervisor left."""
        self.job: Job | None = None
        """The scheduler's job of which this supervisor is the first process."""
        self.journal = Journal(run, base, machine.clock)
        self.inbox = Inbox(run, machine.clock)
        self.queue_slot = QueueSlot(run, spec.queue, machine, spec.gpus)
        self.memory = MemoryWatch(machine.clock)
        self.alerts = Alerts(run, spec.alerts)
        self.attempt: Attempt | None = None
        self.upcoming: Upcoming | None = None
        self.accepted: list[Request] = []
        """Stop, kill and restart requests that the stop sequence carries out; answered when it is over."""
        self.saving: SavingWatch | None = None
        self.drained_by: float | None = None
        self.launched: LaunchRecord | None = None
        """What the attempt was started with, if that is on record."""
        self.first_step: int | None = None
        """In a rehearsal, the step from which its own steps are counted."""

    @property
    def starts_here(self) -> bool:
        """True if this supervisor may begin attempts: those of a job begin inside it; elsewhere they can only be called
        off."""
        return self.spec.engine is None or self.job is not None

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.machine.clock.monotonic()

    def trainer_lives(self) -> bool:
        """True if there is a trainer whose end has not been seen yet."""
        return self.attempt is not None and self.attempt.ending is None

    def schedule(self, plan: Plan, *, phase: str, delay_seconds: float = 0.0, **status: Any) -> None:
        """Schedule an attempt, for now or later, in place of any scheduled before."""
        self.upcoming = Upcoming(plan, self.now + delay_seconds)
        self.memory.wait_anew()
        due = self.machine.clock.wall() + delay_seconds if delay_seconds or plan.automatic else None
        self.journal.update(phase=phase, next_start=due, **{**self.own_mark(), **status})

    def call_off(self, message: str, **status: Any) -> None:
        """Give up the upcoming attempt."""
        self.upcoming = None
        self.queue_slot.leave()
        ended = {**NO_REQUEST, "phase": "ended", "next_start": None, "waiting_for": None, "message": message}
        self.journal.update(**{**ended, **status})

    def forget_upcoming(self) -> None:
        """Leave the upcoming attempt to others; it stays on record."""
        self.upcoming = None

    def begin(self, attempt: Attempt) -> None:
        """Take charge of an attempt that has just started, or was found alive."""
        self.attempt, self.upcoming, self.drained_by, self.saving = attempt, None, None, None
        self.launched = storage.read_or_none(LaunchRecord, self.run.attempt(attempt.number).launch)
        self.first_step = None
        if self.job is not None and self.job.rule.signal:
            attempt.everywhere = self.job.signal_once()

    def find_remains(self) -> str:
        """Make the living processes of an ended attempt the attempt again, if they are proved to belong to the run.

        Returns:
            What to say about processes that only the record ties to this run; empty if there are none.
        """
        status = self.journal.status
        known, strangers = witnesses.recorded_family(self.run, status, self.machine.boot_id, self.machine.table)
        found = Attempt(self.run, max(status.attempt, 1), Family(None, known.others), self.machine)
        found.ending = Ending()
        found.refresh(thorough=True)
        if found.family.others or found.lock_is_held():
            self.attempt = found
        return left_alone(strangers)

    def accept(self, request: Request) -> None:
        """Have the stop sequence carry out a request.

        Checkpoints are watched even before the trainer is asked, so as not to miss one that it begins at once.
        """
        self.accepted.append(request)
        if self.saving is None and self.attempt is not None:
            template = template_of(self.spec, self.journal.status)
            self.saving = SavingWatch(self.run, self.spec, template, self.attempt.number, self.machine.clock)

    def take_accepted(self) -> list[Request]:
        """Hand over, to be answered, the requests that the stop sequence has carried out or given up on."""
        taken, self.accepted = self.accepted, []
        return taken

    def drain(self, seconds: float) -> None:
        """Give the children of the ended trainer this long to leave."""
        self.drained_by = self.now + seconds

    def end_attempt(self, **status: Any) -> None:
        """Let go of the current attempt."""
        self.attempt = None
        if status:
            self.journal.update(**status)

    def own_mark(self) -> dict[str, Any]:
        """Return this supervisor's identity as fields of the status."""
        me = self.machine.table.find(os.getpid())
        mark = {"supervisor": me.identity if me else None, "boot_id": self.machine.boot_id}
        return {**mark, "job": self.job.start} if self.job is not None else mark

    def leading_request(self) -> Request | None:
        """Return the request that ends the attempt: the newest kill, else the newest of the others."""
        kills = [request for request in self.accepted if request.action == "kill"]
        found = kills or self.accepted
        return found[-1] if found else None

    def requested_plan(self, request: Request) -> Plan:
        """Return the attempt that a restart request asks for; dependencies still apply if the run has never run."""
        options = request.options
        template, device = options.get("launch"), options.get("device")
        never_ran = not self.run.attempt(self.journal.status.attempt).launch.exists()
        waits = self.upcoming.plan.number if never_ran and self.upcoming else None
        return Plan(
            number=waits or max([self.journal.status.attempt, *self.run.attempt_numbers()]) + 1,
            reason=f"restarted by {request.by}",
            by=request.by,
            device=device if isinstance(device, str) and device else None,
            source=str(options.get("from") or "latest"),
            template=template if isinstance(template, Mapping) else None,
            request=request,
            queued=never_ran,
            rehearsal=_rehearsal(options.get("rehearsal")),
        )

    def automatic_plan(self, number: int, reason: str) -> Plan:
        """Return the attempt that the restart rule demands."""
        device = self.spec.restart.device
        return Plan(number, reason, by="restart rule", device=device, source="latest", automatic=True)

    def why_not(self, plan: Plan) -> str | None:
        """Return why an attempt could not start, checked before anything is ended for it; None if it could."""
        try:
            command, _ = prepare(self.run, self.spec, self.journal.status, plan, self.machine)
            if plan.request and self.attempt:
                require_there(command)
        except CannotCompose as error:
            return str(error)
        return None

    def end_unbegun(self, plan: Plan, **record: Any) -> None:
        """Record the end of an attempt that never began."""
        self.journal.update(attempt=plan.number)
        self.journal.exit(ExitRecord(plan.number, self.machine.clock.wall(), **record))

    def has_ended(self, number: int) -> bool:
        """True if attempt ``number`` has its exit record."""
        return witnesses.read_exit(self.run, number) is not None

    def conclusion(
        self, attempt: int, ending: Ending, asked: Request | None, survivors: tuple[ProcessIdentity, ...], **notes: str
    ) -> ExitRecord:
        """Build the exit record of an attempt."""
        return conclusion.conclude(
            self.run,
            self.spec,
            attempt,
            ending,
            now=self.machine.clock.wall(),
            started=self.journal.status.started,
            asked=asked,
            survivors=[member.pid for member in survivors],
            evidence=notes,
        )
