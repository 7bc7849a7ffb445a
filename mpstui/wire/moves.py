"""The records of a run's move to another machine, on both sides."""

# No `from __future__ import annotations` here: reading needs the annotations as types, not as texts.
from typing import NamedTuple, Optional


class Move(NamedTuple):
    """``moved.json``: the run goes on on another machine, and may not be started here any more."""

    token: str
    """The same on both sides."""
    to: str
    """The machine's name, as whoever moved it calls it."""
    time: float
    attempt: int
    """The last one here."""
    device: Optional[str] = None
    """What it was to be trained on there; written where it arrives."""


class MoveStep:
    """How far a move is, on the machine that the run leaves; the last one where it arrives."""

    CODE = "code"
    """Its code is sent, while it trains on."""
    SAVE = "save"
    END = "end"
    """It was asked to."""
    LIST = "list"
    """It has ended, and its files are looked through."""
    SEND = "send"
    STAY = "stay"
    """It was called off, or failed: the run is about to go on where it was."""
    ARRIVE = "arrive"
    """It has been given away, and is about to begin where it went."""


class Leaving(NamedTuple):
    """``moving.json``: how far a move is. It holds as long as ``moving.lock`` is held, and says nothing afterwards."""

    to: str
    """The machine's name, as whoever moves it calls it."""
    step: str
    """One of :class:`MoveStep`."""
    since: float
    """When the move began."""
