"""Many readings at once, as columns of numbers: how a history of millions of points reaches its curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from .numbers import parse_number
from .points import MetricPoint, Stretch
from .shape import Slots

_MOST_REMEMBERED = 1 << 12


class Floats:
    """Numbers by their text. Losses are printed with a few digits, so that most of them were converted before."""

    def __init__(self) -> None:
        self._known: dict[bytes, float] = {}

    def of(self, column: Sequence[bytes]) -> list[float]:
        """A column of numbers; raises ValueError when one is none."""
        first = column[0]
        if first == column[-1] and column.count(first) == len(column):
            return [self._convert(first)] * len(column)
        values = list(map(self._known.get, column))
        if None in values:
            return [self._convert(text) if value is None else value for text, value in zip(column, values, strict=True)]
        return cast("list[float]", values)

    def _convert(self, text: bytes) -> float:
        value = self._known.get(text)
        if value is None:
            number = parse_number(text.decode())
            if number is None:
                raise ValueError(text)
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            value = self._known[text] = float(number)
        return value

    def all_of(self, slots: Slots, columns: Sequence[Sequence[bytes]]) -> dict[str, list[float]]:
        """The columns by the field of the reading that each sets; raises like `of`."""
        found: dict[str, list[float]] = {}
        for fields, column in zip(slots.targets, columns, strict=True):
            if not {"step", "epoch_step"} & set(fields):
                values = self.of(column)
                found.update(dict.fromkeys(fields, values))
        return found


def stretch(
    last: MetricPoint, losses: Sequence[float], steps: Sequence[float] | None, told: Mapping[str, Sequence[float]]
) -> Stretch:
    """Readings that simply go on, as columns.

    Args:
        last: the newest of them, placed.
        steps: the finest counter of each, if they have one of their own.
        told: what the readings say beside, by field: ``epoch``, ``learning_rate``, ``metrics.NAME`` ...
    """
    count = len(losses)
    named = {"metrics.": last.metrics, "eval_metrics.": last.eval_metrics}
    values = {
        name: told.get(prefix + name) or [value] * count
        for prefix, metrics in named.items()
        for name, value in metrics.items()
    }
    rate = last.learning_rate
    return Stretch(
        newest=last,
        steps=_run_steps(last, steps, count),
        epochs=told.get("epoch") or [_known(last.counters.epoch)] * count,
        losses=losses,
        rates=None if rate is None else told.get("learning_rate") or [rate] * count,
        values=values,
    )


def _run_steps(last: MetricPoint, steps: Sequence[float] | None, count: int) -> Sequence[float] | None:
    """Steps of the whole run; those of an epoch are moved behind the epochs before, where the plan tells how far."""
    whole = last.run_step
    if whole is None:
        return None
    if steps is None:
        return [whole] * count
    offset = whole - steps[-1]
    return [step + offset for step in steps] if offset else steps


def _known(value: float | None) -> float:
    return math.nan if value is None else float(value)
