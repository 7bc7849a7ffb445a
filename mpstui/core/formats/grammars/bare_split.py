"""``39001 train 2.8427``: step, split and value without a name, as small GPT trainers write to their log.txt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..points import Counters, LineReading, as_float, as_number
from . import Example, LineGrammar

_LINE = re.compile(
    r"(\d{1,12})[ \t,]{1,4}(train|val|valid|eval|test|hella)[ \t,]{1,4}(-?\d+\.\d+(?:[eE][-+]?\d+)?|nan|inf)\Z"
)
_EVALUATION = re.compile(r"(\d{1,12})((?: [a-z]\w{0,20}(?:_loss|_ppl|_acc) -?\d+(?:\.\d+)?){1,8})\Z")
"""``39250 valbin_ppl 19.4 valbin_loss 2.96``: named values of an evaluation behind a bare step."""


class BareSplit(LineGrammar):
    """What follows ``train`` is the loss."""

    name: ClassVar[str] = "step split value"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("10 train 2.5\n10 val 2.6\n11 train 2.4\n", 2.4, losses=2, step=11),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        """One reading."""
        match = _LINE.match(line)
        if match is not None:
            split, value = match[2], as_float(match[3]) or 0.0
            if split == "train":
                return (LineReading.training(self.name, Counters(step=as_number(match[1])), split, value),)
            return (LineReading.evaluation(self.name, {split: value}),)
        match = _EVALUATION.match(line)
        if match is None or "train" in line:
            return None
        words = match[2].split()
        values = {name: as_float(value) or 0.0 for name, value in zip(words[::2], words[1::2], strict=True)}
        return (LineReading.evaluation(self.name, values),)


GRAMMAR = BareSplit
