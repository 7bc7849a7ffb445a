"""What a supervisor does first, and how an attempt that is due starts: slot, memory, disk, program."""

from __future__ import annotations

from typing import Any

from ..wire import rundir
from ..wire.records import ExitRecord, Status
from . import ending, job, machine, witnesses
from .attempt import Attempt, Ending
from .command import CannotCompose, Command, Plan, prepare
from .disk_space import lacking_disk_space
from .family import infer_leader
from .launches import SpawnFailed, launch
from .state import Supervision, left_alone
from .witnesses import Duty, Witnesses

_NEW_ATTEMPT: dict[str, Any] = {
    name: Status._field_defaults[name]
    for name in (
        *("trainer", "tree", "survivors", "paused", "held_for", "adopted", "request", "action", "asker", "asked_at"),
        *("next_start", "waiting_for", "message"),
    )
}
"""Status fields to reset when another attempt starts."""


def arrive(supervision: Supervision) -> None:
    """Take over a run: start, adopt, wait, close or rest, as the witnesses demand."""
    seen = witnesses.gather(supervision.run, supervision.found, supervision.machine.table, supervision.machine.boot_id)
    duty = witnesses.decide(seen)
    if duty is not Duty.ADOPT:
        ending.remove_pid_file(supervision)
    supervision.journal.keep_reserves()
    plan = job.plan_after_requeue(supervision, seen) if duty not in (Duty.BEGIN, Duty.ADOPT) else None
    if plan is not None:
        supervision.schedule(plan, phase="starting" if supervision.job is not None else "queued")
    elif duty is Duty.BEGIN:
        branch = supervision.spec.branch
        source = branch.checkpoint if branch is not None else None
        first = Plan(1, "launched", by=supervision.spec.by, source=source, queued=True)
        plan = first if seen.attempt == 1 else _interrupted_restart(supervision, seen.attempt)
        phase = "queued" if supervision.queue_slot.needed else "starting"
        supervision.schedule(plan, phase=phase, attempt=seen.attempt)
    elif duty is Duty.ADOPT:
        _adopt(supervision, seen)
    elif duty is Duty.BACK_OFF:
        _back_off_again(supervision, seen)
    elif duty is Duty.CLOSE:
        # A supervisor had asked it to end, and it ended while none was alive.
        asked = ending.request_in_progress(supervision) if supervision.journal.status.asked_at is not None else None
        record = supervision.conclusion(seen.attempt, Ending(), asked, ())
        supervision.journal.exit(record)
        supervision.journal.event("exit", "ended as asked, while no supervisor lived", attempt=seen.attempt)
        supervision.journal.update(phase="ended", request=None, action=None)


def _interrupted_restart(supervision: Supervision, number: int) -> Plan:
    """Return the plan of an attempt that the previous supervisor was about to start, by a request or by the rule."""
    waiting = (item for item in rundir.unanswered(supervision.run) if item.action == "restart")
    request = next((item for item in waiting if item.attempt < number), None)
    if request is None:
        reason = supervision.journal.status.message or "restarted by rule"
        return supervision.automatic_plan(number, reason)._replace(queued=True)
    supervision.inbox.mark_seen(request)
    return supervision.requested_plan(request)._replace(number=number, queued=True)


def _adopt(supervision: Supervision, seen: Witnesses) -> None:
    status = supervision.journal.status
    ours = status if status.attempt == seen.attempt else None
    table, boot_id = supervision.machine.table, supervision.machine.boot_id
    family, strangers = witnesses.recorded_family(supervision.run, ours, boot_id, table)
    paused = ours is not None and ours.boot_id == boot_id and ours.paused
    attempt = Attempt(supervision.run, seen.attempt, family, supervision.machine, paused=paused)
    attempt.refresh(thorough=True)
    leader = status.trainer
    if family.leader is None:
        attempt.family = infer_leader(attempt.family, table.snapshot())
        leader = attempt.family.leader
    supervision.begin(attempt)
    supervision.journal.update(
        phase="running",
        attempt=seen.attempt,
        trainer=leader,
        tree=list(attempt.family.others),
        adopted=True,
        message=None,
        **supervision.own_mark(),
    )
    supervision.journal.event("note", "adopted: the previous supervisor is gone, the trainer is alive")
    if strangers:
        supervision.journal.event("note", left_alone(strangers))
    request = ending.request_in_progress(supervision)
    if request is not None:
        ending.begin_stop(supervision, request, asked_before=status.asked_at)
        supervision.inbox.mark_seen(request)


def _back_off_again(supervision: Supervision, seen: Witnesses) -> None:
    status = supervision.journal.status
    longest = max(supervision.spec.restart.delays_seconds or [0.0])
    left = min(max((status.next_start or 0.0) - supervision.machine.clock.wall(), 0.0), longest)
    plan = supervision.automatic_plan(seen.attempt + 1, status.message or "restarted by rule")
    supervision.schedule(plan, phase="backing_off", delay_seconds=left)


def _close_lost(supervision: Supervision) -> None:
    """Before the next attempt, give one whose end nobody saw a record that says just that."""
    number = supervision.journal.status.attempt
    if number < 1 or supervision.has_ended(number):
        return
    status = supervision.journal.status
    beat = witnesses.newest_beat(supervision.run, supervision.spec, number, status.started)
    end = f"not seen; last heard from at {beat.time if beat else status.updated:.0f}"
    supervision.journal.exit(supervision.conclusion(number, Ending(), None, (), end=end))


def start_when_due(supervision: Supervision) -> None:
    """Start what is due, unless it still has to wait for something."""
    upcoming = supervision.upcoming
    if upcoming is None or supervision.now < upcoming.due or not supervision.starts_here:
        return
    plan = upcoming.plan
    if _has_slot(supervision, plan) and _memory_is_back(supervision, plan) and _has_disk_space(supervision, plan):
        supervision.forget_upcoming()
        start(supervision, plan)


def start(supervision: Supervision, plan: Plan) -> None:
    """Start an attempt now and answer whoever asked for it."""
    status = supervision.journal.status
    run, spec, slot = supervision.run, supervision.spec, supervision.queue_slot
    try:
        command, note = prepare(run, spec, status, plan, supervision.machine, slot.gpus)
    except CannotCompose as error:
        _could_not_start(supervision, plan, str(error))
        return
    if plan.number > status.attempt:
        _close_lost(supervision)
    supervision.memory.measure()
    supervision.journal.update(
        phase="starting",
        attempt=plan.number,
        template=dict(plan.template) if plan.template and not plan.rehearsal else status.template,
        started=supervision.machine.clock.wall(),
        **_NEW_ATTEMPT,
        **supervision.own_mark(),
    )
    begun = launch(run, spec, plan, command, supervision.journal, supervision.machine, slot.kept)
    if isinstance(begun, SpawnFailed):
        _could_not_start(supervision, plan, begun.text)
        return
    supervision.begin(begun)
    leader = begun.family.leader
    supervision.journal.update(phase="running", trainer=leader)
    if leader:
        machine.stay_awake(leader.pid)
        try:
            ending.write_pid_file(spec, leader.pid)
        except OSError as error:
            supervision.journal.event("note", f"the pid file could not be written: {error}")
    killed = begun.child.killed_by() if begun.child else None
    if killed is None:
        _tell(supervision, plan, command, note)
    elif plan.request:
        text = f"attempt {plan.number} was killed by signal {killed} as it started"
        supervision.journal.answer(plan.request, ok=False, text=text)


def _tell(supervision: Supervision, plan: Plan, command: Command, note: str) -> None:
    where = [] if command.device == "auto" else [command.device]
    if command.gpus and supervision.spec.gpus is not None:
        where.append(supervision.spec.gpus.sentence(command.gpus))
    origin = f"from {command.checkpoint}" + (f" ({note})" if note else "") if command.checkpoint else note
    text = f"attempt {plan.number} started" + (f" on {', '.join(where)}" if where else "")
    text += f", {origin or 'from scratch'}" if plan.source else ""
    kind = "launched" if plan.number == 1 else "restart"
    more: dict[str, Any] = {"gpus": list(command.gpus)} if command.gpus else {}
    more |= {"not_finite": list(command.not_finite)} if command.not_finite else {}
    supervision.journal.event(kind, text, reason=plan.reason, checkpoint=command.checkpoint, **more)
    if plan.request:
        noted = f"the restart that {plan.request.by} asked for"
        supervision.journal.answer(plan.request, ok=True, text=text, noted=noted)


def _could_not_start(supervision: Supervision, plan: Plan, text: str) -> None:
    now = supervision.machine.clock.wall()
    supervision.journal.exit(ExitRecord(plan.number, now, spawn_error=text, started=now))
    supervision.journal.update(**{**_NEW_ATTEMPT, "phase": "ended", "attempt": plan.number, "message": text})
    said = f"could not be started: {text}"
    supervision.journal.event("crash", said, attempt=plan.number)
    supervision.alerts.tell("crash", plan.number, said)
    if plan.request:
        supervision.journal.answer(plan.request, ok=False, text=said, noted=f"told to {plan.request.by}")


def _has_slot(supervision: Supervision, plan: Plan) -> bool:
    if not supervision.queue_slot.needed:
        return True
    found = supervision.queue_slot.ask(dependencies_matter=plan.queued, status=supervision.journal.status)
    if found.go:
        return True
    if found.never:
        supervision.end_unbegun(plan, cause="dependency_failed", evidence={"dependency": found.message})
        supervision.call_off(found.message)
        supervision.journal.event("exit", f"dependency failed: {found.message}", attempt=plan.number)
        if plan.request:
            supervision.journal.answer(plan.request, ok=False, text=found.message)
    else:
        _wait_for(supervision, plan, found.waiting_for, found.message, phase="queued")
    return False


def _wait_for(supervision: Supervision, plan: Plan, what: str | None, text: str, *, phase: str) -> None:
    """Record once what it waits for. An automatic restart keeps its ``next_start``: the next supervisor sees it due."""
    if (supervision.journal.status.waiting_for, supervision.journal.status.phase) != (what, phase):
        supervision.journal.update(phase=phase, waiting_for=what, message=text)
        supervision.journal.event("phase", text, attempt=plan.number)


def _has_disk_space(supervision: Supervision, plan: Plan) -> bool:
    """Check the disk for automatic starts: the launcher's own check may be hours old by then."""
    by_itself = plan.automatic or (plan.queued and supervision.queue_slot.needed)
    lacking = lacking_disk_space(supervision) if by_itself else None
    if lacking:
        _wait_for(supervision, plan, "disk", lacking, phase="backing_off" if plan.automatic else "queued")
    return lacking is None


def _memory_is_back(supervision: Supervision, plan: Plan) -> bool:
    """True once the last attempt's memory is free, or no more of it will be; a leak calls off an automatic restart."""
    release = supervision.memory.poll()
    if not release.ready:
        return False
    if release.warning:
        supervision.journal.event("note", release.warning, attempt=plan.number)
    if release.leaked and plan.automatic:
        supervision.call_off(f"not restarted: {release.warning}")
        return False
    return True
