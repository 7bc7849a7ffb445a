"""The supervisor itself: arrives, starts or adopts an attempt, watches it, records its end, and starts the next."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..wire.processes import ProcessIdentity
from ..wire.records import ExitRecord, Request, Spec, Status
from ..wire.rundir import RunDir
from . import commands, conclusion, launches, policy, progress, takeover
from .attempt import Attempt
from .exits import Ending
from .family import Family
from .inbox import Inbox
from .journal import Journal
from .ladder import Rung
from .launches import Plan, SpawnFailed
from .machine import Machine
from .saving import SavingWatch
from .spawn import CannotCompose
from .takeover import Duty, Witnesses

TICK_SECONDS = 0.2
SETTLE_SECONDS = 0.3
"""Children that end with their parent need milliseconds; only then is it fair to call the others survivors."""
DRAIN_SECONDS = 10.0
"""DataLoader workers leave 5 s after their parent; what is still there after this long stays."""


class Supervisor:
    """Everything one supervisor knows. One tick looks once at everything and never blocks for long."""

    def __init__(self, run: RunDir, spec: Spec, status: Status | None, machine: Machine) -> None:
        now = machine.clock.wall()
        self.run_dir = run
        self.spec = spec
        self.machine = machine
        self.found = status
        base = status or Status(run.run, "starting", 0, now, boot_id=machine.boot_id)
        self.journal = Journal(run, base, machine.clock)
        self.inbox = Inbox(run, machine.clock)
        self.attempt: Attempt | None = None
        self.started: float | None = None
        self.upcoming: Upcoming | None = None
        self.wishes: list[Request] = []
        """Stop, kill and restart requests that the ladder is carrying out; answered when it is over."""
        self._saving: SavingWatch | None = None
        self._drained_by: float | None = None
        self._term = False

    def run(self, ready: Callable[[], None], wait: Callable[[float], None]) -> None:
        """Supervise until there is nothing left to do."""
        signal.signal(signal.SIGTERM, self._on_term)
        self.arrive()
        ready()
        while True:
            self.tick()
            if not self.has_work():
                return
            wait(TICK_SECONDS)

    def has_work(self) -> bool:
        """Whether something lives, is due, or is written nowhere yet."""
        busy = self.attempt is not None or self.upcoming is not None or self.journal.pending
        return busy or self.inbox.waiting()

    def arrive(self) -> None:
        """Find out what there is to do and begin with it."""
        seen = takeover.look(self.run_dir, self.found, self.machine.table, self.machine.boot_id)
        duty = takeover.decide(seen)
        self.journal.keep_reserve()
        if duty is Duty.BEGIN:
            self.schedule(Plan(seen.attempt, "launched", by=self.spec.by), phase="starting")
        elif duty is Duty.ADOPT:
            self._adopt(seen)
        elif duty is Duty.BACK_OFF:
            self._back_off_again(seen)
        elif duty is Duty.CLOSE:
            self._close_unseen(seen)

    def tick(self) -> None:
        """Look once at everything."""
        self.journal.retry()
        if self._term:
            self._term = False
            commands.stop_from_outside(self)
        for request in self.inbox.poll(trainer_lives=self.trainer_lives()):
            commands.handle(self, request)
        if self.attempt is not None:
            self._watch(self.attempt)
        if self.attempt is None and self.upcoming is not None:
            self._start_when_due(self.upcoming)

    def trainer_lives(self) -> bool:
        """Whether the trainer's end was not seen yet."""
        return self.attempt is not None and self.attempt.ending is None

    def schedule(self, plan: Plan, *, phase: str, delay_seconds: float = 0.0, **status: object) -> None:
        """Want an attempt, now or later; a later word replaces an earlier one."""
        self.upcoming = Upcoming(plan, self.machine.clock.monotonic() + delay_seconds)
        due = self.machine.clock.wall() + delay_seconds if delay_seconds else None
        self.journal.update(phase=phase, next_start=due, **{**self._own(), **status})

    def cancel_upcoming(self, message: str) -> None:
        """Give up what was due."""
        self.upcoming = None
        self.journal.update(phase="ended", next_start=None, waiting_for=None, message=message)

    def give_up(self, plan: Plan, request: Request) -> None:
        """Somebody does not want what was due. An attempt that never began gets its end on record."""
        if plan.number == 1 or takeover.read_exit(self.run_dir, plan.number - 1) is None:
            now = self.machine.clock.wall()
            self.journal.exit(ExitRecord(plan.number, now, requested_by=request.by, action=request.action))
        self.cancel_upcoming(f"{request.action} by {request.by}")

    def asked_by(self) -> Request | None:
        """The request that ends the attempt: the newest kill, else the newest other."""
        kills = [wish for wish in self.wishes if wish.action == "kill"]
        found = kills or self.wishes
        return found[-1] if found else None

    def remains(self) -> Attempt | None:
        """What is still alive of an attempt that ended, as far as it can be proved."""
        status = self.journal.status
        known = status.tree_identities() if status.boot_id == self.machine.boot_id else []
        found = Attempt(self.run_dir, max(status.attempt, 1), Family(None, tuple(known)), self.machine)
        found.ending = Ending()
        found.look(thorough=True)
        return found if found.family.others or found.lock_is_held() else None

    # -- arriving --------------------------------------------------------------------------------------------------

    def _own(self) -> dict[str, object]:
        me = self.machine.table.find(os.getpid())
        return {"supervisor": [me.pid, me.start] if me else None, "boot_id": self.machine.boot_id}

    def _adopt(self, seen: Witnesses) -> None:
        status = self.journal.status
        same_boot = status.boot_id == self.machine.boot_id
        leader = status.trainer_identity() if same_boot and status.attempt == seen.attempt else None
        known = tuple(status.tree_identities()) if same_boot else ()
        self.attempt = Attempt(
            self.run_dir, seen.attempt, Family(leader, known), self.machine, paused=status.paused and leader is not None
        )
        self.attempt.look(thorough=True)
        self.started = status.started
        self.journal.update(phase="running", attempt=seen.attempt, adopted=True, message=None, **self._own())
        self.journal.event("note", "adopted: the supervisor before this one is gone, the trainer lives")
        commands.finish_interrupted(self)

    def _back_off_again(self, seen: Witnesses) -> None:
        status = self.journal.status
        longest = max(self.spec.restart.delays_seconds or [0.0])
        left = min(max((status.next_start or 0.0) - self.machine.clock.wall(), 0.0), longest)
        plan = Plan(seen.attempt + 1, status.message or "restarted", source="latest", automatic=True)
        self.schedule(replace(plan, device=self.spec.restart.device), phase="backing_off", delay_seconds=left)

    def _close_unseen(self, seen: Witnesses) -> None:
        asked = commands.interrupted_request(self)
        record = self._conclusion(seen.attempt, Ending(), asked, ())
        self.journal.exit(record)
        self.journal.event("exit", "ended as asked, while no supervisor lived", attempt=seen.attempt)
        self.journal.update(phase="ended", request=None, action=None)

    def _on_term(self, number: int, frame: object) -> None:
        self._term = True

    # -- starting --------------------------------------------------------------------------------------------------

    def _start_when_due(self, upcoming: Upcoming) -> None:
        if self.machine.clock.monotonic() < upcoming.due:
            return
        self.upcoming = None
        self.start(upcoming.plan)

    def start(self, plan: Plan) -> None:
        """Start an attempt now and answer whoever wished for it."""
        status = self.journal.status
        try:
            command, note = launches.prepare(self.run_dir, self.spec, status, plan, self.machine)
        except CannotCompose as error:
            self._could_not_start(plan, str(error))
            return
        template = dict(plan.template) if plan.template else status.template
        self.started = self.machine.clock.wall()
        fresh: dict[str, Any] = {
            "attempt": plan.number,
            "trainer": None,
            "tree": [],
            "survivors": [],
            "paused": False,
            "adopted": False,
        }
        calm = {"request": None, "action": None, "next_start": None, "waiting_for": None, "message": None}
        self.journal.update(phase="starting", template=template, started=self.started, **fresh, **calm, **self._own())
        begun = launches.launch(self.run_dir, self.spec, plan, command, self.journal, self.machine)
        if isinstance(begun, SpawnFailed):
            self._could_not_start(plan, begun.text)
            return
        self.attempt, self._drained_by, self._saving = begun, None, None
        leader = begun.family.leader
        self.journal.update(phase="running", trainer=list(leader) if leader else None)
        text = f"attempt {plan.number} started on {command.device}: {note or plan.reason}"
        kind = "launched" if plan.number == 1 else "restart"
        self.journal.event(kind, text, pid=begun.child.pid if begun.child else None, checkpoint=command.checkpoint)
        if plan.request:
            start = f"from {command.checkpoint}" if command.checkpoint else note or "from scratch"
            self.journal.answer(
                plan.request, ok=True, text=f"attempt {plan.number} started on {command.device}, {start}"
            )

    def _could_not_start(self, plan: Plan, text: str) -> None:
        now = self.machine.clock.wall()
        self.journal.exit(ExitRecord(plan.number, now, spawn_error=text, started=now))
        self.journal.update(phase="ended", attempt=plan.number, trainer=None, message=text, next_start=None)
        self.journal.event("crash", f"could not be started: {text}", attempt=plan.number)
        if plan.request:
            self.journal.answer(plan.request, ok=False, text=f"could not be started: {text}")

    # -- watching --------------------------------------------------------------------------------------------------

    def _watch(self, attempt: Attempt) -> None:
        if attempt.ending is None and not attempt.leader_is_alive():
            self._end(attempt)
        rung = attempt.climb(self._is_saving)
        if rung is Rung.GONE:
            self._settled(attempt)
        elif rung is Rung.STUCK:
            self._stuck(attempt)
        elif attempt.ladder is None and attempt.ending is not None:
            self._drain(attempt)
        elif attempt.ending is None and attempt.look_when_due():
            self._record_tree(attempt)

    def _end(self, attempt: Attempt) -> None:
        """The trainer is gone: let its children follow, reap it last, and write down how it ended before all else."""
        deadline = self.machine.clock.monotonic() + SETTLE_SECONDS
        while attempt.look().others and self.machine.clock.monotonic() < deadline:
            self.machine.clock.sleep(0.02)
        survivors = attempt.look(thorough=True).others
        asked = self.asked_by() if attempt.ladder else None
        record = self._conclusion(attempt.number, attempt.collect(), asked, survivors)
        self.journal.exit(record)
        self.journal.event("exit" if record.code == 0 or asked else "crash", conclusion.sentence(record))
        self._drained_by = self.machine.clock.monotonic() + DRAIN_SECONDS
        self._record_tree(attempt)
        if attempt.ladder is None:
            self._after(record)

    def _conclusion(
        self, attempt: int, ending: Ending, asked: Request | None, survivors: tuple[ProcessIdentity, ...]
    ) -> ExitRecord:
        return conclusion.conclude(
            self.run_dir,
            self.spec,
            attempt,
            ending,
            now=self.machine.clock.wall(),
            started=self.started or self.journal.status.started,
            asked=asked,
            survivors=[member.pid for member in survivors],
            evidence={},
        )

    def _after(self, record: ExitRecord) -> None:
        """Apply the restart rule to an end that nobody asked for."""
        status, now = self.journal.status, self.machine.clock.wall()
        step = progress.newest_step(self.run_dir, self.spec, record.attempt, record.started)
        saved = launches.saved_since(self.run_dir, self.spec, status, record.started)
        decision = policy.decide(self.spec.restart, policy.Crash(record, step, saved), status.restarts, now)
        if decision is None or not decision.again:
            self.journal.update(phase="ended", message=decision.reason if decision else None)
            if decision:
                self.journal.event("note", decision.reason)
            return
        entry = {"time": now, "attempt": record.attempt, "cause": record.cause, "step": step}
        plan = Plan(record.attempt + 1, decision.reason, by="restart rule", source="latest", automatic=True)
        self.schedule(
            replace(plan, device=self.spec.restart.device),
            phase="backing_off",
            delay_seconds=decision.delay_seconds,
            restarts=[*status.restarts, entry],
            message=decision.reason,
        )
        self.journal.event("restart", decision.reason, delay_seconds=decision.delay_seconds)

    def _drain(self, attempt: Attempt) -> None:
        """After an end nobody asked for: give the others time to leave, then say who stayed. They are not touched."""
        gone = not attempt.look().others and not attempt.lock_is_held()
        if not gone and self.machine.clock.monotonic() < (self._drained_by or 0.0):
            return
        left = [] if gone else [member.pid for member in attempt.look(thorough=True).others]
        self._record_tree(attempt, survivors=left)
        if left:
            self.journal.event("note", f"processes outlived the trainer: {_listed(left)}", survivors=left)
        self.attempt = None
        if not gone and self.upcoming and self.upcoming.plan.automatic:
            self.cancel_upcoming("not restarted: processes of the last attempt are still there")

    def _settled(self, attempt: Attempt) -> None:
        """The ladder is done and nothing is left."""
        self.attempt = None
        self.journal.update(
            phase="ended", trainer=None, tree=[], survivors=[], paused=False, request=None, action=None, message=None
        )
        commands.answer_wishes(self, attempt)

    def _stuck(self, attempt: Attempt) -> None:
        left = [member.pid for member in attempt.family.others]
        if attempt.ending is None and attempt.family.leader:
            left.insert(0, attempt.family.leader.pid)
        text = f"SIGKILL did not end {_listed(left)}" if left else "something that cannot be seen still holds run.lock"
        self.journal.update(phase="stop_failed", survivors=left, message=text)
        self.journal.event("note", text, survivors=left)
        commands.refuse_wishes(self, text)

    def _record_tree(self, attempt: Attempt, **status: object) -> None:
        tree = [list(member) for member in attempt.family.others]
        if tree != self.journal.status.tree or status:
            self.journal.update(tree=tree, **status)

    def _is_saving(self) -> bool:
        attempt = self.attempt
        if attempt is None:
            return False
        if self._saving is None:
            template = launches.template_of(self.spec, self.journal.status)
            self._saving = SavingWatch(self.run_dir, self.spec, template, attempt.number, self.machine.clock)
        return self._saving()


class Upcoming:
    """A plan and the monotonic moment it is due."""

    def __init__(self, plan: Plan, due: float) -> None:
        self.plan = plan
        self.due = due


def _listed(pids: list[int]) -> str:
    return ", ".join(f"pid {pid}" for pid in pids)
