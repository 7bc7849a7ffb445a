"""What one supervisor knows, and the few moves everybody who acts on it shares."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..wire.liveness import ProcessIdentity
from ..wire.records import ExitRecord, Request, Spec, Status
from ..wire.rundir import RunDir
from . import conclusion, takeover
from .alerts import Alerts
from .attempt import Attempt
from .exits import Ending
from .family import Family
from .inbox import Inbox
from .journal import Journal
from .launches import Plan
from .machine import Machine
from .memory import MemoryWatch
from .queue import Turnstile
from .saving import SavingWatch

NO_REQUEST: Mapping[str, None] = MappingProxyType({"request": None, "action": None, "asker": None})
"""What the status says of the request being carried out when there is none."""


class Upcoming(NamedTuple):
    """An attempt that is wanted and the monotonic moment from which it may start."""

    plan: Plan
    due: float


class Supervision:
    """The state of one supervised run. At any time there is an attempt, or one to come, or neither."""

    def __init__(self, run: RunDir, spec: Spec, status: Status | None, machine: Machine) -> None:
        base = status or Status(run.run, "starting", 0, machine.clock.wall(), boot_id=machine.boot_id)
        self.run = run
        self.spec = spec
        self.machine = machine
        self.found = status
        """The status the supervisor before us left."""
        self.journal = Journal(run, base, machine.clock)
        self.inbox = Inbox(run, machine.clock)
        self.turnstile = Turnstile(run, spec.queue, machine, spec.gpus)
        self.attempt: Attempt | None = None
        self.upcoming: Upcoming | None = None
        self.wishes: list[Request] = []
        """Stop, kill and restart requests that the ladder is carrying out; answered when it is over."""
        self.saving: SavingWatch | None = None
        self.drained_by: float | None = None
        self.memory = MemoryWatch(machine.clock)
        self.alerts = Alerts(run, spec.alerts)

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.machine.clock.monotonic()

    def trainer_lives(self) -> bool:
        """Whether the trainer's end was not seen yet."""
        return self.attempt is not None and self.attempt.ending is None

    def own(self) -> dict[str, Any]:
        """This supervisor's mark in the status."""
        me = self.machine.table.find(os.getpid())
        return {"supervisor": tuple(me.identity) if me else None, "boot_id": self.machine.boot_id}

    def schedule(self, plan: Plan, *, phase: str, delay_seconds: float = 0.0, **status: Any) -> None:
        """Want an attempt, now or later; a later word replaces an earlier one."""
        self.upcoming = Upcoming(plan, self.now + delay_seconds)
        self.memory.wait_anew()
        due = self.machine.clock.wall() + delay_seconds if delay_seconds or plan.automatic else None
        self.journal.update(phase=phase, next_start=due, **{**self.own(), **status})

    def call_off(self, message: str) -> None:
        """Give up what was due."""
        self.upcoming = None
        self.turnstile.leave()
        self.journal.update(phase="ended", next_start=None, waiting_for=None, message=message, **NO_REQUEST)

    def end_unbegun(self, plan: Plan, **record: Any) -> None:
        """Put the end of an attempt on record that never began."""
        self.journal.update(attempt=plan.number)
        self.journal.exit(ExitRecord(plan.number, self.machine.clock.wall(), **record))

    def asked_by(self) -> Request | None:
        """The request that ends the attempt: the newest kill, else the newest other."""
        kills = [wish for wish in self.wishes if wish.action == "kill"]
        found = kills or self.wishes
        return found[-1] if found else None

    def remains(self) -> Attempt | None:
        """What is still alive of an attempt that ended, as far as it can be proved."""
        status = self.journal.status
        known = status.tree_identities() if status.boot_id == self.machine.boot_id else []
        found = Attempt(self.run, max(status.attempt, 1), Family(None, tuple(known)), self.machine)
        found.ending = Ending()
        found.look(thorough=True)
        return found if found.family.others or found.lock_is_held() else None

    def next_number(self) -> int:
        """The number of an attempt after all there were."""
        return max([self.journal.status.attempt, *self.run.attempt_numbers()]) + 1

    def has_ended(self, number: int) -> bool:
        """Whether attempt ``number`` has its exit record."""
        return takeover.read_exit(self.run, number) is not None

    def conclusion(
        self, attempt: int, ending: Ending, asked: Request | None, survivors: tuple[ProcessIdentity, ...], **notes: str
    ) -> ExitRecord:
        """The exit record of an attempt."""
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
