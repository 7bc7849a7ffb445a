"""Federated learning: ``Communication round 3/10``, ``--- Round 1 of 100: Training 5 Clients ---``.

A round is many short trainings, one per client, and stands for the epoch of such a program; it is announced on a line
of its own. A bare ``Round 3`` may be a round of anything: it is claimed only after a line about clients.
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
_LONGEST = 4000
"""How much of a line is looked through."""
_OF_CLIENTS = re.compile(
    r"(?i)(?:(?<![a-z])|_)(?:local[ _-]?ep(?:och)?s?|clients?[ _#:]{1,3}\d|(?:num|n)_clients|client_num\w{0,20}"
    r"|clients_per_round|comm(?:unication)?_rounds?|fed(?:avg|prox|erated))(?![a-z])"
)
"""What a program says that trains on the data of several clients."""
_PLAN = re.compile(
    r"\A\s?(?:Arguments: |args: )?Namespace\((?:[^\n]{0,4000}, )?"
    r"(?:comm(?:unication)?|global|federated|fed|fl|num|n|max|total)?_?rounds?=(\d{1,6})[,)]"
)
"""The arguments of a program, with the number of rounds."""


class Rounds(LineGrammar):
    """The start of a round; its values are on other lines."""

    name = "federated rounds"
    needles = ("ound", "OUND", "lient", "ocal", "LOCAL", "fed", "Fed")
    examples = (
        Example(" | Global Training Round : 6 |\n", losses=0, epoch=6, format="key-value"),
        Example("Communication round 3/10\n", losses=0, epoch=3, epochs=10, format="key-value"),
        Example("-------------Round number: 4-------------\n", losses=0, epoch=4, format="key-value"),
        Example("--- Round 1 of 100: Training 5 Clients ---\n", losses=0, epoch=1, epochs=100, format="key-value"),
    )

    def __init__(self) -> None:
        self._has_clients = False

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = _LINE.fullmatch(line)
        if match is None:
            self._has_clients = self._has_clients or _OF_CLIENTS.search(line[:_LONGEST]) is not None
            plan = _PLAN.match(line) if self._has_clients and "Namespace(" in line else None
            planned = None if plan is None else Counters(epochs=parse_count(plan[1]))
            return None if planned is None else (LineReading(self.name, planned, plan=True, of_trainings=True),)
        if not (match["whose"] or match["numbered"] or match["clients"] or self._has_clients):
            return None
        counters = Counters(parse_count(match["round"]), parse_count(match["rounds"] or ""))
        return (LineReading(self.name, counters, of_trainings=True),)


GRAMMAR = Rounds
