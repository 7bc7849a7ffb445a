"""How much training is planned, in words: ``Starting training for 100 epochs``, ``max: 12 epochs``, ``= 375 steps``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..numbers import parse_count
from ..points import Counters, Reading
from . import LineGrammar

_PLANNED = re.compile(
    r"(?i)(?:\bfor|×|\bx|\*|=|:|\bmax|\btotal(?: of)?|\bto|->|\()\s{0,4}(?P<n>\d[\d,]{0,15})\s{1,4}"
    r"(?:(?:training|train|total|optimi[sz]ation|optimizer) )?"
    r"(?P<what>epochs|epochen|époques|épocas|épochs|steps|iterations|iters|updates|轮|エポック|에폭)(?![\w/])"
)
_UNTIL = re.compile(
    r"(?i)(?:->|→|\bto|\buntil|\btill)\s{1,4}(?P<what>steps?|iterations?|iters?|epochs?)\s{1,4}(?P<n>\d[\d,]{0,15})(?![\w.])"
)
_NOT_A_PLAN = re.compile(
    r"(?i)\b(?:every|after|patience|warm.?up|last|sav(?:e|ed|ing)|log|eval\w{0,8}|remain\w{0,3}|accum\w{0,10}|took|best|resum\w{0,3}|skip\w{0,4})\b|loss"
)
_MAX_LENGTH = 240


class Plan(LineGrammar):
    """A number in front of "epochs" or "steps"."""

    name: ClassVar[str] = "plan"
    priority: ClassVar[int] = 85
    needles: ClassVar[tuple[str, ...]] = (
        "pochs",
        "pocas",
        "poques",
        "pochen",
        "poch ",
        "step",
        "iter",
        "updates",
        "轮",
        "エポック",
        "에폭",
    )

    def read(self, line: str) -> Sequence[Reading] | None:
        """One plan; lines with a loss are records, not plans."""
        if len(line) > _MAX_LENGTH or _NOT_A_PLAN.search(line):
            return None
        counters = Counters()
        for match in (*_PLANNED.finditer(line), *_UNTIL.finditer(line)):
            number = parse_count(match["n"])
            if match["what"].lower()[:2] in ("ep", "ép", "轮", "エポ", "에폭"):
                counters = Counters(epochs=number, steps=counters.steps)
            else:
                counters = Counters(epochs=counters.epochs, steps=number)
        return None if counters == Counters() else (Reading(self.name, counters, plan=True),)


GRAMMAR = Plan
