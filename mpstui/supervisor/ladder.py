"""The stop ladder as a pure machine: ask, give time (more while a checkpoint is being written), kill, verify.

Time comes in as a number, what is alive as a :class:`Sight`; out come the moves that :mod:`.attempt` carries out.
"""

from __future__ import annotations

import signal
from enum import Enum
from typing import NamedTuple

from ..wire.records import StopRule

HEIR_GRACE_SECONDS = 6.0
"""DataLoader workers look for their parent every 5 s (measured with torch 2.13); then they leave by themselves."""
KILL_AGAIN_SECONDS = 1.0
GIVE_UP_SECONDS = 10.0
"""What survives SIGKILL for this long sits in an uninterruptible call: saying so beats waiting."""


class Rung(Enum):
    """How far the ladder was climbed."""

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
    """What is still there."""

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


class Ladder(NamedTuple):
    """One climb. ``began``, ``since`` and the others are monotonic seconds."""

    rule: StopRule
    rung: Rung
    began: float
    since: float
    """When this rung was reached."""
    leader_gone: float | None = None
    last_kill: float | None = None

    @property
    def over(self) -> bool:
        """Nothing is left to stop."""
        return self.rung is Rung.GONE


Climb = tuple[Ladder, tuple[Move, ...]]


def asking_signal(rule: StopRule) -> signal.Signals:
    """The polite signal of a profile; many programs save on Ctrl-C and not on SIGTERM."""
    return signal.SIGINT if rule.signal.lower() == "int" else signal.SIGTERM


def begin(rule: StopRule, now: float, *, force: bool) -> Climb:
    """The first rung. Whoever is asked is continued as well: a stopped process could not answer.

    Also where no record says that it is paused: whoever stopped it may have left no word, and the supervisor that was
    to continue it may have died before it did. To a process that runs SIGCONT does nothing.
    """
    if force:
        return _kill(Ladder(rule, Rung.KILLING, now, now), now)
    return Ladder(rule, Rung.ASKED, now, now), (Move.ASK, Move.CONTINUE)


def escalate(ladder: Ladder, now: float) -> Climb:
    """Somebody wants it now; on a ladder that kills already this changes nothing."""
    if ladder.rung in (Rung.KILLING, Rung.GONE):
        return ladder, ()
    return _kill(ladder._replace(rung=Rung.KILLING, since=now), now)


def advance(ladder: Ladder, sight: Sight, now: float) -> Climb:
    """Look, and climb if it is time."""
    if ladder.rung is Rung.GONE:
        return ladder, ()
    if sight.gone:
        return ladder._replace(rung=Rung.GONE, since=now), ()
    if not sight.leader and ladder.leader_gone is None:
        ladder = ladder._replace(leader_gone=now)
    if ladder.rung is Rung.ASKED:
        return _advance_asked(ladder, sight, now)
    if ladder.rung is Rung.KILLING:
        return _advance_killing(ladder, now)
    return ladder, ()


def _advance_asked(ladder: Ladder, sight: Sight, now: float) -> Climb:
    waited = now - ladder.began
    if ladder.leader_gone is not None:
        patient = now - ladder.leader_gone < HEIR_GRACE_SECONDS
    else:
        patient = waited < ladder.rule.grace_seconds or (sight.saving and waited < ladder.rule.saving_cap_seconds)
    if patient:
        return ladder, ()
    return _kill(ladder._replace(rung=Rung.KILLING, since=now), now)


def _advance_killing(ladder: Ladder, now: float) -> Climb:
    if now - ladder.since >= GIVE_UP_SECONDS:
        return ladder._replace(rung=Rung.STUCK, since=now), ()
    if ladder.last_kill is None or now - ladder.last_kill >= KILL_AGAIN_SECONDS:
        return _kill(ladder, now)
    return ladder, ()


def _kill(ladder: Ladder, now: float) -> Climb:
    return ladder._replace(last_kill=now), (Move.KILL,)
