"""Federated learning: ``Communication round 3/10``, ``--- Round 1 of 100: Training 5 Clients ---``.

A round is many short trainings, one per client, and stands for the epoch of such a program; it is announced on a line
of its own. A bare ``Round 3`` is not claimed: it may be a round of anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, parse_count
from . import Example, LineGrammar

_LINE = re.compile(
    r"(?i)[^\w\n]{0,80}"
    r"(?P<whose>(?:global|communication|comm|federated|fed|fl|server|aggregation)[ _-](?:training[ _-])?)?"
    r"round(?P<numbered> (?:number|no\.?|index))?[\s:#=\[(]{0,12}(?P<round>\d{1,6})"
    r"(?:\s?(?:/|of)\s?(?P<rounds>\d{1,6}))?"
    r"(?P<clients>[\])\s:,|.-]{1,6}[a-z ]{0,30}\d{1,6} (?:of \d{1,6} )?clients?)?[^\w\n]{0,80}"
)


class Rounds(LineGrammar):
    """The start of a round; its values are on other lines."""

    name = "federated rounds"
    needles = ("ound", "OUND")
    examples = (
        Example(" | Global Training Round : 6 |\n", losses=0, epoch=6, format="key-value"),
        Example("Communication round 3/10\n", losses=0, epoch=3, epochs=10, format="key-value"),
        Example("-------------Round number: 4-------------\n", losses=0, epoch=4, format="key-value"),
        Example("--- Round 1 of 100: Training 5 Clients ---\n", losses=0, epoch=1, epochs=100, format="key-value"),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = _LINE.fullmatch(line)
        if match is None or not (match["whose"] or match["numbered"] or match["clients"]):
            return None
        counters = Counters(parse_count(match["round"]), parse_count(match["rounds"] or ""))
        return (LineReading(self.name, counters, of_trainings=True),)


GRAMMAR = Rounds
