"""The state of a run that a scheduler starts, from the scheduler's account and the run's own records together.

Locks and process ids prove little here: they belong to the node on which the run executes, and a record from another
boot does not mean a reboot. A lock seen to be held counts, a free one does not.

=================  ==================================  =====================================================
the job            the run's own records               meaning
=================  ==================================  =====================================================
waits              any                                 queued, with the scheduler's reason
has its nodes      an end, and nothing will follow     as the end says: the job is about to complete
has its nodes      an end, and a restart is requested  starting: that is what the job is for
has its nodes      an attempt in progress              as its supervisor's status says
has its nodes      of an earlier start, or none        starting
is over            an end not caused by the job        as the end says
is over            no end, or one caused by the job    as the scheduler says: cancelled, timed out, node failed ...
not heard of yet   any                                 as the run's own records say
=================  ==================================  =====================================================

If the scheduler does not answer, its last answer still holds; the reason says since when it has been silent.
"""

from __future__ import annotations

from functools import partial

from ...wire import storage
from ...wire.jobs import CANCEL, REQUEUE, EngineRule, JobRecord
from ...wire.records import ENDS, ExitRecord, Status
from ...wire.rundir import RunDir
from ..follow import RecordFile
from ..model.jobs import JobPhase, JobView
from ..model.snapshot import State
from .state import SENT_SIGNALS, RunWitnesses, StateVerdict, ended

_OVER = {
    JobPhase.CANCELLED: State.KILLED,
    JobPhase.TIMED_OUT: State.KILLED,
    JobPhase.PREEMPTED: State.KILLED,
    JobPhase.NODE_FAILED: State.FAILED,
    JobPhase.OUT_OF_MEMORY: State.FAILED,
    JobPhase.FAILED: State.FAILED,
}


class JobReader:
    """Reads the job of one run as its scheduler last described it."""

    def __init__(self, run: RunDir) -> None:
        self._state = run.path.parent.parent
        self._record = RecordFile(run.job, partial(storage.from_json, JobRecord))

    def view(self, rule: EngineRule) -> JobView | None:
        """Return what is known of the job; None if there is no such scheduler."""
        from ..engines.board import board_of  # only for jobs: it would add 5 ms to every start

        if (board := board_of(rule.name, self._state)) is None:
            return None
        self._record.read()
        record = self._record.value
        if record is None or record.id is None:
            return JobView(engine=rule.name, title=rule.title, id="(without a number yet)")
        return board.view(record.id, record.submitted)


def derive_scheduled(seen: RunWitnesses, job: JobView) -> StateVerdict:
    """Return the state of a run that is a scheduler's job, from both accounts."""
    found = _by_both(seen, job)
    return found._replace(reason=found.reason + job.silence())


def _by_both(seen: RunWitnesses, job: JobView) -> StateVerdict:
    if job.phase.waits and not seen.supervisor_held:
        # The job may be back in the queue before its last supervisor has left; the status it left says why it waits.
        message = seen.status.message if seen.status is not None and seen.status.phase == "queued" else None
        return StateVerdict(State.QUEUED, job.sentence() + (f" ({message})" if message and seen.begun else ""))
    if job.phase.has_nodes or seen.supervisor_held or job.phase is JobPhase.UNKNOWN:
        return _alive(seen, job)
    return _over(seen, job)


def as_called_off(record: ExitRecord | None, status: Status | None) -> ExitRecord | None:
    """Return the exit record; if the run was called off (stop, kill) while requeued, with that action and its asker."""
    if record is None or record.action != REQUEUE or status is None:
        return record
    if status.phase != "ended" or status.action not in ENDS:
        return record
    return record._replace(action=status.action, requested_by=status.asker)


def _has_ended(seen: RunWitnesses) -> bool:
    """True if the newest attempt has ended and no other will follow."""
    status = seen.status
    if seen.exit is None or seen.exit.action == REQUEUE:
        return seen.exit is not None and status is not None and status.phase == "ended"
    return status is None or status.phase in ("ended", "dependency_failed", "stopping", "running")


def _recorded(record: ExitRecord, seen: RunWitnesses) -> StateVerdict:
    """Return the verdict of the exit record; if the scheduler caused the end, also say why nothing followed."""
    verdict = ended(record, seen.phase)
    note = seen.status.message if seen.status is not None and record.action == REQUEUE else None
    return verdict._replace(reason=f"{verdict.reason}; {note}") if note else verdict


def _alive(seen: RunWitnesses, job: JobView) -> StateVerdict:
    status, where = seen.status, job.sentence()
    if "restart" in seen.wished:
        return StateVerdict(State.STARTING, f"{where}: the next attempt is about to begin")
    if _has_ended(seen) and seen.exit is not None:
        return _recorded(seen.exit, seen)
    if status is None or (not seen.begun and status.phase in ("queued", "starting", "running")):
        coming = job.phase is not JobPhase.UNKNOWN or seen.supervisor_held
        why = f"{where}: its supervisor is coming up" if coming else f"{where} {_not_heard(job)}"
        return StateVerdict(State.STARTING if coming else State.QUEUED, why)
    began = status.job is None or status.job.rpartition(".")[0] == job.id
    match status.phase:
        case "queued" if job.phase.has_nodes and not seen.supervisor_held:
            return StateVerdict(State.STARTING, f"{where}: it is about to go on")
        case "queued":
            return StateVerdict(State.QUEUED, status.message or where)
        case "backing_off":
            return StateVerdict(State.BACKING_OFF, f"{status.message or 'waits before it starts again'}; {where}")
        case "starting" if seen.exit is not None or status.trainer is None:
            return StateVerdict(State.STARTING, f"{status.message or 'the next attempt is being started'}; {where}")
        case "stop_failed":
            return StateVerdict(State.STOP_FAILED, f"{status.message or 'could not be ended'}; {where}")
        case "stopping":
            doing = status.message or f"a {status.action or 'stop'} is being carried out"
            return StateVerdict(State.STOPPING, f"{doing}; {where}")
    if not began:
        return StateVerdict(State.STARTING, f"{where}: its supervisor is coming up")
    state = State.STOPPING if job.phase is JobPhase.ENDING else State.RUNNING
    return StateVerdict(state, where)


def _over(seen: RunWitnesses, job: JobView) -> StateVerdict:
    status, record = seen.status, seen.exit
    if record is not None and (not _for_its_sake(record, job) or job.phase in (JobPhase.COMPLETED, JobPhase.GONE)):
        return _recorded(record, seen)
    by_us = status is not None and status.action in ("stop", "kill") and job.phase is JobPhase.CANCELLED
    if by_us or (status is not None and status.phase == "ended" and not seen.begun):
        asker = status.asker if status is not None and status.asker else "somebody"
        return StateVerdict(State.STOPPED, f"{job.sentence()}, as {asker} asked")
    if job.phase is JobPhase.CANCELLED and (asked := seen.wished & ENDS):
        return StateVerdict(State.STOPPING, f"a {min(asked)} is being carried out; {job.sentence()}")
    begun = "" if seen.begun else "; its program was never started"
    not_ours = ", not by mpstui" if job.phase is JobPhase.CANCELLED else ""
    if job.phase in _OVER:
        return StateVerdict(_OVER[job.phase], f"{job.sentence()}{not_ours}{begun}")
    return StateVerdict(State.LOST, f"{job.sentence()}, and nobody recorded how the training ended{begun}")


def _for_its_sake(record: ExitRecord, job: JobView) -> bool:
    """True if the attempt ended because its job did: by request, or by a signal sent to the whole job."""
    if record.action is not None:
        return record.action in (REQUEUE, CANCEL)
    return record.signal in SENT_SIGNALS and job.phase in _OVER and job.phase is not JobPhase.FAILED


def _not_heard(job: JobView) -> str:
    return "" if job.silent_since is not None else f"and {job.title} has not said more of it yet"
