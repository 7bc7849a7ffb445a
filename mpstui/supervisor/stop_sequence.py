"""The stop sequence as a pure state machine: ask, give time (more while a checkpoint is being written), kill, verify.

Inputs are the time and what is alive (:class:`Sight`); outputs are the moves that :mod:`.attempt` carries out.
"""

from __future__ import annotations

import signal
from enum import Enum
from typing import NamedTuple

from ..wire.records import StopRule

HEIR_GRACE_SECONDS = 6.0
"""DataLoader workers check for their parent every 5 s (measured with torch 2.13), and leave once it is gone."""
KILL_AGAIN_SECONDS = 1.0
GIVE_UP_SECONDS = 10.0
"""A process that survives SIGKILL this long is stuck in an uninterruptible call: reporting that beats waiting."""


class StopStep(Enum):
    """How far the stop sequence has come."""

    ASKED = "asked"
    KILLING = "killing"
    STUCK = "stuck"
    GONE = "gone"


class Move(Enum):
    """What to do to the processes."""

    CONTINUE = "continue"
    ASK = "ask"
    KILL = "kill"


class Sight(NamedTuple):
    """What is still alive."""

    leader: bool
    """The trainer itself runs."""
    others: bool
    """Descendants run, or something still holds run.lock."""
    saving: bool = False
    """A checkpoint is being written."""

    @property
    def gone(self) -> bool:
        """Nothing is left of the attempt."""
        return not self.leader and not self.others


class StopSequence(NamedTuple):
    """How far the stop sequence of one attempt has come. All times are monotonic seconds."""

    rule: StopRule
    step: StopStep
    began: float
    since: float
    """When this step was reached."""
    leader_gone: float | None = None
    last_kill: float | None = None

    @property
    def over(self) -> bool:
        """Nothing is left to stop."""
        return self.step is StopStep.GONE


Moved = tuple[StopSequence, tuple[Move, ...]]


def asking_signal(rule: StopRule) -> signal.Signals:
    """Return the signal that asks a program to end; many save on Ctrl-C and not on SIGTERM."""
    return signal.SIGINT if rule.signal.lower() == "int" else signal.SIGTERM


def begin(rule: StopRule, now: float, *, force: bool) -> Moved:
    """Take the first step. The processes are also continued: a suspended one could not react.

    This is done even if no record says that they are paused: whoever suspended them may have left none, and a
    supervisor about to continue them may have died. SIGCONT does nothing to a running process.
    """
    if force:
        return _kill(StopSequence(rule, StopStep.KILLING, now, now), now)
    return StopSequence(rule, StopStep.ASKED, now, now), (Move.ASK, Move.CONTINUE)


def escalate(sequence: StopSequence, now: float) -> Moved:
    """Kill now instead of waiting; a sequence that already kills does not change."""
    if sequence.step in (StopStep.KILLING, StopStep.GONE):
        return sequence, ()
    return _kill(sequence._replace(step=StopStep.KILLING, since=now), now)


def advance(sequence: StopSequence, sight: Sight, now: float) -> Moved:
    """Take the next step, if it is time for one."""
    if sequence.step is StopStep.GONE:
        return sequence, ()
    if sight.gone:
        return sequence._replace(step=StopStep.GONE, since=now), ()
    if not sight.leader and sequence.leader_gone is None:
        sequence = sequence._replace(leader_gone=now)
    if sequence.step is StopStep.ASKED:
        waited, rule = now - sequence.began, sequence.rule
        if sequence.leader_gone is not None:
            patient = now - sequence.leader_gone < HEIR_GRACE_SECONDS
        else:
            patient = waited < rule.grace_seconds or (sight.saving and waited < rule.saving_cap_seconds)
        return (sequence, ()) if patient else _kill(sequence._replace(step=StopStep.KILLING, since=now), now)
    if sequence.step is StopStep.KILLING:
        if now - sequence.since >= GIVE_UP_SECONDS:
            return sequence._replace(step=StopStep.STUCK, since=now), ()
        if sequence.last_kill is None or now - sequence.last_kill >= KILL_AGAIN_SECONDS:
            return _kill(sequence, now)
    return sequence, ()


def _kill(sequence: StopSequence, now: float) -> Moved:
    return sequence._replace(last_kill=now), (Move.KILL,)
