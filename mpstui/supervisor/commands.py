"""What each request does. Ends beat starts: a kill that meets a restart wins, and the restart is told so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..wire import records
from ..wire.jsontext import UnreadableRecord
from ..wire.records import Request
from . import launches
from .attempt import Attempt
from .launches import Plan
from .spawn import CannotCompose

if TYPE_CHECKING:
    from .loop import Supervisor

ENDED = "this run has ended"


def handle(boss: Supervisor, request: Request) -> None:
    """Carry out one request, or refuse it with the reason."""
    journal = boss.journal
    journal.event("request", f"{request.action} by {request.by}", attempt=request.attempt, request=request.id)
    current = journal.status.attempt
    if 0 < request.attempt < current and (boss.trainer_lives() or boss.upcoming):
        journal.answer(request, ok=False, text=f"attempt {request.attempt} is over; attempt {current} is the one now")
        return
    action = _ACTIONS.get(request.action)
    if action is None:
        journal.answer(request, ok=False, text=_not_ours(boss, request))
        return
    action(boss, request)


def stop_from_outside(boss: Supervisor) -> None:
    """SIGTERM to the supervisor is a stop request of whoever sent it (a service manager at shutdown, most often)."""
    now = boss.machine.clock.wall()
    request = Request(
        f"sigterm-{int(now * 1000)}", "stop", boss.journal.status.attempt, "SIGTERM to the supervisor", now
    )
    boss.journal.event("request", "stop by SIGTERM to the supervisor")
    _stop(boss, request)


def finish_interrupted(boss: Supervisor) -> None:
    """Go on with the ladder that the supervisor before us did not finish."""
    request = interrupted_request(boss)
    if request is not None and boss.attempt is not None:
        _press(boss, request, force=request.action == "kill")


def interrupted_request(boss: Supervisor) -> Request | None:
    """The request that the supervisor before us was carrying out, as far as it can still be read."""
    status = boss.journal.status
    if status.request is None or status.action is None:
        return None
    try:
        found = records.read(Request, boss.run_dir.request(status.request))
    except (OSError, UnreadableRecord):
        found = None
    return found or Request(status.request, status.action, status.attempt, "unknown", boss.machine.clock.wall())


def answer_wishes(boss: Supervisor, attempt: Attempt) -> None:
    """The ladder is over: answer its requests, and start what was wished for after it."""
    wishes, boss.wishes = boss.wishes, []
    ends = [wish for wish in wishes if wish.action != "restart"]
    for wish in ends:
        _reply(boss, wish, ok=True, text=f"attempt {attempt.number} has ended, nothing of it is left")
    restarts = [wish for wish in wishes if wish.action == "restart"]
    if not restarts:
        return
    if ends:
        for wish in restarts:
            _reply(boss, wish, ok=False, text=f"not restarted: {ends[-1].by} asked to {ends[-1].action} it")
        return
    for wish in restarts[1:]:
        _reply(boss, wish, ok=False, text=f"{restarts[0].by} asked for a restart before you")
    _schedule_restart(boss, restarts[0])


def refuse_wishes(boss: Supervisor, text: str) -> None:
    """The ladder could not do it."""
    wishes, boss.wishes = boss.wishes, []
    for wish in wishes:
        _reply(boss, wish, ok=False, text=text)


def _stop(boss: Supervisor, request: Request) -> None:
    _end(boss, request, force=request.options.get("force") is True)


def _kill(boss: Supervisor, request: Request) -> None:
    _end(boss, request, force=True)


def _end(boss: Supervisor, request: Request, *, force: bool) -> None:
    if boss.upcoming is not None and not boss.trainer_lives():
        _call_off(boss, request)
    if boss.attempt is None and boss.upcoming is None:
        boss.attempt = boss.remains()
    if boss.attempt is None:
        _reply(boss, request, ok=True, text=ENDED)
        return
    _press(boss, request, force=force)


def _press(boss: Supervisor, request: Request, *, force: bool) -> None:
    assert boss.attempt is not None
    boss.wishes.append(request)
    leading = boss.asked_by()
    boss.journal.update(
        phase="stopping",
        request=leading.id if leading else None,
        action=leading.action if leading else None,
        paused=False,
    )
    boss.attempt.press(boss.spec.stop, force=force)


def _call_off(boss: Supervisor, request: Request) -> None:
    """Nothing runs yet: what was due does not start."""
    upcoming = boss.upcoming
    assert upcoming is not None
    if upcoming.plan.request:
        text = f"not restarted: {request.by} asked to {request.action} it"
        _reply(boss, upcoming.plan.request, ok=False, text=text)
    boss.give_up(upcoming.plan, request)


def _pause(boss: Supervisor, request: Request) -> None:
    if not boss.trainer_lives() or boss.attempt is None:
        _reply(boss, request, ok=False, text=ENDED)
    elif boss.attempt.ladder is not None:
        _reply(boss, request, ok=False, text="it is being stopped")
    else:
        boss.attempt.pause()
        boss.journal.update(paused=True)
        _reply(boss, request, ok=True, text="paused; its memory stays taken")


def _continue(boss: Supervisor, request: Request) -> None:
    if not boss.trainer_lives() or boss.attempt is None:
        _reply(boss, request, ok=False, text=ENDED)
        return
    boss.attempt.resume()
    boss.journal.update(paused=False)
    _reply(boss, request, ok=True, text="continued")


def _restart(boss: Supervisor, request: Request) -> None:
    try:
        plan = _plan(boss, request)
        launches.prepare(boss.run_dir, boss.spec, boss.journal.status, plan, boss.machine)
    except CannotCompose as error:
        _reply(boss, request, ok=False, text=str(error))
        return
    if boss.upcoming is not None and boss.upcoming.plan.request:
        _reply(boss, request, ok=False, text=f"{boss.upcoming.plan.request.by} asked for a restart before you")
        return
    if 0 < request.attempt < boss.journal.status.attempt:
        text = f"attempt {request.attempt} was restarted already: attempt {boss.journal.status.attempt} came after it"
        _reply(boss, request, ok=False, text=text)
        return
    if boss.attempt is None:
        boss.attempt = boss.remains()
    if boss.attempt is not None:
        boss.upcoming = None
        _press(boss, request, force=False)
    else:
        _schedule_restart(boss, request)


def _schedule_restart(boss: Supervisor, request: Request) -> None:
    plan = _plan(boss, request)
    boss.schedule(plan, phase="starting", attempt=boss.journal.status.attempt)


def _plan(boss: Supervisor, request: Request) -> Plan:
    options = request.options
    template = options.get("launch")
    device = options.get("device")
    return Plan(
        number=_next_number(boss),
        reason=f"restarted by {request.by}",
        by=request.by,
        device=device if isinstance(device, str) and device else None,
        source=str(options.get("from") or "latest"),
        template=template if isinstance(template, Mapping) else None,
        request=request,
    )


def _next_number(boss: Supervisor) -> int:
    return max([boss.journal.status.attempt, *boss.run_dir.attempt_numbers()]) + 1


def _not_ours(boss: Supervisor, request: Request) -> str:
    if request.action in records.TRAINER_ACTIONS:
        return ENDED
    if request.action == "dump_stacks":
        return "this program does not listen for it"
    return f"unknown action {request.action!r}"


def _reply(boss: Supervisor, request: Request, *, ok: bool, text: str) -> None:
    if not request.id.startswith("sigterm-"):
        boss.journal.answer(request, ok=ok, text=text)


_ACTIONS: Mapping[str, Callable[[Supervisor, Request], None]] = {
    "stop": _stop,
    "kill": _kill,
    "pause": _pause,
    "continue": _continue,
    "restart": _restart,
}
