"""OpenNMT-py: ``Step 50/100000; acc: 3.40; ppl: 9861.20; xent: 9.20; lr: 0.00001; 12345/13456 tok/s; 10 sec``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_HEAD = re.compile(r"Step (\d{1,12})/\s{0,8}(\d{1,12});")
_VALUE = re.compile(r"\b([a-z]{2,12}): {1,6}(-?[\d.]{1,24}(?:e[-+]\d{1,3})?|nan|inf)\b")


class Opennmt(LineGrammar):
    """The loss is the cross entropy per token."""

    name = "opennmt"
    needles = ("xent:",)
    examples = (
        Example(
            "[2024-01-02 10:00:00,123 INFO] "
            "Step 50/1000; acc: 3.4; ppl: 98.2; xent: 4.59; lr: 0.00001; 123/134 tok/s; 10 sec\n",
            4.59,
            step=50,
            steps=1000,
            learning_rate=1e-5,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        head = _HEAD.match(line)
        if head is None:
            return None
        values = {name: value for name, text in _VALUE.findall(line[:600]) if (value := as_float(text)) is not None}
        loss, rate = values.get("xent"), values.pop("lr", None)
        if loss is None:
            return None
        counters = Counters(step=parse_count(head[1]), steps=parse_count(head[2]))
        return (LineReading.training(self.name, counters, "xent", loss, metrics=values, learning_rate=rate),)


GRAMMAR = Opennmt
