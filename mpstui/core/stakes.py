"""What a run would lose if it ended now: the work that is in no checkpoint. It decides which actions ask first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .model.snapshot import Checkpoint, RunSnapshot, State
from .present import duration, whole, why_not_its_own

HAS_PROCESSES = frozenset({State.STARTING, State.RUNNING, State.STOPPING, State.UNSUPERVISED, State.STOP_FAILED})
ASKS_FROM_SECONDS = 120.0
"""Up to this much work may be lost without a question: being asked would be the greater nuisance."""
_LATE_SECONDS = 30.0
"""A heartbeat reports a checkpoint within this time of its file being written."""
_SHIPPED_TRAINERS = frozenset({"trainer", "mpstui_trainer"})


class Unsaved(NamedTuple):
    """Work that is in no checkpoint."""

    seconds: float | None
    """Amount of work, in seconds; None: unknown."""
    subject: str
    """The beginning of a sentence about it: ``20 steps (40s) since the checkpoint at step 300 are``."""
    none: bool = False
    """True if the newest checkpoint is from the newest step."""

    @property
    def matters(self) -> bool:
        """True if it is enough to ask before losing it, or of unknown amount."""
        return self.seconds is None or self.seconds > ASKS_FROM_SECONDS


def unsaved(snapshot: RunSnapshot) -> Unsaved:
    """Return the work since the newest checkpoint, in time, and in steps if the checkpoint's step is known."""
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
    """Say what a new attempt would repeat; ``caution`` is why it would start from step 0, if it would."""
    if snapshot.state in (State.QUEUED, State.BACKING_OFF) or snapshot.started is None:
        return ""
    of_nan = "" if caution else _of_nan(snapshot)
    if caution or (of_nan and not has_checkpoint(snapshot)):
        return f"{of_nan}Everything since the start ({time_text(lasted_seconds(snapshot))}) is done again."
    work = unsaved(snapshot)
    unless = " unless it saves first" if snapshot.state.active and not of_nan and not work.none else ""
    return f"{of_nan}{work.subject} done again{unless}."


def _of_nan(snapshot: RunSnapshot) -> str:
    """Say what follows from checkpoints saved after the loss had become NaN; empty if there are none."""
    broken, files = [one for one in _whole_ones(snapshot) if not one.finite], own_checkpoints(snapshot)
    if broken and files:
        return f"{broken[0].path.name} holds NaN: it continues from {files[0].path.name}. "
    return "Every checkpoint holds NaN: it starts from step 0. " if broken else ""


def lasted_seconds(snapshot: RunSnapshot) -> float | None:
    """Return how long the attempts of a run ran, up to its end or last sign of life; None: it was not started."""
    return snapshot.lasted(_worked_until(snapshot))


def _worked_until(snapshot: RunSnapshot) -> float:
    """Return until when it worked: now if it has processes, however silent, since they may still be working."""
    told = snapshot.updated or snapshot.ended or snapshot.seen
    return max(told, snapshot.seen) if snapshot.state in HAS_PROCESSES else told


def time_text(seconds: float | None) -> str:
    """Format a duration; ``time unknown`` for None."""
    return "time unknown" if seconds is None else duration(seconds)


def at_stake(snapshot: RunSnapshot, *, at_once: bool = False) -> Unsaved | None:
    """Return the work that ending it may lose, ``at_once`` or on request; None: nothing worth a question."""
    if snapshot.state not in HAS_PROCESSES or (saves_when_stopped(snapshot) and not at_once):
        return None
    if snapshot.state is State.STARTING and snapshot.started is None:
        return None
    lost = unsaved(snapshot)
    return lost if lost.matters else None


def own_checkpoints(snapshot: RunSnapshot) -> tuple[Checkpoint, ...]:
    """Return its complete checkpoints that no other run has written and whose tensors hold no NaN."""
    return tuple(item for item in _whole_ones(snapshot) if item.finite)


def _whole_ones(snapshot: RunSnapshot) -> tuple[Checkpoint, ...]:
    return tuple(item for item in snapshot.checkpoints if item.complete and not why_not_its_own(item, snapshot))


def has_checkpoint(snapshot: RunSnapshot) -> bool:
    """True if a new attempt has something to continue from.

    A checkpoint that the trainer reported may be somewhere that is not searched, so its report counts only for a brief
    snapshot, which lists no files.
    """
    return bool(own_checkpoints(snapshot)) or (snapshot.brief and snapshot.numbers.checkpoint is not None)


def goes_on_from(snapshot: RunSnapshot) -> str | None:
    """Return the checkpoint that a new attempt resumes from; ``{checkpoint}`` as long as its files are unknown."""
    own = own_checkpoints(snapshot)
    return str(own[0].path) if own else "{checkpoint}" if has_checkpoint(snapshot) else None


def saves_when_stopped(snapshot: RunSnapshot) -> bool:
    """True if it is known to save when asked to end: a shipped trainer, or one whose heartbeat says so."""
    beat = snapshot.numbers.beat
    return is_shipped_trainer(snapshot.argv) or (beat is not None and "stop" in beat.answers)


def is_shipped_trainer(argv: Sequence[str]) -> bool:
    """True if a command starts one of our trainers."""
    return any(word == "-m" and after in _SHIPPED_TRAINERS for word, after in pairwise(argv))


def _steps(count: int) -> str:
    return f"{whole(count)} step{'' if count == 1 else 's'}"
