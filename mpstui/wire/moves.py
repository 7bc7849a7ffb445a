"""The record of a run's move to another machine, on both sides."""

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
