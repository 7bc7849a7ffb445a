"""The elapsed time, a count with its percentage, and an unnamed loss, as in tutorials on sequence models.

``0m 10s (- 2m 30s) (5 6%) 2.7500``, ``[0m 10s (100 5%) 2.6250]``, ``5000 5% (0m 7s) 2.2500 Novak / Polish``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_CLOCK = r"(?:\d{1,5}h )?\d{1,6}m \d{1,2}s"
_COUNT = r"(?P<count>\d{1,12}) \d{1,3}(?:\.\d{1,4})?%"
_LOSS = r"(?P<loss>-?\d{1,9}\.\d{2,12}|nan|inf)"
_COUNT_BEHIND = re.compile(rf"\[?{_CLOCK} (?:\(- {_CLOCK}\) )?\({_COUNT}\) {_LOSS}\]?\Z")
_COUNT_IN_FRONT = re.compile(rf"{_COUNT} \({_CLOCK}\) {_LOSS}(?: \S|\Z)")


class Clocked(LineGrammar):
    """The number after the count and the times is the loss."""

    name = "clock and loss"
    needles = ("%) ", "% (")
    examples = (
        Example("0m 10s (- 2m 30s) (5 6%) 2.7500\n0m 20s (- 2m 20s) (10 12%) 2.5000\n", 2.5, losses=2, step=10),
        Example("[0m 10s (100 5%) 2.6250]\n", 2.625, step=100),
        Example("5000 5% (0m 7s) 2.2500 Novak / Polish x (Czech)\n", 2.25, step=5000),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = _COUNT_BEHIND.match(line) or _COUNT_IN_FRONT.match(line)
        loss = as_float(match["loss"]) if match is not None else None
        if match is None or loss is None:
            return None
        return (LineReading.training(self.name, Counters(step=parse_count(match["count"])), "loss", loss),)


GRAMMAR = Clocked
