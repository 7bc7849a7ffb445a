"""llm.c's main.log: ``s:10 trl:4.2 lr:0.0006 norm:1.2`` and ``s:20 tel:4.1`` (validation), ``s:20 eval:0.3``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..numbers import as_float, parse_count
from ..points import Counters, Phase, Reading
from . import LineGrammar

_LINE = re.compile(
    r"s:(\d{1,12}) (trl|tel|eval):(-?[\d.]{1,24}(?:e[-+]?\d{1,3})?|nan|inf)"
    r"(?: lr:([\d.e+-]{1,24}))?(?: norm:([\d.e+-]{1,24}))?\Z"
)


class LlmC(LineGrammar):
    """Three-letter names."""

    name: ClassVar[str] = "llm.c"
    priority: ClassVar[int] = 30
    needles: ClassVar[tuple[str, ...]] = ("s:",)

    def read(self, line: str) -> Sequence[Reading] | None:
        """One reading per line."""
        match = _LINE.match(line)
        value = as_float(match[3]) if match else None
        if match is None or value is None:
            return None
        if match[2] != "trl":
            return (Reading(self.name, phase=Phase.EVAL, eval_metrics={match[2]: value}),)
        metrics = {"trl": value} | ({"norm": norm} if (norm := as_float(match[5])) is not None else {})
        counters = Counters(step=parse_count(match[1]))
        return (
            Reading(
                self.name,
                counters,
                loss=value,
                loss_name="trl",
                learning_rate=as_float(match[4]),
                metrics=metrics,
                series="trl@s",
                certain=True,
            ),
        )


GRAMMAR = LlmC
