"""``39001 train 2.8427``: step, split and value without a name, as small GPT trainers write to their log.txt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..numbers import as_float, as_number
from ..points import Counters, Phase, Reading
from . import LineGrammar

_LINE = re.compile(
    r"(\d{1,12})[ \t,]{1,4}(train|val|valid|eval|test|hella)[ \t,]{1,4}(-?\d+\.\d+(?:[eE][-+]?\d+)?|nan|inf)\Z"
)
_OTHERS = re.compile(r"(\d{1,12})((?: [a-z]\w{0,20}(?:_loss|_ppl|_acc) -?\d+(?:\.\d+)?){1,8})\Z")


class BareSplit(LineGrammar):
    """Step, split, value."""

    name: ClassVar[str] = "step split value"
    priority: ClassVar[int] = 30

    def read(self, line: str) -> Sequence[Reading] | None:
        """One reading; what follows ``train`` is the loss."""
        match = _LINE.match(line)
        if match is None:
            return self._evaluation(line)
        counters = Counters(step=as_number(match[1]))
        value = as_float(match[3])
        if match[2] == "train":
            return (
                Reading(
                    self.name,
                    counters,
                    loss=value,
                    loss_name="train",
                    series="train@s",
                    metrics={"train": value or 0.0},
                    certain=True,
                ),
            )
        return (Reading(self.name, phase=Phase.EVAL, eval_metrics={match[2]: value or 0.0}),)

    def _evaluation(self, line: str) -> Sequence[Reading] | None:
        """``39250 valbin_ppl 19.4 valbin_loss 2.96``: named values of an evaluation behind a bare step."""
        match = _OTHERS.match(line)
        if match is None or "train" in line:
            return None
        words = match[2].split()
        values = {name: as_float(value) or 0.0 for name, value in zip(words[::2], words[1::2], strict=True)}
        return (Reading(self.name, phase=Phase.EVAL, eval_metrics=values),)


GRAMMAR = BareSplit
