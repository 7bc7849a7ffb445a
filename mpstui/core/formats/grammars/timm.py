"""timm: ``Train: 0 [  32/33 (100%)]  Loss: 1.336 (4.00)  Time: ..  LR: 5.000e-04``, ``Test: [  5/10] ..``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..assemble import assemble
from ..pairs import read_pairs
from ..points import Counters, LineReading, parse_count, series_name
from . import Example, LineGrammar

_HEAD = re.compile(r"Train: (\d{1,6}) \[\s{0,9}(\d{1,9})/(\d{1,9}) \(")


class Timm(LineGrammar):
    """Training lines of timm's train.py; its test lines say so themselves."""

    name = "timm"
    needles = ("Train: ",)
    examples = (
        Example(
            "Train: 3 [  32/33 (100%)]  Loss: 1.336 (4.00)  Time: 0.9s, 8.57/s (0.2s, 36.6/s)  LR: 5.000e-04\n"
            "Test: [   0/29]  Time: 0.5 (0.5)  Loss:  0.69 (0.69)\n",
            1.336,
            epoch=3,
            step=32,
            steps=33,
            learning_rate=5e-4,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        """One reading: value in front of the average in brackets."""
        head = _HEAD.match(line)
        reading = assemble(self.name, line, read_pairs(line[head.end() :]), strict=False) if head else None
        if head is None or reading is None:
            return None
        counters = Counters(
            epoch=parse_count(head[1]), epoch_step=parse_count(head[2]), epoch_steps=parse_count(head[3])
        )
        return (replace(reading, counters=counters, series=series_name("loss", counters), certain=True),)


GRAMMAR = Timm
