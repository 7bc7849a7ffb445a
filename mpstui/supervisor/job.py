"""The supervisor as the first process of a scheduler's job: its id, the scheduler's signals, and resuming later.

A job is ended at its time limit or to make room for others. Both are announced by a signal; the training saves, and the
job goes back into the queue. Its next supervisor, on whichever node, begins the next attempt from there.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from ..wire import storage
from ..wire.jobs import (
    CANCEL,
    REQUEUE,
    WAITS_FOR_JOB,
    EngineRule,
    JobRecord,
    filled,
    id_of_job,
    plain_environment,
    submitted_again,
)
from ..wire.liveness import boot_id
from ..wire.records import Request, Status
from ..wire.rundir import RunDir, for_a_job
from . import ending
from .checkpoints import saved_since
from .command import Plan, template_of
from .state import NO_FILE, NO_REQUEST, Supervision
from .witnesses import Witnesses, read_exit

ASK_SECONDS = 20.0
"""How long to wait for a scheduler's command: its controller may be unreachable for minutes."""
NAMED_SECONDS = 15.0
"""How long to wait for the submitter to record the job's id."""


class Meaning(Enum):
    """What a scheduler is about to do with a job."""

    UNTOUCHED = 1
    GIVEN_NOTICE = 2
    """It must make room, and has some time to do so."""
    DROPPED = 3
    """It is being ended to make room, and will not be started again."""
    OUT_OF_TIME = 4
    """It is being ended because of its time limit."""
    CANCELLED = 5
    """Somebody cancelled it through the scheduler."""


class Job(NamedTuple):
    """The scheduler's job whose first process this is."""

    rule: EngineRule
    id: str
    start: str
    """Tells this start of the job from its restarts: ``17.0``."""

    @property
    def title(self) -> str:
        return self.rule.title or self.rule.name

    def meaning(self) -> Meaning | None:
        """Return what the scheduler is about to do with the job; None if it does not say."""
        said = self.ask(self.rule.look)[1] if self.rule.look else ""
        if not said:
            return None
        restarts = self.start.rpartition(".")[2]
        if re.fullmatch(self.rule.cancelled.replace("{restarts}", restarts), said):
            return Meaning.CANCELLED
        if found := re.fullmatch(self.rule.dropped.replace("{restarts}", restarts), said):
            return Meaning.OUT_OF_TIME if found.groupdict().get("limit") else Meaning.DROPPED
        if re.fullmatch(self.rule.given_notice, said):
            return Meaning.GIVEN_NOTICE
        return Meaning.UNTOUCHED if re.fullmatch(self.rule.untouched, said) else None

    def signal_once(self) -> Callable[[int], bool]:
        """Return a function that sends a signal to all nodes, each signal only once; it returns False on failure."""
        sent: dict[int, bool] = {}

        def send(number: int) -> bool:
            if number not in sent:
                name = signal.Signals(number).name.removeprefix("SIG")
                sent[number] = self.ask([word.replace("{signal}", name) for word in self.rule.signal])[0] == 0
            return sent[number]

        return send

    def request_behind(self, attempt: int, now: float) -> Request | None:
        """Return the scheduler's request behind an end that nobody else asked for; None if it made none.

        Its signal may reach the program's processes on the job's nodes before us, or never reach us.
        """
        meant = self.meaning()
        return None if meant in (None, Meaning.UNTOUCHED) else self.request(meant, attempt, now)

    def request(self, meant: Meaning | None, attempt: int, now: float, *, limit: bool = False) -> Request:
        """Make a request to end an attempt, in the scheduler's name."""
        action = CANCEL if meant is Meaning.CANCELLED else REQUEUE
        return Request(f"{NO_FILE}{action}-{int(now * 1000)}", action, attempt, self.title, now, {"limit": limit})

    def ask(self, command: Sequence[str], environ: Mapping[str, str] | None = None) -> tuple[int | None, str]:
        """Run a scheduler's command; returns its exit code (None: it could not be run), and its output or error.

        Args:
            environ: the environment of the job that the command submits; None if it submits none.
        """
        try:
            done = subprocess.run(
                filled(command, self.id) if environ is None else command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=ASK_SECONDS,
                env=plain_environment() if environ is None else environ,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return None, str(error)
        said = done.stderr if done.returncode != 0 else done.stdout  # warnings are not part of an answer
        return done.returncode, " ".join(said.decode("utf-8", "replace").split())


def job_here(rule: EngineRule | None) -> Job | None:
    """Return the job that this process's environment belongs to; None outside a job."""
    found = id_of_job(rule, os.environ) if rule is not None else ""
    if rule is None or not found:
        return None
    # A scheduler that does not count restarts does each on another machine.
    start = (os.environ.get(rule.restarts) or "0") if rule.restarts else boot_id()
    return Job(rule, found, f"{found}.{start}")


def take(run: RunDir, job: str) -> str:
    """Record this job as the run's; returns why not, as when another job has the run by now, else an empty string."""
    deadline = time.monotonic() + NAMED_SECONDS
    while (record := storage.read_or_none(JobRecord, run.job)) is not None and record.id not in (None, job):
        if job in record.earlier or time.monotonic() > deadline:
            return f"the run is that of job {record.id} now, not of {job}"
        time.sleep(0.2)  # a job may start before its id is recorded
    if record is not None and record.id is None:
        with contextlib.suppress(OSError):
            storage.write_json(run.job, record._replace(id=job))
    return ""


def plan_after_requeue(supervision: Supervision, seen: Witnesses) -> Plan | None:
    """Return the attempt to begin if the scheduler restarted the job; None if it did not, or a stop was asked for."""
    status = supervision.journal.status
    waits = status.phase == "queued" and status.waiting_for == WAITS_FOR_JOB
    job = supervision.job
    killed = job is not None and not seen.ended and seen.begun and not seen.alive and status.job != job.start
    asked = status.action in ("stop", "kill")
    if not waits and (not killed or asked):
        return None
    by = job.title if job is not None else "the scheduler"
    return Plan(seen.attempt + 1, f"{by} started its job again", by=by, source="latest")


def warn(supervision: Supervision, *, limit: bool) -> Request | None:
    """Ask the training to save and end, since the scheduler wants its nodes back.

    Args:
        limit: the time limit is near. Otherwise the job is being ended now, or somebody sent SIGTERM.

    Returns:
        The request by which it was asked; None if it was not.
    """
    job, attempt = supervision.job, supervision.attempt
    if job is None or attempt is None:
        return None
    if attempt.ending is not None:  # the scheduler's signal may have reached its processes before us
        return next((one for one in supervision.accepted if one.action in (REQUEUE, CANCEL)), None)
    template = template_of(supervision.spec, supervision.journal.status)
    if limit and template.resume_args is None:
        text = "its time limit is near; it cannot be resumed, so it is left to train until then"
        supervision.journal.event("note", text, job=job.id)
        return None
    now, number = supervision.machine.clock.wall(), supervision.journal.status.attempt
    why = "its time limit is near" if limit else "its job is being ended"
    supervision.journal.event("request", f"{why}: asked to save and end", action=REQUEUE, by=job.title, job=job.id)
    request = job.request(None, number, now, limit=limit)
    ending.begin_stop(supervision, request)
    if not limit:
        meant = job.meaning()
        if meant is Meaning.CANCELLED:  # found out only after asking: every second counts for saving
            supervision.accepted.remove(request)
            request = job.request(meant, number, now)
            supervision.accept(request)
            supervision.journal.update(request=request.id, action=request.action)
            supervision.journal.event("note", f"job {job.id} was cancelled through {job.title}", job=job.id)
        _stay_in_line(supervision, job, meant)
    return request


def _stay_in_line(supervision: Supervision, job: Job, meant: Meaning | None) -> None:
    """If the scheduler will not restart the job, submit another now: we may be killed before everything is saved.

    At the time limit, only if this attempt has saved something: otherwise the next one would get no further.
    """
    if meant is Meaning.DROPPED or (meant is Meaning.OUT_OF_TIME and _has_saved(supervision)):
        refused = _submit_again(supervision, job)
        text = f"not submitted again: {refused}" if refused else "submitted again"
        supervision.journal.event("note", f"{job.title} will not start job {job.id} again: {text}")


def hand_back(supervision: Supervision, *, limit: bool) -> None:
    """Have a job whose attempt the scheduler ended continue later, requeued or submitted again."""
    job = supervision.job
    if job is None:
        return
    meant = Meaning.OUT_OF_TIME if limit else job.meaning()
    why = "its time limit was near" if meant is Meaning.OUT_OF_TIME else f"{job.title} took its nodes"
    record = storage.read_or_none(JobRecord, supervision.run.job)
    anew = record.id if record is not None and record.id != job.id else None
    if meant is Meaning.UNTOUCHED:
        text = f"ended by a SIGTERM that {job.title} did not send"
        supervision.journal.update(phase="ended", message=text, **NO_REQUEST)
        return
    if meant is Meaning.OUT_OF_TIME and not _has_saved(supervision):
        text = "not requeued: this attempt saved no checkpoint, so the next one would get no further"
        supervision.journal.event("note", text)
        supervision.journal.update(phase="ended", message=text, **NO_REQUEST)
        return
    # Before it is requeued: requeuing ends this process.
    comes = f"when job {anew} starts" if anew else f"{'when' if meant else 'if'} its job starts again"
    message = f"{why}; it continues {comes}"
    supervision.journal.update(phase="queued", waiting_for=WAITS_FOR_JOB, message=message, **NO_REQUEST)
    supervision.journal.event("phase", message, job=job.id)
    if meant is not None and not anew and (refused := _requeue(supervision, job, meant)):
        text = f"not requeued: {refused}"
        supervision.journal.event("note", text)
        supervision.journal.update(phase="ended", waiting_for=None, message=text)


def _has_saved(supervision: Supervision) -> bool:
    status = supervision.journal.status
    return saved_since(supervision.run, template_of(supervision.spec, status), status.started)


def _requeue(supervision: Supervision, job: Job, meant: Meaning) -> str:
    """Put the job back into the queue, or submit it again; returns why neither worked, else an empty string."""
    said = ""
    if job.rule.requeue and meant is not Meaning.DROPPED:
        code, said = job.ask(job.rule.requeue)
        if code == 0:
            return ""
    refused = _submit_again(supervision, job)
    return f"{said}; {refused}".removeprefix("; ") if refused else ""


def _submit_again(supervision: Supervision, job: Job) -> str:
    """Submit another job for the run, to begin when this one has ended; returns why not, else an empty string."""
    run, template = supervision.run, template_of(supervision.spec, supervision.journal.status)
    record = storage.read_or_none(JobRecord, run.job)
    if not job.rule.again or record is None or not record.argv:
        return "its options forbid it"
    if template.resume_args is None:
        return "it cannot be resumed"
    code, answer = job.ask(submitted_again(job.rule, record.argv, job.id), for_a_job(job.rule, os.environ))
    number, task = answer.partition(";")[0].strip(), job.id.partition("_")[1:]
    if code != 0 or not number.isdecimal():
        return answer
    fresh = JobRecord(record.engine, time.time(), number + "".join(task), record.argv, [*record.earlier, job.id])
    storage.write_json(run.job, fresh)
    return ""


def exit_code(run: RunDir, status: Status) -> int:
    """Return the job's exit code, which is its training's, so that dependent jobs see how it ended."""
    record = read_exit(run, status.attempt)
    if record is None or status.phase == "queued" or record.action is not None:
        return 0
    if record.signal is not None:
        return 128 + record.signal
    return record.code if record.code is not None else 1
