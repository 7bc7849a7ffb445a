"""The batch within the name of the loss, as in a family of tutorials: ``Loss after mini-batch   500: 2.131``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_LINE = re.compile(
    r"(?i)loss after (?:mini-?)?batch\s{1,8}(\d{1,9})\s?[:=]\s{0,4}(-?[\d.]{1,20}(?:e[-+]?\d{1,3})?|nan|inf)\Z"
)


class MiniBatches(LineGrammar):
    """The loss after a number of batches in the epoch; the epoch itself is on another line."""

    name = "mini-batches"
    needles = ("batch",)
    examples = (
        Example(
            "Starting epoch 2\nLoss after mini-batch   500: 2.131\nLoss after mini-batch  1000: 1.942\n",
            1.942,
            losses=2,
            epoch=2,
            step=1000,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = _LINE.match(line)
        loss = as_float(match[2]) if match is not None else None
        if match is None or loss is None:
            return None
        return (LineReading.training(self.name, Counters(epoch_step=parse_count(match[1])), "loss", loss),)


GRAMMAR = MiniBatches
