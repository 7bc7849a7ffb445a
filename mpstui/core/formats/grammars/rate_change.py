"""Schedulers that speak: ``learning rate 0.0002 -> 0.0001``, ``Adjusting learning rate of group 0 to 1e-4``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..numbers import as_float
from ..points import Reading
from . import LineGrammar

_NUMBER = r"(\d[\d.]{0,24}(?:[eE][-+]?\d{1,3})?)"
_CHANGE = re.compile(
    rf"(?i)\b(?:learning rate|lr)\b[^\d\n]{{0,24}}{_NUMBER}\s{{0,4}}(?:->|=>|→|to)\s{{0,4}}{_NUMBER}"
    rf"|\blearning rate of group 0 to {_NUMBER}"
    rf"|(?:reduc|adjust|sett|decreas|lower|updat|chang)\w{{2,4}} (?:the )?(?:learning rate|lr) to {_NUMBER}"
)


class RateChange(LineGrammar):
    """A new learning rate in a sentence."""

    name: ClassVar[str] = "rate change"
    priority: ClassVar[int] = 40
    needles: ClassVar[tuple[str, ...]] = ("earning rate", "lr ", "LR ")

    def read(self, line: str) -> Sequence[Reading] | None:
        """The rate that holds from here on."""
        match = _CHANGE.search(line[:400])
        if match is None:
            return None
        rate = as_float(match[2] or match[3] or match[4])
        return (Reading(self.name, learning_rate=rate),)


GRAMMAR = RateChange
