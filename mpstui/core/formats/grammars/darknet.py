"""Darknet: ``123: 2.345678, 2.401234 avg loss, 0.001000 rate, 3.512345 seconds, 7872 images``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_VALUE = r"-?(?:[\d.]{1,20}|nan|inf)"
_LINE = re.compile(rf"(\d{{1,9}}): ({_VALUE}), ({_VALUE}) avg(?: loss)?, ([\d.]{{1,16}}) rate, ")


class Darknet(LineGrammar):
    """The loss of the batch, followed by its running average."""

    name = "darknet"
    needles = (" rate, ",)
    examples = (
        Example(
            " 12: 8.250000, 9.190909 avg loss, 0.001000 rate, 3.512345 seconds, 768 images\n",
            8.25,
            step=12,
            learning_rate=0.001,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = _LINE.match(line)
        loss = as_float(match[2]) if match else None
        if match is None or loss is None:
            return None
        counters, average = Counters(step=parse_count(match[1])), as_float(match[3])
        metrics = {} if average is None else {"avg loss": average}
        rate = as_float(match[4])
        return (LineReading.training(self.name, counters, "loss", loss, metrics=metrics, learning_rate=rate),)


GRAMMAR = Darknet
