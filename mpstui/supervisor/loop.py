"""The supervisor's loop: one tick looks once at everything and never blocks for long."""

from __future__ import annotations

import signal
from collections.abc import Callable

from ..wire.records import Request, Spec, Status
from ..wire.rundir import RunDir
from . import arrival, commands, ending, starting
from .alerts import STOPPED_BY_ANOTHER, StallWatch
from .attempt import Attempt
from .chores import Chores
from .journal import complain_of
from .machine import Machine
from .room import DiskWatch, keep_room
from .state import Supervision

TICK_SECONDS = 0.2


class Supervisor:
    """Supervises one run until nothing of it lives, is due, or is only in memory."""

    def __init__(self, run: RunDir, spec: Spec, status: Status | None, machine: Machine) -> None:
        self.state = Supervision(run, spec, status, machine)
        self._chores = Chores(run, spec, machine.clock)
        self._disk = DiskWatch(run.path, machine.clock)
        self._stall = StallWatch(run, spec, machine.clock)
        self._term = False
        self._last_failure = ""

    def run(self, ready: Callable[[], None], wait: Callable[[float], None]) -> None:
        """Arrive, say ``ready``, and look until there is nothing left to do.

        Args:
            wait: sleeps for so many seconds, less when a signal comes.
        """
        signal.signal(signal.SIGTERM, self._on_term)
        arrival.arrive(self.state)
        ready()
        self._tick_safely()
        while self.has_work():
            wait(TICK_SECONDS)
            self._tick_safely()
        self.state.turnstile.close()

    def tick(self) -> None:
        """Look once at everything."""
        boss = self.state
        boss.journal.retry()
        if self._term:
            self._term = False
            commands.stop_from_outside(boss)
        for request in boss.inbox.poll(trainer_lives=boss.trainer_lives()):
            self._handle(request)
        if boss.attempt is not None:
            self._chores.do(boss.journal, boss.attempt.number)
            keep_room(boss, boss.attempt, self._disk)
            self._look_for_stall(boss.attempt)
            ending.watch(boss, boss.attempt)
        self._answer()
        boss.alerts.reap()
        if boss.attempt is None and boss.run.path.is_dir():
            starting.start_when_due(boss)

    def _handle(self, request: Request) -> None:
        """The inbox hands out a request once: a mistake of ours must not lose those that came with it."""
        try:
            commands.handle(self.state, request)
        except Exception as error:  # noqa: BLE001  see above
            complain_of(error)
            text = f"it could not be carried out ({type(error).__name__}: {error}); see supervisor.log"
            self.state.journal.answer(request, ok=False, text=text)

    def _look_for_stall(self, attempt: Attempt) -> None:
        if attempt.paused or attempt.ladder is not None or attempt.ending is not None:
            self._stall.forget()
            return
        text = self._stall.look(attempt.number, self.state.journal.status.started)
        if text:
            text = STOPPED_BY_ANOTHER if attempt.is_stopped() else text
            self.state.journal.event("note", text)
            self.state.alerts.tell("stall", attempt.number, text)

    def _tick_safely(self) -> None:
        """A supervisor that died of its own mistake would take an exit code with it: say it once, and look again."""
        try:
            self.tick()
        except Exception as error:  # noqa: BLE001  see above
            if repr(error) != self._last_failure:
                complain_of(error)
            self._last_failure = repr(error)

    def has_work(self) -> bool:
        """Whether something lives, is due, or is written nowhere yet. Of a deleted run only the living counts."""
        boss = self.state
        if not boss.run.path.is_dir():
            return boss.trainer_lives()
        busy = boss.attempt is not None or boss.upcoming is not None or boss.journal.pending
        return busy or boss.inbox.waiting()

    def _answer(self) -> None:
        boss = self.state
        if boss.wishes and boss.attempt is None:
            commands.answer_wishes(boss)
        elif boss.wishes and boss.journal.status.phase == "stop_failed":
            commands.refuse_wishes(boss, boss.journal.status.message or "it could not be stopped")

    def _on_term(self, number: int, frame: object) -> None:
        self._term = True
