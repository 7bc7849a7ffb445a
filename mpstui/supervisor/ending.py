"""An attempt ends, by itself or because somebody asked: its record, who stays behind, and what comes next."""

from __future__ import annotations

import signal
from typing import Any

from ..wire import records
from ..wire.records import ExitRecord, Request
from ..wire.storage import UnreadableRecord
from . import alerts, conclusion, launches, macos, policy, progress
from .attempt import Attempt
from .ladder import Rung
from .launches import Plan
from .saving import SavingWatch
from .spawn import CannotCompose
from .state import NO_REQUEST, Supervision

SETTLE_SECONDS = 0.3
"""Children that end with their parent need milliseconds; only then is it fair to call the others survivors."""
DRAIN_SECONDS = 10.0
"""DataLoader workers leave 5 s after their parent; what is still there after this long stays."""


def press(boss: Supervision, request: Request, *, asked_before: float | None = None) -> None:
    """Put a request on the ladder of the attempt; there is one ladder, however many press.

    Args:
        asked_before: Unix seconds at which a supervisor before us asked the trainer already; it is not asked twice.
    """
    attempt = boss.attempt
    if attempt is None:
        return
    boss.wishes.append(request)
    leading = boss.asked_by() or request
    doing = {"request": leading.id, "action": leading.action, "asker": leading.by}
    boss.journal.update(phase="stopping", paused=False, held_for=None, message=None, **doing)
    _watch_saving(boss, attempt)
    wall = boss.machine.clock.wall()
    waited = None if asked_before is None else min(max(wall - asked_before, 0.0), boss.spec.stop.grace_seconds)
    attempt.press(boss.spec.stop, force=_is_forced(request), asked_seconds_ago=waited)
    if boss.journal.status.asked_at is None:
        boss.journal.update(asked_at=wall)  # after the signal: to be asked twice is better than to be killed unasked


def _is_forced(request: Request) -> bool:
    """Whether a request ends a run at once, without asking the program."""
    return request.action == "kill" or (request.action == "stop" and request.options.get("force") is True)


def request_in_progress(boss: Supervision) -> Request | None:
    """The request that the status says is being carried out, by us or by the supervisor before us."""
    status = boss.journal.status
    if status.request is None or status.action is None:
        return None
    try:
        found = records.read(Request, boss.run.request(status.request))
    except (OSError, UnreadableRecord):
        found = None
    return found or Request(status.request, status.action, status.attempt, status.asker or "unknown", status.updated)


def watch(boss: Supervision, attempt: Attempt) -> None:
    """One look at the living attempt."""
    if attempt.ending is None and not attempt.leader_is_alive():
        _end(boss, attempt)
    rung = attempt.climb(lambda: boss.saving is not None and boss.saving())
    if rung is Rung.GONE:
        boss.attempt = None
        boss.journal.update(tree=[], survivors=[], paused=False, asked_at=None, message=None, **_after_ladder(boss))
    elif rung is Rung.STUCK:
        _stuck(boss, attempt)
    elif attempt.ladder is None and attempt.ending is not None:
        _drain(boss, attempt)
    elif attempt.ending is None and attempt.look_when_due():
        _record_tree(boss, attempt)


def _after_ladder(boss: Supervision) -> dict[str, Any]:
    """An attempt that is ended for the next one leaves no moment in which the run looks as if that were all."""
    if boss.wishes and all(wish.action == "restart" for wish in boss.wishes):
        return {}
    return {"phase": "ended", **NO_REQUEST}


def _end(boss: Supervision, attempt: Attempt) -> None:
    """The trainer is gone: let its children follow, reap it last, and write down how it ended before all else."""
    deadline = boss.now + SETTLE_SECONDS
    while attempt.look().others and boss.now < deadline:
        boss.machine.clock.sleep(0.02)
    survivors = attempt.look(thorough=True).others
    # A wish that was refused, since nothing seemed to help, is what ended it all the same.
    asked = (boss.asked_by() or request_in_progress(boss)) if attempt.ladder else None
    found = attempt.collect()
    evidence = _memory_kill(boss, attempt) if found.signal == signal.SIGKILL and asked is None else {}
    record = boss.conclusion(attempt.number, found, asked, survivors, **evidence)
    boss.journal.exit(record)
    boss.journal.event("exit" if record.code == 0 or asked else "crash", conclusion.sentence(record))
    boss.drained_by = boss.now + DRAIN_SECONDS
    _record_tree(boss, attempt)
    if attempt.ladder is None:
        _decide_what_next(boss, record)
    if found.signal == signal.SIGKILL and asked is None and not evidence:
        _ask_kernel_log(boss, attempt)
    event = alerts.event_of(boss.run, boss.spec, record)
    if event:
        boss.alerts.tell(event, record.attempt, conclusion.sentence(record))


def _memory_kill(boss: Supervision, attempt: Attempt) -> dict[str, str]:
    """Who may have sent a SIGKILL that was not ours: the system, for memory."""
    kills = boss.memory.new_kills()
    if kills:
        return {"memory": f"Linux killed {kills} process(es) for memory during this attempt"}
    leader = attempt.family.leader
    report = macos.memory_kill_report(leader.pid, boss.journal.status.started or 0.0) if leader else None
    return {"memory": report} if report else {}


def _ask_kernel_log(boss: Supervision, attempt: Attempt) -> None:
    """macOS may have killed it for memory without a report; its log takes seconds, so it is asked after the record."""
    leader = attempt.family.leader
    line = macos.memory_kill_log(leader.pid) if leader else None
    if line:
        boss.journal.event("note", f"killed by macOS for memory: {line}")


def _decide_what_next(boss: Supervision, record: ExitRecord) -> None:
    """Apply the restart rule to an end that nobody asked for."""
    status, now = boss.journal.status, boss.machine.clock.wall()
    step = progress.newest_step(boss.run, boss.spec, record.attempt, record.started)
    saved = launches.saved_since(boss.run, boss.spec, status, record.started)
    decision = policy.decide(boss.spec.restart, policy.Crash(record, step, saved), status.restarts, now)
    if decision is None:
        boss.journal.update(phase="ended")
        return
    plan = automatic_plan(boss, record.attempt + 1, decision.reason)
    refusal = decision.reason if not decision.again else _cannot_start(boss, plan)
    if refusal:
        boss.journal.update(phase="ended", message=refusal)
        boss.journal.event("note", refusal)
        return
    entry = {"time": now, "attempt": record.attempt, "cause": record.cause, "step": step}
    history: dict[str, Any] = {"restarts": [*status.restarts, entry], "message": decision.reason}
    boss.schedule(plan, phase="backing_off", delay_seconds=decision.delay_seconds, **history)
    boss.journal.event("restart", decision.reason, delay_seconds=decision.delay_seconds)


def automatic_plan(boss: Supervision, number: int, reason: str) -> Plan:
    """The attempt that the restart rule asks for."""
    device = boss.spec.restart.device
    return Plan(number, reason, by="restart rule", device=device, source="latest", automatic=True)


def _cannot_start(boss: Supervision, plan: Plan) -> str | None:
    try:
        launches.prepare(boss.run, boss.spec, boss.journal.status, plan, boss.machine)
    except CannotCompose as error:
        return f"not restarted: {error}"
    return None


def _drain(boss: Supervision, attempt: Attempt) -> None:
    """After an end nobody asked for: give the others time to leave, then say who stayed. They are not touched."""
    gone = not attempt.look().others and not attempt.lock_is_held()
    if not gone and boss.now < (boss.drained_by or 0.0):
        return
    left = [] if gone else [member.pid for member in attempt.look(thorough=True).others]
    _record_tree(boss, attempt, survivors=left)
    boss.attempt = None
    if left:
        boss.journal.event("note", f"processes outlived the trainer: {_listed(left)}", survivors=left)
    if not gone and boss.upcoming and boss.upcoming.plan.automatic:
        boss.call_off("not restarted: processes of the last attempt are still there")


def _stuck(boss: Supervision, attempt: Attempt) -> None:
    left = [member.pid for member in attempt.family.others]
    if attempt.ending is None and attempt.family.leader:
        left.insert(0, attempt.family.leader.pid)
    text = f"SIGKILL did not end {_listed(left)}" if left else "something that cannot be seen still holds run.lock"
    boss.journal.update(phase="stop_failed", survivors=left, message=text)
    boss.journal.event("note", text, survivors=left)


def _record_tree(boss: Supervision, attempt: Attempt, **status: Any) -> None:
    tree = [tuple(member) for member in attempt.family.others]
    if tree != boss.journal.status.tree or status:
        boss.journal.update(tree=tree, **status)


def _watch_saving(boss: Supervision, attempt: Attempt) -> None:
    """From before the trainer is asked, so that the first bytes of its checkpoint are seen as a change."""
    if boss.saving is None:
        template = launches.template_of(boss.spec, boss.journal.status)
        boss.saving = SavingWatch(boss.run, boss.spec, template, attempt.number, boss.machine.clock)


def _listed(pids: list[int]) -> str:
    return ", ".join(f"pid {pid}" for pid in pids)
