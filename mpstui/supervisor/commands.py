"""What each request does. Ends beat starts: a kill that meets a restart wins, and the restart is told so."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping

from ..wire import records
from ..wire.records import Request
from . import ending, launches
from .launches import Plan
from .spawn import CannotCompose
from .state import Supervision

ENDED = "this run has ended"
NOT_STARTED = "it waits to be started"
_NO_FILE = "sigterm-"


def handle(boss: Supervision, request: Request) -> None:
    """Carry out one request, or refuse it with the reason."""
    boss.journal.event("request", f"{request.action} by {request.by}", attempt=request.attempt, request=request.id)
    current = boss.journal.status.attempt
    if 0 < request.attempt < current and (boss.trainer_lives() or boss.upcoming):
        _reply(boss, request, ok=False, text=f"attempt {request.attempt} is over; it is attempt {current} now")
        return
    action = _ACTIONS.get(request.action)
    if action is not None:
        action(boss, request)
    elif request.action in records.TRAINER_ACTIONS:
        _reply(boss, request, ok=False, text=_why_nothing_runs(boss))
    else:
        _reply(boss, request, ok=False, text=f"unknown action {request.action!r}")


def stop_from_outside(boss: Supervision) -> None:
    """SIGTERM to the supervisor is a stop request of whoever sent it (a service manager at shutdown, most often).

    Of a run that waits it is no wish to call it off, else a reboot would clear every queue: the supervisor leaves, and
    the next one finds the run waiting.
    """
    if boss.attempt is None and boss.journal.status.phase in ("queued", "backing_off"):
        boss.journal.event("note", "the supervisor was told to leave by SIGTERM; the run goes on waiting")
        boss.upcoming = None
        return
    now, attempt = boss.machine.clock.wall(), boss.journal.status.attempt
    boss.journal.event("request", "stop by SIGTERM to the supervisor")
    _end(boss, Request(f"{_NO_FILE}{int(now * 1000)}", "stop", attempt, "SIGTERM to the supervisor", now))


def answer_wishes(boss: Supervision) -> None:
    """The ladder is over: answer its requests, and start what was wished for after it."""
    wishes, boss.wishes = boss.wishes, []
    ends = [wish for wish in wishes if wish.action != "restart"]
    restarts = [wish for wish in wishes if wish.action == "restart"]
    for wish in ends:
        _reply(boss, wish, ok=True, text=f"attempt {boss.journal.status.attempt} has ended; all its processes are gone")
    for wish in restarts if ends else restarts[1:]:
        first = ends[-1] if ends else restarts[0]
        _reply(boss, wish, ok=False, text=f"not restarted: {first.by} asked to {first.action} it")
    if restarts and not ends:
        _start_over(boss, restarts[0])


def refuse_wishes(boss: Supervision, text: str) -> None:
    """The ladder could not do it."""
    wishes, boss.wishes = boss.wishes, []
    for wish in wishes:
        _reply(boss, wish, ok=False, text=text)


def _end(boss: Supervision, request: Request) -> None:
    """End what lives, and what was to come; of an ended run, what outlived it."""
    called_off = boss.upcoming.plan if boss.upcoming is not None and not boss.trainer_lives() else None
    if called_off is not None:
        _call_off(boss, called_off, request)
    if boss.attempt is None:
        boss.attempt = boss.remains()
    if boss.attempt is None:
        text = f"called off: attempt {called_off.number} will not start" if called_off else ENDED
        _reply(boss, request, ok=True, text=text)
    else:
        ending.press(boss, request)


def _call_off(boss: Supervision, plan: Plan, request: Request) -> None:
    if plan.request:
        _reply(boss, plan.request, ok=False, text=f"not started: {request.by} asked to {request.action} it")
    if plan.queued:
        boss.end_unbegun(plan, requested_by=request.by, action=request.action)
    boss.call_off(f"{request.action} by {request.by}")


def _pause(boss: Supervision, request: Request) -> None:
    if not boss.trainer_lives() or boss.attempt is None:
        _reply(boss, request, ok=False, text=_why_nothing_runs(boss))
    elif boss.attempt.ladder is not None:
        _reply(boss, request, ok=False, text="it is being stopped")
    else:
        boss.attempt.pause()
        boss.journal.update(paused=True, held_for=None)
        _reply(boss, request, ok=True, text="paused; its memory stays taken")


def _continue(boss: Supervision, request: Request) -> None:
    if not boss.trainer_lives() or boss.attempt is None:
        _reply(boss, request, ok=False, text=_why_nothing_runs(boss))
        return
    boss.attempt.resume()
    boss.journal.update(paused=False, held_for=None, message=None)
    _reply(boss, request, ok=True, text="continued")


def _dump_stacks(boss: Supervision, request: Request) -> None:
    """Pass on the signal the program said it listens for; any other would end it."""
    number = launches.stack_signal(boss.run, request.attempt)
    leader = boss.attempt.family.leader if boss.attempt and boss.trainer_lives() else None
    if leader is None:
        _reply(boss, request, ok=False, text=_why_nothing_runs(boss))
    elif number is None:
        _reply(boss, request, ok=False, text="this program did not say that it listens for a request for its stacks")
    else:
        sent = boss.machine.signaller.send(leader, number)
        _reply(boss, request, ok=sent, text=f"{signal.Signals(number).name} sent; the stacks are in its output")


def _restart(boss: Supervision, request: Request) -> None:
    refusal = _refusal(boss, request)
    if refusal:
        _reply(boss, request, ok=False, text=refusal)
        return
    if boss.attempt is None:
        boss.attempt = boss.remains()
    if boss.attempt is None:
        _start_over(boss, request)
        return
    boss.upcoming = None
    ending.press(boss, request)


def _refusal(boss: Supervision, request: Request) -> str | None:
    """Why a restart cannot work, found out before anything is stopped for it."""
    current = boss.journal.status.attempt
    if 0 < request.attempt < current:
        return f"attempt {request.attempt} was restarted already: attempt {current} came after it"
    if boss.upcoming is not None and boss.upcoming.plan.request:
        return f"{boss.upcoming.plan.request.by} asked for a restart before you"
    try:
        launches.prepare(boss.run, boss.spec, boss.journal.status, plan_of(boss, request), boss.machine)
    except CannotCompose as error:
        return str(error)
    return None


def _start_over(boss: Supervision, request: Request) -> None:
    """Want a new attempt; one that nothing ever ran of before goes through its queue again, dependencies included."""
    boss.schedule(plan_of(boss, request), phase="queued" if boss.turnstile.needed else "starting")


def plan_of(boss: Supervision, request: Request) -> Plan:
    """The attempt that a restart request asks for."""
    options = request.options
    template, device = options.get("launch"), options.get("device")
    never_ran = not boss.run.attempt(boss.journal.status.attempt).launch.exists()
    waits = boss.upcoming.plan.number if never_ran and boss.upcoming else None
    return Plan(
        number=waits or boss.next_number(),
        reason=f"restarted by {request.by}",
        by=request.by,
        device=device if isinstance(device, str) and device else None,
        source=str(options.get("from") or "latest"),
        template=template if isinstance(template, Mapping) else None,
        request=request,
        queued=never_ran,
    )


def _why_nothing_runs(boss: Supervision) -> str:
    return NOT_STARTED if boss.upcoming is not None else ENDED


def _reply(boss: Supervision, request: Request, *, ok: bool, text: str) -> None:
    if not request.id.startswith(_NO_FILE):
        boss.journal.answer(request, ok=ok, text=text)


_ACTIONS: Mapping[str, Callable[[Supervision, Request], None]] = {
    "stop": _end,
    "kill": _end,
    "pause": _pause,
    "continue": _continue,
    "restart": _restart,
    "dump_stacks": _dump_stacks,
}
