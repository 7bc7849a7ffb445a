"""Columns of texts to columns of numbers, and these to points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from .points import MetricPoint, PointColumns
from .shape import LineShape

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
            number = float(text.replace(b",", b"") if b"," in text else text)
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            value = self._known[text] = number
        return value

    def all_of(self, shape: LineShape, columns: Sequence[Sequence[bytes]]) -> dict[str, list[float]]:
        """The columns by the field of the reading that each sets; raises like `of`."""
        found: dict[str, list[float]] = {}
        for fields, column in zip(shape.targets, columns, strict=True):
            if not {"step", "epoch_step"} & set(fields):
                values = self.of(column)
                found.update(dict.fromkeys(fields, values))
        return found


def columns_of(
    last: MetricPoint, losses: Sequence[float], steps: Sequence[float] | None, told: Mapping[str, Sequence[float]]
) -> PointColumns:
    """Readings that simply go on, as columns.

    Args:
        last: the newest of them, placed.
        steps: the finest counter of each, if they have one of their own.
        told: what the readings say beside: ``epoch``, ``learning_rate``, the metrics by the names that are shown.
    """
    count = len(losses)
    values = {name: told.get(name) or [value] * count for name, value in {**last.metrics, **last.eval_metrics}.items()}
    rate, epoch, whole = last.learning_rate, last.counters.epoch, last.run_step
    if whole is None:
        run_steps: Sequence[float] | None = None
    elif steps is None:
        run_steps = [whole] * count
    else:  # those of an epoch are moved behind the epochs before
        offset = whole - steps[-1]
        run_steps = [step + offset for step in steps] if offset else steps
    return PointColumns(
        newest=last,
        steps=run_steps,
        epochs=told.get("epoch") or [math.nan if epoch is None else float(epoch)] * count,
        losses=losses,
        rates=None if rate is None else told.get("learning_rate") or [rate] * count,
        values=values,
    )
