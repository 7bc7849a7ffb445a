"""Step, split and value without names: the logs of llm.c and of the small GPT trainers around it.

``39001 train 2.8427``, ``39250 valbin_ppl 19.4 valbin_loss 2.96``; llm.c ``s:10 trl:4.2 lr:0.0006``, ``s:20 tel:4.1``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, as_float, as_number
from . import Example, LineGrammar

_VALUE = r"(-?\d+\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
_LINE = re.compile(rf"(\d{{1,12}})[ \t,]{{1,4}}(train|val|valid|eval|test|hella)[ \t,]{{1,4}}{_VALUE}\Z")
_LLM_C = re.compile(
    r"s:(\d{1,12}) (trl|tel|eval):(-?[\d.]{1,24}(?:e[-+]?\d{1,3})?|nan|inf)"
    r"(?: lr:([\d.e+-]{1,24}))?(?: norm:([\d.e+-]{1,24}))?\Z"
)
_SPLIT_FIRST = re.compile(r"(train|valid|test) (\d{3,9}) (\d\.\d{6}e[-+]\d\d|nan|inf) \d{1,3}\.\d{6} \d{1,3}\.\d{6}\Z")
"""The batch, then the loss and two accuracies so far, printed by architecture search programs."""
_OF_STEP = re.compile(r"(\d{1,12}):(\t)(-?\d{1,9}\.\d{9}|nan|inf)\Z")
"""The step and its loss without a name, below ``Epoch: 3``, printed by WaveGlow and Flowtron."""
_EVALUATION = re.compile(r"(\d{1,12})((?: [a-z]\w{0,20}(?:_loss|_ppl|_acc) -?\d+(?:\.\d+)?){1,8})\Z")


class BareSplit(LineGrammar):
    """The value after ``train`` or ``trl`` is the loss."""

    name = "step split value"
    examples = (
        Example("10 train 2.5\n10 val 2.6\n11 train 2.4\n", 2.4, losses=2, step=11),
        Example("train 050 1.250000e+00 31.250000 80.500000\nvalid 050 1.5e+00 30.250000 80.500000\n", 1.25, step=50),
        Example("Epoch: 3\n70:\t-4.250000000\n71:\t-4.500000000\n", -4.5, losses=2, epoch=3, step=71),
        Example("s:10 trl:4.2 lr:0.0006 norm:1.2\ns:10 tel:4.1\n", 4.2, step=10, learning_rate=0.0006),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = _LINE.match(line) or _LLM_C.match(line) or _OF_STEP.match(line)
        value = as_float(match[3]) if match is not None else None
        if match is not None and value is not None:
            step, split, _, *more = match.groups()
            if split not in ("train", "trl", "\t"):
                return (LineReading.evaluation(self.name, {split: value}),)
            rate, norm = map(as_float, more) if more else (None, None)
            metrics = {} if norm is None else {"norm": norm}
            counters = Counters(step=as_number(step))
            return (
                LineReading.training(
                    self.name, counters, split.strip() or "loss", value, metrics=metrics, learning_rate=rate
                ),
            )
        batch = _SPLIT_FIRST.match(line)
        value = as_float(batch[3]) if batch is not None else None
        if batch is not None and value is not None:
            if batch[1] != "train":
                return ()  # an interim value: the result follows on a line of its own
            counters = Counters(epoch_step=as_number(batch[2]))
            return (LineReading.training(self.name, counters, "train loss", value),)
        match = _EVALUATION.match(line)
        if match is None or "train" in line:
            return None
        words = match[2].split()
        values = {name: as_float(value) or 0.0 for name, value in zip(words[::2], words[1::2], strict=True)}
        return (LineReading.evaluation(self.name, values),)


GRAMMAR = BareSplit
