"""A move of a run to another machine, while it is under way."""

from __future__ import annotations

from typing import NamedTuple

from ...wire.moves import MoveStep
from .moment import Moment

_DOING = {
    MoveStep.CODE: "its code is sent",
    MoveStep.SAVE: "it saves",
    MoveStep.END: "it ends",
    MoveStep.LIST: "its files are listed",
    MoveStep.SEND: "its files are sent",
    MoveStep.STAY: "cancelled, it continues where it was",
    MoveStep.ARRIVE: "it has arrived, and begins",
}


class Moving(NamedTuple):
    """The progress of a move."""

    to: str
    """The other machine, as named by the person who moves the run."""
    step: str
    """One of :class:`.MoveStep`."""
    since: Moment
    """When the move began."""

    @property
    def called_off(self) -> bool:
        """True if the move was cancelled: the run stays where it was."""
        return self.step == MoveStep.STAY

    @property
    def sentence(self) -> str:
        """``to gpu1: its files are sent``."""
        return f"to {self.to}: {_DOING.get(self.step, self.step)}"
