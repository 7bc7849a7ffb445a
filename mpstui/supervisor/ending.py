"""The end of an attempt, by itself or on request: its record, its survivors, and what comes next."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..wire import storage
from ..wire.jobs import CANCEL, REQUEUE
from ..wire.records import ExitRecord, Request, Spec
from . import alerts, conclusion, machine, witnesses
from .attempt import Attempt
from .checkpoints import saved_since
from .command import template_of
from .state import NO_FILE, NO_REQUEST, Supervision
from .stop_sequence import StopStep

SETTLE_SECONDS = 0.3
"""Children that end with their parent need milliseconds; those left after this count as survivors."""
DRAIN_SECONDS = 10.0
"""DataLoader workers leave 5 s after their parent; what is left after this is there to stay."""


def begin_stop(supervision: Supervision, request: Request, *, asked_before: float | None = None) -> None:
    """Carry out a request through the attempt's stop sequence: begin it, or join the one in progress.

    Args:
        asked_before: when an earlier supervisor asked the trainer, Unix seconds; it is not asked twice.
    """
    attempt = supervision.attempt
    if attempt is None:
        return
    supervision.accept(request)
    leading = supervision.leading_request() or request
    doing = {"request": leading.id, "action": leading.action, "asker": leading.by}
    supervision.journal.update(phase="stopping", paused=False, held_for=None, message=None, **doing)
    wall, rule = supervision.machine.clock.wall(), supervision.spec.stop
    waited = None if asked_before is None else min(max(wall - asked_before, 0.0), rule.grace_seconds)
    force = request.action == "kill" or (request.action == "stop" and request.options.get("force") is True)
    attempt.stop(rule, force=force, asked_seconds_ago=waited)
    if supervision.journal.status.asked_at is None:
        # Only after the signal: being asked twice is better than being killed without having been asked.
        supervision.journal.update(asked_at=wall)


def request_in_progress(supervision: Supervision) -> Request | None:
    """Return the request in progress according to the status, be it ours or the previous supervisor's."""
    status = supervision.journal.status
    if status.request is None or status.action is None:
        return None
    found = storage.read_or_none(Request, supervision.run.request(status.request))
    return found or Request(status.request, status.action, status.attempt, status.asker or "unknown", status.updated)


def watch(supervision: Supervision, attempt: Attempt, heed_signals: Callable[[], None]) -> None:
    """Check the attempt: has its trainer ended, is the next step of the stop sequence due, are its children gone?

    Args:
        heed_signals: handles the signals we have received. A scheduler signals all processes of a job: by the time we
            notice that the trainer has ended, our signal has arrived, and explains why.
    """
    if attempt.ending is None and not attempt.leader_is_alive():
        heed_signals()
        _end(supervision, attempt)
    step = attempt.advance_stop(lambda: supervision.saving is not None and supervision.saving())
    if step is StopStep.GONE:
        if attempt.ending is None:  # the trainer has ended since the check above: record how
            _end(supervision, attempt)
        status: dict[str, Any] = {"tree": [], "survivors": [], "paused": False, "asked_at": None, "message": None}
        # If an attempt ends to make way for the next, the run must never look finished in between.
        next_comes = {"restart", REQUEUE}
        restarts = supervision.accepted and all(request.action in next_comes for request in supervision.accepted)
        supervision.end_attempt(**status, **({} if restarts else {"phase": "ended", **NO_REQUEST}))
    elif step is StopStep.STUCK:
        _stuck(supervision, attempt)
    elif attempt.stop_sequence is None and attempt.ending is not None:
        _drain(supervision, attempt)
    elif attempt.ending is None and attempt.refresh_when_due():
        _record_tree(supervision, attempt)
    if attempt.stop_sequence is None and attempt.ending is None:
        _end_rehearsal(supervision, attempt)  # last: the next tick finds it dead and records how it ended


def _end(supervision: Supervision, attempt: Attempt) -> None:
    """Handle the trainer's end: let its children follow, then reap it and, before all else, record how it ended."""
    deadline = supervision.now + SETTLE_SECONDS
    while attempt.refresh().others and supervision.now < deadline:
        supervision.machine.clock.sleep(0.02)
    survivors = attempt.refresh(thorough=True).others
    # A stop that had been given up as impossible may have worked after all.
    asked = supervision.leading_request() or request_in_progress(supervision)
    found = attempt.collect()
    if not (attempt.was_reached or (asked is not None and _the_scheduler_reached_it(supervision, attempt, asked))):
        asked = None
    if asked is None and found.code != 0 and supervision.job is not None:
        asked = supervision.job.request_behind(attempt.number, supervision.machine.clock.wall())
        if asked is not None:
            supervision.accept(asked)
    was_killed = asked is None and (found.signal == signal.SIGKILL or found.code == 128 + signal.SIGKILL)
    evidence = _memory_kill(supervision, attempt) if was_killed else {}
    record = supervision.conclusion(attempt.number, found, asked, survivors, **evidence)
    supervision.journal.exit(record)
    remove_pid_file(supervision)
    supervision.journal.event("exit" if record.code == 0 or asked else "crash", conclusion.sentence(record))
    supervision.drain(DRAIN_SECONDS)
    _record_tree(supervision, attempt)
    if attempt.stop_sequence is None and not supervision.accepted:
        _decide_what_next(supervision, record)
    if found.signal == signal.SIGKILL and asked is None and not evidence:
        # macOS may have killed it for memory without a report; its log takes seconds, so the record comes first.
        line = machine.memory_kill_log(attempt.family.leader.pid) if attempt.family.leader else None
        if line:
            supervision.journal.event("note", f"killed by macOS for memory: {line}", memory_kill=line)
    rehearsed = supervision.launched is not None and supervision.launched.rehearsal is not None
    event = alerts.event_of(supervision.run, supervision.spec, record)
    if event and not rehearsed:
        supervision.alerts.tell(event, record.attempt, conclusion.sentence(record))


def _the_scheduler_reached_it(supervision: Supervision, attempt: Attempt, asked: Request) -> bool:
    """True if the scheduler's signal, which reaches the whole job, ended an attempt before ours could."""
    if asked.action not in (REQUEUE, CANCEL) or asked.options.get("limit"):
        return False
    beat = witnesses.newest_beat(supervision.run, supervision.spec, attempt.number, supervision.journal.status.started)
    return beat is None or beat.phase != "done"


def remove_pid_file(supervision: Supervision) -> None:
    """Remove the ended trainer's pid file."""
    trainer = supervision.journal.status.trainer
    with contextlib.suppress(OSError):
        if trainer is not None:
            write_pid_file(supervision.spec, None, instead_of=trainer.pid)


def write_pid_file(spec: Spec, pid: int | None, *, instead_of: int | None = None) -> None:
    """Write the trainer's pid where the profile wants it, all or nothing; None removes our own file again.

    Args:
        instead_of: the pid of the ended trainer; a file with another pid is somebody else's.

    Raises:
        OSError: it cannot be written.
    """
    if spec.pid_file is None:
        return
    path = Path(spec.launch.cwd, os.path.expanduser(spec.pid_file))  # noqa: PTH111  raises for no user
    if pid is not None:
        storage.write_bytes(path, f"{pid}\n".encode())
    elif storage.read_bytes(path).strip() == str(instead_of).encode():
        path.unlink()


def _end_rehearsal(supervision: Supervision, attempt: Attempt) -> None:
    """Kill a rehearsal that has done its steps or used up its time: it has nothing to save."""
    launched, now = supervision.launched, supervision.machine.clock.wall()
    if launched is None or launched.rehearsal is None:
        return
    step = witnesses.newest_step(supervision.run, supervision.spec, attempt.number, supervision.journal.status.started)
    if step is not None and supervision.first_step is None:
        supervision.first_step = step if launched.checkpoint else 0
    done = step - (supervision.first_step or 0) if step is not None else 0
    if done >= launched.rehearsal.steps or now - launched.time >= launched.rehearsal.seconds:
        text = f"rehearsal over: {done} steps in {now - launched.time:.0f} s"
        supervision.journal.event("note", text, steps=done, seconds=round(now - launched.time, 1))
        begin_stop(supervision, Request(f"{NO_FILE}rehearsal-{int(now)}", "kill", attempt.number, "rehearsal", now))


def _memory_kill(supervision: Supervision, attempt: Attempt) -> dict[str, str]:
    """Return evidence of whether the system, for lack of memory, sent a SIGKILL that was not ours."""
    kills = supervision.memory.new_kills()
    if kills is not None:
        named, killed = ("memory", f"{kills} process(es)") if kills else ("no_memory_kill", "nothing")
        return {named: f"Linux killed {killed} for memory during this attempt"}
    leader = attempt.family.leader
    report = machine.memory_kill_report(leader.pid, supervision.journal.status.started or 0.0) if leader else None
    return {"memory": report} if report else {}


def _decide_what_next(supervision: Supervision, record: ExitRecord) -> None:
    """Apply the restart rule to an end that nobody asked for; nothing follows a rehearsal."""
    if supervision.launched is not None and supervision.launched.rehearsal is not None:
        supervision.journal.update(phase="ended")
        return
    status, now = supervision.journal.status, supervision.machine.clock.wall()
    step = witnesses.newest_step(supervision.run, supervision.spec, record.attempt, record.started)
    saved = saved_since(supervision.run, template_of(supervision.spec, status), record.started)
    crash = conclusion.Crash(record, step, saved, witnesses.counts_anew(supervision.run, record.attempt))
    decision = conclusion.decide(supervision.spec.restart, crash, status.restarts, now)
    if decision is None:
        supervision.journal.update(phase="ended")
        return
    plan = supervision.automatic_plan(record.attempt + 1, decision.reason)
    lacking = supervision.why_not(plan) if decision.again else None
    refusal = f"not restarted: {lacking}" if lacking else None if decision.again else decision.reason
    if refusal:
        supervision.journal.update(phase="ended", message=refusal)
        supervision.journal.event("note", refusal)
        return
    reached = None if crash.counted_anew else step
    entry = {"time": now, "attempt": record.attempt, "cause": record.cause, "step": reached}
    history: dict[str, Any] = {"restarts": [*status.restarts, entry], "message": decision.reason}
    supervision.schedule(plan, phase="backing_off", delay_seconds=decision.delay_seconds, **history)
    supervision.journal.event("restart", decision.reason, delay_seconds=decision.delay_seconds)


def _drain(supervision: Supervision, attempt: Attempt) -> None:
    """After an end nobody asked for, give the children time to leave, then report those that stayed; touch none."""
    gone = not attempt.refresh().others and not attempt.lock_is_held()
    if not gone and supervision.now < (supervision.drained_by or 0.0):
        return
    left = [] if gone else [member.pid for member in attempt.refresh(thorough=True).others]
    _record_tree(supervision, attempt, survivors=left)
    supervision.end_attempt()
    if left:
        supervision.journal.event("note", f"processes outlived the trainer: {_listed(left)}", survivors=left)
    if not gone and supervision.upcoming and supervision.upcoming.plan.automatic:
        supervision.call_off("not restarted: processes of the last attempt are still there")


def _stuck(supervision: Supervision, attempt: Attempt) -> None:
    left = [member.pid for member in attempt.family.others]
    if attempt.ending is None and attempt.family.leader:
        left.insert(0, attempt.family.leader.pid)
    text = f"SIGKILL did not end {_listed(left)}" if left else "something that cannot be seen still holds run.lock"
    supervision.journal.update(phase="stop_failed", survivors=left, message=text)
    supervision.journal.event("note", text, survivors=left)


def _record_tree(supervision: Supervision, attempt: Attempt, **status: Any) -> None:
    tree = list(attempt.family.others)
    if tree != supervision.journal.status.tree or status:
        supervision.journal.update(tree=tree, **status)


def _listed(pids: list[int]) -> str:
    return ", ".join(f"pid {pid}" for pid in pids)
