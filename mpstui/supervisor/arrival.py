"""A supervisor arrives: it finds out what there is to do, and begins with it."""

from __future__ import annotations

from ..wire import rundir
from . import commands, ending, progress, takeover
from .attempt import Attempt
from .exits import Ending
from .family import Family, infer_leader
from .launches import Plan
from .state import Supervision
from .takeover import Duty, Witnesses


def arrive(boss: Supervision) -> None:
    """Start, adopt, wait on, close or rest, as the witnesses say."""
    seen = takeover.look(boss.run, boss.found, boss.machine.table, boss.machine.boot_id)
    duty = takeover.decide(seen)
    boss.journal.keep_reserve()
    if duty is Duty.BEGIN:
        _begin(boss, seen)
    elif duty is Duty.ADOPT:
        _adopt(boss, seen)
    elif duty is Duty.BACK_OFF:
        _back_off_again(boss, seen)
    elif duty is Duty.CLOSE:
        _close_unseen(boss, seen)


def _begin(boss: Supervision, seen: Witnesses) -> None:
    first = Plan(1, "launched", by=boss.spec.by, queued=True)
    plan = first if seen.attempt == 1 else _interrupted_restart(boss, seen.attempt)
    boss.schedule(plan, phase="queued" if boss.turnstile.needed else "starting", attempt=seen.attempt)


def _interrupted_restart(boss: Supervision, number: int) -> Plan:
    """The plan of an attempt that the supervisor before us was about to start: somebody's wish, else the rule's."""
    open_wishes = (item for item in rundir.unanswered(boss.run) if item.action == "restart" and item.attempt < number)
    wish = next(open_wishes, None)
    if wish is None:
        reason = boss.journal.status.message or "restarted by rule"
        return ending.automatic_plan(boss, number, reason)._replace(queued=True)
    boss.inbox.mark_seen(wish)
    return commands.plan_of(boss, wish)._replace(number=number, queued=True)


def _adopt(boss: Supervision, seen: Witnesses) -> None:
    status = boss.journal.status
    ours = status.boot_id == boss.machine.boot_id and status.attempt == seen.attempt
    leader = status.trainer_identity() if ours else None
    known = tuple(status.tree_identities()) if ours else ()
    attempt = Attempt(boss.run, seen.attempt, Family(leader, known), boss.machine, paused=ours and status.paused)
    attempt.look(thorough=True)
    if leader is None:
        attempt.family = infer_leader(attempt.family, boss.machine.table.snapshot())
        leader = attempt.family.leader
    boss.attempt = attempt
    boss.journal.update(
        phase="running",
        attempt=seen.attempt,
        trainer=tuple(leader) if leader else None,
        tree=[tuple(member) for member in attempt.family.others],
        adopted=True,
        message=None,
        **boss.own(),
    )
    boss.journal.event("note", "adopted: the supervisor before this one is gone, the trainer lives")
    request = ending.request_in_progress(boss)
    if request is not None:
        ending.press(boss, request, asked_before=status.asked_at)
        boss.inbox.mark_seen(request)


def _back_off_again(boss: Supervision, seen: Witnesses) -> None:
    status = boss.journal.status
    longest = max(boss.spec.restart.delays_seconds or [0.0])
    left = min(max((status.next_start or 0.0) - boss.machine.clock.wall(), 0.0), longest)
    plan = ending.automatic_plan(boss, seen.attempt + 1, status.message or "restarted by rule")
    boss.schedule(plan, phase="backing_off", delay_seconds=left)


def _close_unseen(boss: Supervision, seen: Witnesses) -> None:
    """We had asked it to end, and it did while no supervisor lived."""
    record = boss.conclusion(seen.attempt, Ending(), ending.request_in_progress(boss), ())
    boss.journal.exit(record)
    boss.journal.event("exit", "ended as asked, while no supervisor lived", attempt=seen.attempt)
    boss.journal.update(phase="ended", request=None, action=None)


def close_lost(boss: Supervision) -> None:
    """Before another attempt: the one nobody saw the end of gets a record that says just that."""
    number = boss.journal.status.attempt
    if number < 1 or boss.has_ended(number):
        return
    beat = progress.newest_beat(boss.run, boss.spec, number, boss.journal.status.started)
    last = beat.time if beat else boss.journal.status.updated
    boss.journal.exit(boss.conclusion(number, Ending(), None, (), end=f"not seen; last heard of at {last:.0f}"))
