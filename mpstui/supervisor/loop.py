"""The supervisor's loop, and what each request does. One tick checks everything once and never blocks for long.

Ending beats starting: if a kill and a restart arrive together, the kill wins, and the restart's answer says so.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping

from ..wire.jobs import REQUEUE, WARNING
from ..wire.records import ENDS, TRAINER_ACTIONS, Request, Spec, Status
from ..wire.rundir import RunDir
from . import ending, job, starting
from .alerts import STOPPED_BY_ANOTHER, StallWatch
from .attempt import Attempt, Child
from .command import Plan, last_real_attempt
from .disk_space import DiskWatch, LogLimit, watch_disk_space
from .journal import complain_of, told_of_requests
from .machine import Machine
from .stacks import StackDumps
from .state import NO_FILE, Supervision

TICK_SECONDS, QUIET_TICK_SECONDS = 0.2, 1.0
"""Seconds between ticks; the longer time if nothing is about to happen and new requests wake the loop."""
ENDED = "this run has ended"
NOT_STARTED = "this run has not started yet"


class Supervisor:
    """Supervises one run until nothing of it is alive, due, or still unwritten."""

    def __init__(self, run: RunDir, spec: Spec, status: Status | None, machine: Machine) -> None:
        self.state = Supervision(run, spec, status, machine)
        self._log_limit = LogLimit(run, spec, machine.clock)
        self._disk = DiskWatch(run.path, machine.clock)
        self._stall = StallWatch(run, spec, machine.clock)
        self._stacks = StackDumps(self.state)
        self._term = self._warned = False
        self._last_failure = ""

    def run(
        self,
        ready: Callable[[], None],
        wait: Callable[[float], None],
        moved: Callable[[], object] = lambda: None,
        child: Child | None = None,
    ) -> None:
        """Take the run over, call ``ready``, and tick until there is nothing left to do here.

        Args:
            wait: sleeps for this many seconds, or until a signal arrives.
            moved: returns something true if the run's directory has been moved.
            child: the trainer, if this process is already its parent.
        """
        signal.signal(signal.SIGTERM, self._on_term)
        if self.state.machine.in_job:
            signal.signal(WARNING, self._on_warning)
            self.state.job = job.job_here(self.state.spec.engine)
        starting.arrive(self.state)
        found = self.state.attempt
        if child and found and found.family.leader and found.family.leader.pid == child.pid:
            found.child = child
        if self.state.upcoming is not None:
            self.state.queue_slot.take_place()  # before any run that is started after this one
        ready()
        self._tick_safely()
        with told_of_requests(self.state.run.requests) as told:
            while self.has_work() and not moved():
                wait(QUIET_TICK_SECONDS if told and self._is_quiet() else TICK_SECONDS)
                self._tick_safely()
        self.state.queue_slot.close()

    def tick(self) -> None:
        """Requests first, then the attempt, then answers, then starts that are due."""
        supervision = self.state
        supervision.journal.retry()
        self._heed_signals()
        for request in supervision.inbox.poll(trainer_lives=supervision.trainer_lives()):
            self._handle(request)
        if supervision.attempt is not None:
            self._log_limit.keep(supervision.journal, supervision.attempt.number)
            watch_disk_space(supervision, supervision.attempt, self._disk)
            self._check_for_stall(supervision.attempt)
            ending.watch(supervision, supervision.attempt, self._heed_signals)
        self._answer()
        supervision.alerts.reap()
        if supervision.attempt is None and supervision.run.path.is_dir():
            starting.start_when_due(supervision)
        self._stacks.poll()

    def has_work(self) -> bool:
        """True if something is alive, due, or not written yet; for a deleted run, if its trainer is alive."""
        supervision = self.state
        if not supervision.run.path.is_dir():
            return supervision.trainer_lives()
        due = supervision.upcoming is not None and supervision.starts_here
        busy = supervision.attempt is not None or due or supervision.journal.pending
        return busy or self._stacks.busy or supervision.inbox.waiting()

    def _is_quiet(self) -> bool:
        """True if our own trainer simply runs, or the run waits in its queue: polling more often would find nothing.

        When a child ends, that wakes the loop, as every signal does.
        """
        supervision, attempt = self.state, self.state.attempt
        if supervision.accepted or supervision.journal.pending or supervision.inbox.is_behind or self._stacks.busy:
            return False
        if attempt is None:
            upcoming, status = supervision.upcoming, supervision.journal.status
            waits = status.phase == "queued" and status.waiting_for is not None
            return waits or (upcoming is not None and upcoming.due - supervision.now > QUIET_TICK_SECONDS)
        rehearses = supervision.launched is not None and supervision.launched.rehearsal is not None
        return attempt.is_settled and supervision.upcoming is None and not rehearses

    def _handle(self, request: Request) -> None:
        """Handle one request. The inbox hands out each only once, so a bug of ours must not lose the others."""
        if not self.state.starts_here and request.action not in ENDS:
            return  # left to whoever supervises the run in its job
        try:
            earlier = 0 < request.attempt < self.state.journal.status.attempt
            if request.action == "dump_stacks" and self.state.trainer_lives() and not earlier:
                note_request(self.state, request)
                self._stacks.ask(request)
            else:
                handle(self.state, request)
        except Exception as error:  # noqa: BLE001  see above
            complain_of(error)
            text = f"it could not be carried out ({type(error).__name__}: {error}); see supervisor.log"
            self.state.journal.answer(request, ok=False, text=text)

    def _check_for_stall(self, attempt: Attempt) -> None:
        if attempt.paused or attempt.stop_sequence is not None or attempt.ending is not None:
            self._stall.forget()
            return
        text = self._stall.poll(attempt.number, self.state.journal.status.started)
        if text:
            text = STOPPED_BY_ANOTHER if attempt.is_stopped() else text
            self.state.journal.event("note", text)
            self.state.alerts.tell("stall", attempt.number, text)

    def _heed_signals(self) -> None:
        supervision = self.state
        if self._warned:
            self._warned = False
            job.warn(supervision, limit=True)
        if self._term:
            self._term = False
            if supervision.job is None or not job.warn(supervision, limit=False):
                stop_from_outside(supervision)

    def _answer(self) -> None:
        supervision = self.state
        if supervision.accepted and supervision.attempt is None:
            answer_accepted(supervision)
        elif supervision.accepted and supervision.journal.status.phase == "stop_failed":
            for request in supervision.take_accepted():
                text = supervision.journal.status.message or "it could not be stopped"
                _reply(supervision, request, ok=False, text=text)

    def _tick_safely(self) -> None:
        """Tick, and survive a bug of ours, reporting it once: a supervisor that died of it would lose the exit code."""
        try:
            self.tick()
        except Exception as error:  # noqa: BLE001  see above
            if repr(error) != self._last_failure:
                complain_of(error)
            self._last_failure = repr(error)

    def _on_term(self, number: int, frame: object) -> None:
        self._term = True

    def _on_warning(self, number: int, frame: object) -> None:
        self._warned = True


def note_request(supervision: Supervision, request: Request) -> None:
    """Put a request on record before it is carried out."""
    text, details = f"{request.action} by {request.by}", {"action": request.action, "by": request.by}
    supervision.journal.event("request", text, attempt=request.attempt, request=request.id, **details)


def handle(supervision: Supervision, request: Request) -> None:
    """Carry out one request, or refuse it with the reason."""
    note_request(supervision, request)
    current = supervision.journal.status.attempt
    action = _ACTIONS.get(request.action)
    if 0 < request.attempt < current and (supervision.trainer_lives() or supervision.upcoming):
        text = f"attempt {request.attempt} has ended; the run is at attempt {current} now"
        _reply(supervision, request, ok=False, text=text)
    elif action is not None:
        action(supervision, request)
    elif request.action in {*TRAINER_ACTIONS, "dump_stacks"}:
        _reply(supervision, request, ok=False, text=_why_nothing_runs(supervision))
    else:
        _reply(supervision, request, ok=False, text=f"unknown action {request.action!r}")


def stop_from_outside(supervision: Supervision) -> None:
    """Treat SIGTERM to the supervisor as a stop request from its sender (usually a service manager at shutdown).

    A second one is a kill. Commands send the signal if no request can be written.

    A waiting run is not cancelled, otherwise a reboot would clear every queue: the supervisor leaves, and the next one
    finds the run still waiting.
    """
    if supervision.attempt is None and supervision.journal.status.phase in ("queued", "backing_off"):
        supervision.journal.event("note", "the supervisor was ended by SIGTERM; the run keeps waiting")
        supervision.forget_upcoming()
        return
    now, attempt = supervision.machine.clock.wall(), supervision.journal.status.attempt
    again = any(request.id.startswith(NO_FILE) for request in supervision.accepted)
    action = "kill" if again else "stop"
    supervision.journal.event("request", f"{action} by SIGTERM to the supervisor")
    request = Request(f"{NO_FILE}{int(now * 1000)}", action, attempt, "SIGTERM to the supervisor", now)
    _end(supervision, request)


def answer_accepted(supervision: Supervision) -> None:
    """Answer the requests of a stop sequence that is over, and start what one of them asked for."""
    accepted = supervision.take_accepted()
    if accepted and all(request.action == REQUEUE for request in accepted):
        job.hand_back(supervision, limit=any(request.options.get("limit") for request in accepted))
        return
    ends = [request for request in accepted if request.action not in ("restart", REQUEUE)]
    restarts = [request for request in accepted if request.action == "restart"]
    for request in ends:
        text = f"Attempt {supervision.journal.status.attempt} has ended. None of its processes is left."
        _reply(supervision, request, ok=True, text=text)
    for request in restarts if ends else restarts[1:]:
        first = ends[-1] if ends else restarts[0]
        _reply(supervision, request, ok=False, text=f"not restarted: {first.by} asked to {first.action} it")
    if restarts and not ends:
        _start_over(supervision, restarts[0])


def _end(supervision: Supervision, request: Request) -> None:
    """End what is alive and cancel what was about to start; if the run has ended, end what outlived it."""
    cancelled = None
    if supervision.upcoming is not None and not supervision.trainer_lives():
        cancelled = supervision.upcoming.plan
        _cancel(supervision, cancelled, request)
    left = supervision.find_remains() if supervision.attempt is None else ""
    if supervision.attempt is not None:
        ending.begin_stop(supervision, request)
    else:
        text = f"cancelled: attempt {cancelled.number} will not start" if cancelled else ENDED
        text += f"; {left}" if left else ""
        _reply(supervision, request, ok=True, text=text)


def _cancel(supervision: Supervision, plan: Plan, request: Request) -> None:
    if plan.request:
        text = f"not started: {request.by} asked to {request.action} it"
        _reply(supervision, plan.request, ok=False, text=text)
    if plan.queued:
        supervision.end_unbegun(plan, requested_by=request.by, action=request.action)
    # Without this, only the scheduler would know why: somebody cancelled the job.
    of_job = supervision.spec.engine is not None
    asked = {"action": request.action, "asker": request.by} if of_job else {}
    supervision.call_off(f"{request.action} by {request.by}", **asked)


def _pause(supervision: Supervision, request: Request) -> None:
    attempt = supervision.attempt
    if attempt is None or not supervision.trainer_lives():
        _reply(supervision, request, ok=False, text=_why_nothing_runs(supervision))
    elif attempt.stop_sequence is not None:
        _reply(supervision, request, ok=False, text="it is already stopping")
    else:
        attempt.pause()
        supervision.journal.update(paused=True, held_for=None)
        _reply(supervision, request, ok=True, text="Paused. It keeps its memory.")


def _continue(supervision: Supervision, request: Request) -> None:
    if supervision.attempt is None or not supervision.trainer_lives():
        _reply(supervision, request, ok=False, text=_why_nothing_runs(supervision))
        return
    supervision.attempt.resume()
    supervision.journal.update(paused=False, held_for=None, message=None)
    _reply(supervision, request, ok=True, text="Resumed.")


def _restart(supervision: Supervision, request: Request) -> None:
    refusal = _refusal(supervision, request)
    if refusal:
        _reply(supervision, request, ok=False, text=refusal)
        return
    earlier = supervision.upcoming.plan.request if supervision.upcoming else None
    if earlier is not None:
        _reply(supervision, earlier, ok=False, text=f"not started: {request.by} asked for a restart after you")
    if supervision.attempt is None:
        supervision.find_remains()
    if supervision.attempt is None:
        _start_over(supervision, request)
    else:
        supervision.forget_upcoming()
        ending.begin_stop(supervision, request)


def _refusal(supervision: Supervision, request: Request) -> str | None:
    """Return why a restart cannot work, checked before anything is stopped for it."""
    current, end = supervision.journal.status.attempt, supervision.inbox.newest_end
    if end is not None and request.id < end.id:
        return f"not restarted: {end.by} asked to {end.action} it"
    if 0 < request.attempt < last_real_attempt(supervision.run, current):
        return f"attempt {request.attempt} was already restarted: attempt {current} came after it"
    return supervision.why_not(supervision.requested_plan(request))


def _start_over(supervision: Supervision, request: Request) -> None:
    phase = "queued" if supervision.queue_slot.needed else "starting"
    supervision.schedule(supervision.requested_plan(request), phase=phase)


def _why_nothing_runs(supervision: Supervision) -> str:
    return NOT_STARTED if supervision.upcoming is not None else ENDED


def _reply(supervision: Supervision, request: Request, *, ok: bool, text: str) -> None:
    if not request.id.startswith(NO_FILE):
        supervision.journal.answer(request, ok=ok, text=text)


_ACTIONS: Mapping[str, Callable[[Supervision, Request], None]] = {
    "stop": _end,
    "kill": _end,
    "pause": _pause,
    "continue": _continue,
    "restart": _restart,
}
