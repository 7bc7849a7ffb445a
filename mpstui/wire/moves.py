"""The records of a run's move to another machine, on both sides."""

# No `from __future__ import annotations` here: reading needs the annotations as types, not as texts.
from typing import NamedTuple, Optional


class Move(NamedTuple):
    """``moved.json``: the run continues on another machine, and may not be started here any more."""

    token: str
    """The same on both sides."""
    to: str
    """The other machine, by the name that the person who moved the run uses."""
    time: float
    attempt: int
    """The last attempt on this machine."""
    device: Optional[str] = None
    """The device to train on there; written by the destination."""


class MoveStep:
    """How far a move has come: the steps on the machine that the run leaves, and a last one at its destination."""

    CODE = "code"
    """The code is being sent while the run keeps training."""
    SAVE = "save"
    END = "end"
    """The trainer was asked to end."""
    LIST = "list"
    """The trainer has ended, and its files are being listed."""
    SEND = "send"
    STAY = "stay"
    """The move was called off or failed: the run is about to continue where it was."""
    ARRIVE = "arrive"
    """The run has been handed over, and is about to begin at its destination."""


class Leaving(NamedTuple):
    """``moving.json``: how far a move has come. Valid only while ``moving.lock`` is held."""

    to: str
    """The other machine, by the name that the person who moves the run uses."""
    step: str
    """One of :class:`MoveStep`."""
    since: float
    """When the move began."""
