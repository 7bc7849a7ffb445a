"""MLPerf's event log, mixed into a program's output: ``:::MLLOG {"key": "eval_accuracy", "value": 0.75, ...}``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..measures import is_measure
from ..names import NameScope, classify
from ..points import NOWHERE, Counters, LineReading, as_float, as_number
from . import Example, LineGrammar

_MARK = ":::MLLOG "
_OF_EPOCH = ("epoch_start", "epoch_stop")
"""The events that name an epoch; others name the first of several epochs, or their number."""


class MLPerf(LineGrammar):
    """Results, and the starts and ends of epochs. Settings look the same but are not read."""

    name = "mlperf"
    needles = (_MARK,)
    examples = (
        Example(
            ':::MLLOG {"key": "block_start", "value": 1, "metadata": {"epoch_count": 1}}\n'
            ':::MLLOG {"key": "epoch_start", "value": null, "metadata": {"epoch_num": 3}}\n'
            ':::MLLOG {"key": "train_loss", "value": 1.25, "metadata": {"epoch_num": 3}}\n'
            ':::MLLOG {"key": "eval_accuracy", "value": 0.5, "metadata": {"epoch_num": 3}}\n',
            1.25,
            epoch=3,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        try:
            event = json.loads(line.partition(_MARK)[2])
            key, value, beside = str(event["key"]), event["value"], event["metadata"]
        except (ValueError, KeyError, TypeError):
            return ()
        counters = Counters(epoch=_epoch(beside.get("epoch_num"))) if isinstance(beside, dict) else NOWHERE
        if key in _OF_EPOCH:
            return (LineReading(self.name, counters, epoch_done=key == _OF_EPOCH[1]),) if counters.positioned else ()
        scope, values = classify(key).scope, _values(key, value)
        if scope is NameScope.NONE or not values:
            return ()
        if scope is NameScope.EVAL:
            return (replace(LineReading.evaluation(self.name, values), counters=counters),)
        return tuple(LineReading.training(self.name, counters, name, value) for name, value in values.items())


def _epoch(value: Any) -> float | None:
    """Shift a fractional epoch to count from 0: 1.05 is a twentieth of the first epoch, number 1."""
    epoch = as_number(value)
    return epoch if epoch is None or epoch < 1 or epoch == int(epoch) else epoch - 1


def _values(key: str, value: Any) -> Mapping[str, float]:
    """Return the values of an event by name; a value may be a mapping of several: ``{"BBOX": 0.38, "SEGM": 0.34}``."""
    told = {f"{key}/{name}": one for name, one in value.items()} if isinstance(value, dict) else {key: value}
    numbers = {name: as_float(one) for name, one in told.items()}
    return {name: number for name, number in numbers.items() if number is not None and is_measure(key)}


GRAMMAR = MLPerf
