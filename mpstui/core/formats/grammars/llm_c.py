"""llm.c's main.log: ``s:10 trl:4.2 lr:0.0006 norm:1.2`` and ``s:20 tel:4.1`` (validation), ``s:20 eval:0.3``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_LINE = re.compile(
    r"s:(\d{1,12}) (trl|tel|eval):(-?[\d.]{1,24}(?:e[-+]?\d{1,3})?|nan|inf)"
    r"(?: lr:([\d.e+-]{1,24}))?(?: norm:([\d.e+-]{1,24}))?\Z"
)


class LlmC(LineGrammar):
    """Three-letter names."""

    name: ClassVar[str] = "llm.c"
    needles: ClassVar[tuple[str, ...]] = ("s:",)
    examples: ClassVar[tuple[Example, ...]] = (
        Example("s:10 trl:4.2 lr:0.0006 norm:1.2\ns:10 tel:4.1\n", 4.2, step=10, learning_rate=0.0006),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        """One reading per line."""
        match = _LINE.match(line)
        value = as_float(match[3]) if match else None
        if match is None or value is None:
            return None
        if match[2] != "trl":
            return (LineReading.evaluation(self.name, {match[2]: value}),)
        counters, rate, norm = Counters(step=parse_count(match[1])), as_float(match[4]), as_float(match[5])
        metrics = {} if norm is None else {"norm": norm}
        return (LineReading.training(self.name, counters, "trl", value, metrics=metrics, learning_rate=rate),)


GRAMMAR = LlmC
