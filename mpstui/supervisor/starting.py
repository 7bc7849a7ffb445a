"""An attempt that is due waits for its turn and for memory, then starts."""

from __future__ import annotations

from typing import Any

from ..wire.records import ExitRecord
from . import arrival, launches, macos
from .launches import Plan, SpawnFailed
from .room import wants_room
from .spawn import CannotCompose, Command
from .state import Supervision


def start_when_due(boss: Supervision) -> None:
    """Start what is due, unless something still has to be waited for."""
    upcoming = boss.upcoming
    if upcoming is None or boss.now < upcoming.due:
        return
    plan = upcoming.plan
    if _is_its_turn(boss, plan) and _memory_is_back(boss, plan) and _disk_has_room(boss, plan):
        boss.upcoming = None
        start(boss, plan)


def start(boss: Supervision, plan: Plan) -> None:
    """Start an attempt now and answer whoever wished for it."""
    status = boss.journal.status
    try:
        command, note = launches.prepare(boss.run, boss.spec, status, plan, boss.machine, boss.turnstile.gpus)
    except CannotCompose as error:
        _could_not_start(boss, plan, str(error))
        return
    if plan.number > status.attempt:
        arrival.close_lost(boss)
    boss.memory.measure()
    boss.journal.update(
        phase="starting",
        attempt=plan.number,
        template=dict(plan.template) if plan.template else status.template,
        started=boss.machine.clock.wall(),
        **_BLANK,
        **boss.own(),
    )
    kept = boss.turnstile.kept
    begun = launches.launch(boss.run, boss.spec, plan, command, boss.journal, boss.machine, kept)
    if isinstance(begun, SpawnFailed):
        _could_not_start(boss, plan, begun.text)
        return
    boss.attempt, boss.drained_by, boss.saving = begun, None, None
    leader = begun.family.leader
    boss.journal.update(phase="running", trainer=tuple(leader) if leader else None)
    if leader:
        macos.stay_awake(leader.pid)
    _tell(boss, plan, command, note)


_BLANK: dict[str, Any] = {
    "trainer": None,
    "tree": [],
    "survivors": [],
    "paused": False,
    "held_for": None,
    "adopted": False,
    "request": None,
    "action": None,
    "asker": None,
    "asked_at": None,
    "next_start": None,
    "waiting_for": None,
    "message": None,
}


def _tell(boss: Supervision, plan: Plan, command: Command, note: str) -> None:
    origin = f"from {command.checkpoint}" + (f" ({note})" if note else "") if command.checkpoint else note
    origin = origin or "from scratch"
    text = f"attempt {plan.number} started{_where(boss, command)}" + (f", {origin}" if plan.source else "")
    kind = "launched" if plan.number == 1 else "restart"
    gpus: dict[str, Any] = {"gpus": list(command.gpus)} if command.gpus else {}
    boss.journal.event(kind, text, reason=plan.reason, checkpoint=command.checkpoint, **gpus)
    if plan.request:
        boss.journal.answer(plan.request, ok=True, text=text, noted=f"the restart that {plan.request.by} asked for")


def _where(boss: Supervision, command: Command) -> str:
    named = [] if command.device == "auto" else [command.device]
    if command.gpus and boss.spec.gpus is not None:
        named.append(boss.spec.gpus.sentence(command.gpus))
    return f" on {', '.join(named)}" if named else ""


def _could_not_start(boss: Supervision, plan: Plan, text: str) -> None:
    now = boss.machine.clock.wall()
    boss.journal.exit(ExitRecord(plan.number, now, spawn_error=text, started=now))
    boss.journal.update(**{**_BLANK, "phase": "ended", "attempt": plan.number, "message": text})
    boss.journal.event("crash", f"could not be started: {text}", attempt=plan.number)
    boss.alerts.tell("crash", plan.number, f"could not be started: {text}")
    if plan.request:
        refused = f"could not be started: {text}"
        boss.journal.answer(plan.request, ok=False, text=refused, noted=f"told to {plan.request.by}")


def _is_its_turn(boss: Supervision, plan: Plan) -> bool:
    if not boss.turnstile.needed:
        return True
    turn = boss.turnstile.ask(dependencies_matter=plan.queued, status=boss.journal.status)
    if turn.go:
        return True
    if turn.never:
        _give_up(boss, plan, turn.message)
    else:
        _wait_for(boss, plan, turn.waiting_for, turn.message, phase="queued")
    return False


def _wait_for(boss: Supervision, plan: Plan, what: str | None, text: str, *, phase: str) -> None:
    """Say once what is waited for. A restart by rule keeps its ``next_start``: the next supervisor finds it as due."""
    if (boss.journal.status.waiting_for, boss.journal.status.phase) != (what, phase):
        boss.journal.update(phase=phase, waiting_for=what, message=text)
        boss.journal.event("phase", text, attempt=plan.number)


def _disk_has_room(boss: Supervision, plan: Plan) -> bool:
    """Whoever starts a run now was asked by the launcher; what starts hours later, by itself, has to look again."""
    lacking = wants_room(boss) if plan.automatic or (plan.queued and boss.turnstile.needed) else None
    if lacking:
        _wait_for(boss, plan, "disk", lacking, phase="backing_off" if plan.automatic else "queued")
    return lacking is None


def _give_up(boss: Supervision, plan: Plan, text: str) -> None:
    boss.end_unbegun(plan, cause="dependency_failed", evidence={"dependency": text})
    boss.call_off(text)
    boss.journal.event("exit", f"dependency failed: {text}", attempt=plan.number)
    if plan.request:
        boss.journal.answer(plan.request, ok=False, text=text)


def _memory_is_back(boss: Supervision, plan: Plan) -> bool:
    """Whether the attempt before this one gave its memory back; asked of nobody before the first."""
    release = boss.memory.look()
    if not release.ready:
        return False
    if release.warning:
        boss.journal.event("note", release.warning, attempt=plan.number)
    if release.leaked and plan.automatic:
        boss.call_off(f"not restarted: {release.warning}")
        return False
    return True
