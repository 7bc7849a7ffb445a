"""The state of a run, a pure function of its witnesses: two kernel locks, the records, the process table.

It follows this table, for the newest attempt (S: supervisor.lock, R: run.lock or a recorded process still alive):

=========  ====  ====  ==========================================================================
exit.json  S     R     meaning
=========  ====  ====  ==========================================================================
yes        free  free  ended: finished, stopped, killed or failed, as the record says
yes        free  held  ended, but descendants of the trainer are still alive
any        held  any   supervised: as the supervisor's own status says
no         free  held  unsupervised: the supervisor died, the trainer lives
no         free  free  lost: the machine restarted (other boot id), or the supervisor was killed
=========  ====  ====  ==========================================================================

Processes that drop the inherited lock (torchrun starts its ranks with closed descriptors) are found through the process
tree that the supervisor recorded; after a reboot, those pids mean nothing.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Sequence
from typing import NamedTuple

from ...wire.endings import signal_name, told_cause
from ...wire.jobs import CANCEL
from ...wire.moves import Move, MoveStep
from ...wire.records import ExitRecord, Spec, Status
from ..model.exits import ExitSummary
from ..model.jobs import JobView
from ..model.moves import Moving
from ..model.snapshot import State

SENT_SIGNALS = frozenset({signals.SIGHUP, signals.SIGINT, signals.SIGQUIT, signals.SIGKILL, signals.SIGTERM})
"""Signals that somebody sent; any other (SIGSEGV, SIGABRT, ...) means that the program crashed."""
NEWCOMER_SECONDS = 10.0
"""How long a new run directory may lack what its launcher and supervisor are about to write."""
JUDGING_SECONDS = 5.0
"""How long a supervisor may take to record whether it restarts a crashed attempt."""
_SILENT = "its supervisor is stopped by a signal and sees nothing: `mpstui stop`, or `kill -CONT`, lets it go on"
_HELD = frozenset({MoveStep.LIST, MoveStep.SEND})
"""Steps of a move during which the mover holds the supervisor's lock."""


class StateVerdict(NamedTuple):
    """A state, and a sentence that names the witness for it."""

    state: State
    reason: str


class RunWitnesses(NamedTuple):
    """Everything that a state is derived from, gathered at one moment."""

    spec: Spec | None = None
    job: JobView | None = None
    """What the scheduler says, if the run is a scheduler's job: see :mod:`.scheduled`."""
    wished: frozenset[str] = frozenset()
    """Unanswered ``restart``, ``stop`` and ``kill`` requests of a scheduler's job whose newest attempt has ended."""
    moved: Move | None = None
    """Set once the run was handed over to another machine."""
    status: Status | None = None
    exit: ExitRecord | None = None
    """The exit record of the newest attempt."""
    attempt: int = 0
    """The number of the newest attempt; 0 if there is none."""
    begun: bool = False
    """True if the program was started: there is a launch record, a pid or an exit record."""
    supervisor_held: bool = False
    moving: Moving | None = None
    """Set while the run is being moved to another machine: the mover holds a lock, which is released if it dies."""
    run_held: bool = False
    alive: tuple[int, ...] = ()
    """Recorded processes (the trainer and its tree) that are still alive, identified by pid *and* start time."""
    supervisor_stopped: bool = False
    """True if a signal (SIGSTOP) has frozen the supervisor, which then sees and does nothing."""
    same_boot: bool | None = None
    """Whether the status was written during this boot; None if the system has no boot id."""
    elsewhere: str = ""
    """Why a waiting run without a supervisor is not ours to start."""
    age_seconds: float = 0.0
    """Time since the run directory last changed."""
    ended_seconds_ago: float | None = None
    """Time since the end in the exit record."""
    phase: str | None = None
    """The phase in the attempt's newest heartbeat; None if it wrote none in our schema."""
    unreadable: tuple[tuple[str, str], ...] = ()
    """Records with invalid content: file name and complaint (``status.json: not JSON ...``)."""
    newer: tuple[tuple[str, str], ...] = ()
    """Records of a newer schema, which may be read but not acted upon; pairs as in ``unreadable``."""

    @property
    def trainer_lives(self) -> bool:
        """True if a lock or a recorded process shows that some part of the run is still alive."""
        return self.run_held or (bool(self.alive) and self.same_boot is not False)


def derive(seen: RunWitnesses) -> StateVerdict:
    """Return the state of a run, and what proves it."""
    if seen.newer:
        return StateVerdict(
            State.UNREADABLE, f"written by a newer mpstui ({seen.newer[0][1]}): {_life(seen)}; look, do not touch"
        )
    if seen.spec is None and not (seen.supervisor_held or seen.trainer_lives):
        damaged = dict(seen.unreadable).get("spec.json")
        if damaged is None and seen.age_seconds < NEWCOMER_SECONDS:
            return StateVerdict(State.STARTING, "its spec.json is being written")
        return StateVerdict(State.UNREADABLE, f"{damaged or 'spec.json is missing'}; {_life(seen)}")
    if seen.supervisor_held:
        verdict = _supervised(seen)
        return verdict._replace(reason=f"{verdict.reason}; {_SILENT}") if seen.supervisor_stopped else verdict
    if seen.moved is not None and not seen.trainer_lives:
        return StateVerdict(State.STOPPED, f"moved to {seen.moved.to}, where it continues")
    if seen.exit is not None:
        return _outlived(seen, ended(seen.exit, seen.phase))
    if seen.trainer_lives:
        unknown = "supervisor.lock" in dict(seen.unreadable)
        known = "whether its supervisor lives cannot be known" if unknown else "its supervisor has died"
        return StateVerdict(State.UNSUPERVISED, f"{known}, the training goes on{_doubts(seen)}")
    if "exit.json" in dict(seen.unreadable):
        return StateVerdict(State.UNREADABLE, f"it has ended, but {seen.unreadable[0][1]}")
    return _vanished(seen)


def while_moved(seen: RunWitnesses, verdict: StateVerdict) -> StateVerdict:
    """Adjust the state of a run that may be on the move: its end is not final, it continues here or there.

    Args:
        verdict: its state if it were not being moved.
    """
    moving = seen.moving
    if moving is None or moving.step == MoveStep.CODE or seen.trainer_lives:
        return verdict
    if moving.step == MoveStep.ARRIVE:
        began = StateVerdict(State.STARTING, "it has arrived from another machine, and is about to begin")
        return verdict if verdict.state.active else began
    if verdict.state.active and moving.step not in _HELD:
        return verdict
    return StateVerdict(State.MOVING, f"it is being moved {moving.sentence}")


def ended(record: ExitRecord, phase: str | None) -> StateVerdict:
    """Return how an attempt ended.

    Args:
        phase: the phase in its newest heartbeat; None if it wrote none.
    """
    if record.spawn_error:
        return StateVerdict(State.FAILED, f"could not be started: {record.spawn_error}")
    if record.cause == "dependency_failed":
        return _never_started(record.evidence.get("dependency"))
    asker = record.requested_by or "somebody"
    if record.action is not None and never_began(record):
        state = State.KILLED if record.action == "kill" else State.STOPPED
        return StateVerdict(state, f"never started: {asker} asked for a {record.action} before it began")
    if record.action == "kill":
        return StateVerdict(State.KILLED, f"{_how(record)}: killed as {asker} asked")
    if record.action == CANCEL:
        return StateVerdict(
            State.KILLED, f"its {asker} job was cancelled through the scheduler, not by mpstui: {_how(record)}"
        )
    if record.action in ("stop", "restart", "requeue"):
        return StateVerdict(State.STOPPED, f"{_how(record)} after {asker} asked for a {record.action}")
    named = signal_name(record.signal) if record.signal is not None else ""
    told = told_cause(record.cause)
    cause = f" ({told})" if told and told != named else ""
    if record.signal is not None and record.signal in SENT_SIGNALS:
        return StateVerdict(State.KILLED, f"ended by {named}, which mpstui did not send{cause}")
    if record.signal is not None:
        return StateVerdict(State.FAILED, f"crashed with {named}{cause}")
    if record.code is None:
        done = "; its last heartbeat says done" if phase == "done" else ""
        return StateVerdict(State.LOST, f"it exited, exit code unknown{done}")
    if record.code == 0 and phase in (None, "done"):
        return StateVerdict(State.FINISHED, "exit code 0" + (", last heartbeat says done" if phase else ""))
    if record.code == 0:
        return StateVerdict(State.STOPPED, f"exit code 0, but its last heartbeat says {phase}: it ended early")
    if record.code - 128 in SENT_SIGNALS:
        name = signal_name(record.code - 128)
        cause = "" if told == name else cause
        why = f"exit code {record.code}, a shell's word for {name}, which mpstui did not send{cause}"
        return StateVerdict(State.KILLED, why)
    return StateVerdict(State.FAILED, f"exit code {record.code}{cause}")


def never_began(record: ExitRecord) -> bool:
    """True if an attempt was called off before its program started, by a request or by the run it waited for."""
    called_off = record.action is not None or record.cause == "dependency_failed"
    nothing_ran = record.started is None and record.code is None and record.signal is None
    return called_off and nothing_ran and not record.unknown and not record.spawn_error


def exit_summary(record: ExitRecord) -> ExitSummary:
    """Return the exit record as shown on the screen."""
    return ExitSummary(
        code=record.code,
        signal=record.signal,
        cause=record.cause,
        requested_by=record.requested_by,
        action=record.action,
        ended=record.ended,
        spawn_error=record.spawn_error,
        evidence=record.evidence,
        unbegun=never_began(record),
    )


def _never_started(why: str | None) -> StateVerdict:
    return StateVerdict(State.DEPENDENCY_FAILED, f"never started: {why or 'a run it waited for did not finish'}")


def _supervised(seen: RunWitnesses) -> StateVerdict:
    """Return the state according to the living supervisor's own status."""
    status, record = seen.status, seen.exit
    if status is None:
        if seen.unreadable and record is None:
            state = State.RUNNING if seen.trainer_lives else State.STARTING
            return StateVerdict(state, f"its supervisor lives, but {seen.unreadable[0][1]}")
        return ended(record, seen.phase) if record else StateVerdict(State.STARTING, "its supervisor is coming up")
    match status.phase:
        case "queued":
            return StateVerdict(State.QUEUED, status.message or "waits for its turn")
        case "starting" if record is not None or status.trainer is None:
            return StateVerdict(State.STARTING, status.message or f"attempt {max(1, status.attempt)} is being started")
        case "backing_off":
            after = f" after {told_cause(record.cause)}" if record and record.cause else ""
            return StateVerdict(State.BACKING_OFF, status.message or f"waits before it starts again{after}")
        case "stop_failed":
            return _stop_failed(seen, status)
        case "dependency_failed":
            return _never_started(status.message)
        case phase if record is None:
            if phase == "stopping":
                return StateVerdict(
                    State.STOPPING, status.message or f"a {status.action or 'stop'} is being carried out"
                )
            if seen.trainer_lives or not seen.begun:
                held = status.message if status.held_for else None
                return StateVerdict(State.RUNNING, (held or "its supervisor and its processes live") + _doubts(seen))
            return StateVerdict(State.STOPPING, "its processes have just ended, the exit record is being written")
    if status.action == "restart":
        return StateVerdict(State.STARTING, "the next attempt is being prepared")
    # The moment between the exit record and the supervisor's decision whether to restart must not look like the end.
    # The wait is bounded: on a full disk the decision may not get written for a long time.
    may_restart = seen.spec is not None and record.action is None and record.cause in seen.spec.restart.on
    just_now = seen.ended_seconds_ago is not None and 0.0 <= seen.ended_seconds_ago < JUDGING_SECONDS
    if status.phase == "running" and may_restart and just_now:
        return StateVerdict(
            State.BACKING_OFF, f"it has just crashed ({told_cause(record.cause)}), which its profile restarts after"
        )
    return _outlived(seen, ended(record, seen.phase))


def _stop_failed(seen: RunWitnesses, status: Status) -> StateVerdict:
    if seen.exit is not None and not (seen.trainer_lives or status.survivors):
        return ended(seen.exit, seen.phase)
    return StateVerdict(
        State.STOP_FAILED, f"could not be ended: {_processes(status.survivors or seen.alive)} still live"
    )


def _outlived(seen: RunWitnesses, verdict: StateVerdict) -> StateVerdict:
    """Return the verdict on an ended run, mentioning processes that are still alive."""
    if not seen.trainer_lives:
        return verdict
    if seen.status is not None and seen.status.phase == "stop_failed":
        return _stop_failed(seen, seen.status)
    left = _processes(seen.alive) if seen.alive else "a process that holds run.lock"
    return verdict._replace(reason=f"{verdict.reason}; outlived by {left}")


def _vanished(seen: RunWitnesses) -> StateVerdict:
    """Return the verdict if no lock is held and no end was recorded."""
    status = seen.status
    if status is not None and status.phase == "dependency_failed":
        return _never_started(status.message)
    if not seen.begun:
        if status is None and seen.age_seconds < NEWCOMER_SECONDS:
            return StateVerdict(State.STARTING, "its supervisor is coming up")
        if status is not None and status.action in ("stop", "kill"):
            return StateVerdict(State.STOPPED, "cancelled before its first attempt")
        if status is not None and status.phase == "queued":
            if seen.elsewhere:
                return StateVerdict(State.LOST, f"queued elsewhere, not started here: {seen.elsewhere}")
            text = "its supervisor died while it waited for its turn; it waits for another one"
            return StateVerdict(State.QUEUED, text + _doubts(seen))
        return StateVerdict(State.LOST, "its supervisor died before it started the program" + _doubts(seen))
    wish = f" while a {status.action} was being carried out" if status and status.action else ""
    if seen.same_boot is False:
        return StateVerdict(
            State.LOST, f"the machine restarted{wish}: power loss or reboot, no exit record" + _doubts(seen)
        )
    if seen.same_boot is None:
        return StateVerdict(
            State.LOST, f"training and supervisor are gone without an exit record{wish}" + _doubts(seen)
        )
    how = "its supervisor was killed, and the training ended with nobody to record how"
    return StateVerdict(State.LOST, how + wish + _doubts(seen))


def _how(record: ExitRecord) -> str:
    if record.signal is not None:
        return f"ended by {signal_name(record.signal)}"
    return "ended with an unknown code" if record.code is None else f"exit code {record.code}"


def _life(seen: RunWitnesses) -> str:
    if seen.supervisor_held:
        return "it is supervised"
    if seen.trainer_lives:
        return "it still runs"
    unknown = any(name.endswith(".lock") for name, _ in seen.unreadable)
    return "whether it runs cannot be told" if unknown else "nothing of it runs"


def _doubts(seen: RunWitnesses) -> str:
    return f" ({seen.unreadable[0][1]})" if seen.unreadable else ""


def _processes(pids: Sequence[int]) -> str:
    shown = ", ".join(str(pid) for pid in list(pids)[:5])
    return f"process {shown}" if len(pids) == 1 else f"{len(pids)} processes ({shown})" if pids else "some processes"
