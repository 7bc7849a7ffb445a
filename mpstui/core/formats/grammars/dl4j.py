"""Deeplearning4j: ``Score at iteration 100 is 0.52``; what it calls a score is the loss."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_LINE = re.compile(
    r"(?:\A|\s)Score at iteration (\d{1,12}) is (-?\d{1,12}(?:\.\d{1,20})?(?:E-?\d{1,3})?|-?Infinity|NaN)\Z"
)


class Dl4j(LineGrammar):
    """The output of its ``ScoreIterationListener``."""

    name = "dl4j"
    needles = ("Score at iteration ",)
    examples = (
        Example("Score at iteration 0 is 1.6\nScore at iteration 100 is 0.75\n", 0.75, 2, step=100),
        Example(
            "06:38:16.402 [main] INFO org.deeplearning4j.optimize.listeners.ScoreIterationListener - "
            "Score at iteration 20 is 5.25E-4\n",
            5.25e-4,
            step=20,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = _LINE.search(line, 0, 400)
        value = None if match is None else as_float(match[2])
        if match is None or value is None:
            return None
        return (LineReading.training(self.name, Counters(step=parse_count(match[1])), "loss", value),)


GRAMMAR = Dl4j
