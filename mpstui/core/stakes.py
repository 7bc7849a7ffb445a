"""What a run would lose if it ended now: the work that is in no checkpoint. It decides which action asks first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .model.snapshot import Checkpoint, RunSnapshot, State
from .present import duration, whole, why_not_its_own

HAS_PROCESSES = frozenset({State.STARTING, State.RUNNING, State.STOPPING, State.UNSUPERVISED, State.STOP_FAILED})
ASKS_FROM_SECONDS = 120.0
"""So much work may be lost without a question: to answer one takes longer than to do it again is annoying."""
_LATE_SECONDS = 30.0
"""A heartbeat tells of a checkpoint within this time of the file."""
_SHIPPED_TRAINERS = frozenset({"trainer", "mpstui_trainer"})


class Unsaved(NamedTuple):
    """Work that no checkpoint holds."""

    seconds: float | None
    """None: unknown how much."""
    subject: str
    """The beginning of a sentence that says so: ``20 steps (40s) since the checkpoint at step 300 are``."""
    none: bool = False
    """Whether the newest checkpoint is of the newest step."""

    @property
    def matters(self) -> bool:
        """Whether it is more than anybody would lose without a word, as far as it is known."""
        return self.seconds is None or self.seconds > ASKS_FROM_SECONDS


def unsaved(snapshot: RunSnapshot) -> Unsaved:
    """The work since the newest checkpoint, in steps where a checkpoint tells its own, and in time."""
    told, files = snapshot.numbers.checkpoint, own_checkpoints(snapshot)
    if told is not None and any(told.path == str(item.path) and not item.finite for item in snapshot.checkpoints):
        told = None
    if told is None and not files:
        began = snapshot.attempt_started or snapshot.started
        seconds = max(0.0, _worked_until(snapshot) - began) if began is not None else None
        work = "Work of unknown length" if seconds is None else f"{duration(seconds)} of work"
        if snapshot.brief:
            return Unsaved(seconds, f"{work} may be in no checkpoint, which is not known yet: perhaps everything is")
        return Unsaved(seconds, f"{work} is in no checkpoint: everything since the start is")
    file = max(files, key=lambda item: item.time, default=None)
    moment, step = (told.time, told.step) if told is not None else (None, None)
    if file is not None and file.time > (moment or 0.0) + (_LATE_SECONDS if told is not None else 0.0):
        moment, step = file.time, file.step
    pace = snapshot.numbers.steps_per_second
    began = max(moment, snapshot.attempt_started or 0.0) if moment is not None else None
    seconds = max(0.0, _worked_until(snapshot) - began) if began is not None else None
    if step is not None and snapshot.numbers.step is not None:
        lost = max(0, snapshot.numbers.step - step)
        if not lost:
            return Unsaved(0.0, f"Nothing since the checkpoint at step {whole(step)} is", none=True)
        spent = lost / pace if pace else seconds
        return Unsaved(spent, f"{_steps(lost)} ({time_text(spent)}) since the checkpoint at step {whole(step)} are")
    if seconds is None:
        return Unsaved(None, "An unknown amount of work since the newest checkpoint is")
    steps = f"about {_steps(round(seconds * pace))}" if pace else "unknown how many steps"
    return Unsaved(seconds, f"{duration(seconds)} of training ({steps}) since the newest checkpoint are")


def cost_of_restart(snapshot: RunSnapshot, caution: str) -> str:
    """What a new attempt does again, in sentences; ``caution``: why it would start from step 0."""
    if snapshot.state in (State.QUEUED, State.BACKING_OFF) or snapshot.started is None:
        return ""
    of_nan = "" if caution else _of_nan(snapshot)
    if caution or (of_nan and not has_checkpoint(snapshot)):
        return f"{of_nan}Everything since the start ({time_text(lasted_seconds(snapshot))}) is done again."
    work = unsaved(snapshot)
    unless = " unless it saves first" if snapshot.state.active and not of_nan and not work.none else ""
    return f"{of_nan}{work.subject} done again{unless}."


def _of_nan(snapshot: RunSnapshot) -> str:
    """What follows from checkpoints that a training saved after its loss had become NaN; empty where there are none."""
    broken, files = [one for one in _whole_ones(snapshot) if not one.finite], own_checkpoints(snapshot)
    if broken and files:
        return f"{broken[0].path.name} holds NaN: it continues from {files[0].path.name}. "
    return "Every checkpoint holds NaN: it starts from step 0. " if broken else ""


def lasted_seconds(snapshot: RunSnapshot) -> float | None:
    """How long the attempts of a run lived, up to its end or its last sign of life; None: it was not started."""
    return snapshot.lasted(_worked_until(snapshot))


def _worked_until(snapshot: RunSnapshot) -> float:
    """Until now while it has processes, however silent they are: nobody knows that they do nothing."""
    told = snapshot.updated or snapshot.ended or snapshot.seen
    return max(told, snapshot.seen) if snapshot.state in HAS_PROCESSES else told


def time_text(seconds: float | None) -> str:
    """A duration in words."""
    return "time unknown" if seconds is None else duration(seconds)


def at_stake(snapshot: RunSnapshot, *, at_once: bool = False) -> Unsaved | None:
    """The work that its end may cost, ``at_once`` or after it was asked to; None: nothing that is worth a question."""
    if snapshot.state not in HAS_PROCESSES or (saves_when_stopped(snapshot) and not at_once):
        return None
    if snapshot.state is State.STARTING and snapshot.started is None:
        return None
    lost = unsaved(snapshot)
    return lost if lost.matters else None


def own_checkpoints(snapshot: RunSnapshot) -> tuple[Checkpoint, ...]:
    """The whole ones that no other run has written, and whose tensors hold no NaN."""
    return tuple(item for item in _whole_ones(snapshot) if item.finite)


def _whole_ones(snapshot: RunSnapshot) -> tuple[Checkpoint, ...]:
    return tuple(item for item in snapshot.checkpoints if item.complete and not why_not_its_own(item, snapshot))


def has_checkpoint(snapshot: RunSnapshot) -> bool:
    """Whether a new attempt has something to continue from.

    What the trainer told of may lie where nobody looks for it: only a brief snapshot, without its files, rests on that.
    """
    return bool(own_checkpoints(snapshot)) or (snapshot.brief and snapshot.numbers.checkpoint is not None)


def goes_on_from(snapshot: RunSnapshot) -> str | None:
    """The checkpoint that a new attempt resumes from; while its files are unknown, the word that stands for one."""
    own = own_checkpoints(snapshot)
    return str(own[0].path) if own else "{checkpoint}" if has_checkpoint(snapshot) else None


def saves_when_stopped(snapshot: RunSnapshot) -> bool:
    """Whether it is known to save when it is asked to end, as the trainers that ship do, and who says so."""
    beat = snapshot.numbers.beat
    return is_shipped_trainer(snapshot.argv) or (beat is not None and "stop" in beat.answers)


def is_shipped_trainer(argv: Sequence[str]) -> bool:
    """Whether a command starts one of our trainers."""
    return any(word == "-m" and after in _SHIPPED_TRAINERS for word, after in pairwise(argv))


def _steps(count: int) -> str:
    return f"{whole(count)} step{'' if count == 1 else 's'}"
