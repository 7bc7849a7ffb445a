"""From columns of text to columns of numbers, and from these to points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .points import MetricPoint, PointColumns
from .shape import LineShape

Columns = Sequence[Sequence[bytes]]
"""Of lines that fit a shape: for each of its groups, the texts of all lines."""


def floats(column: Sequence[bytes]) -> list[float]:
    """Convert a column to floats; many columns repeat a single number."""
    first = column[0]
    if first == column[-1] and column.count(first) == len(column):
        return [_float(first)] * len(column)
    try:
        return list(map(float, column))
    except ValueError:  # commas
        return list(map(_float, column))


def counts(column: Sequence[bytes]) -> Sequence[float]:
    """Convert a column of counters: they are mostly whole, and ints parse twice as fast."""
    try:
        return list(map(int, column))
    except ValueError:
        return list(map(_float, column))


def _float(text: bytes) -> float:
    return float(text.replace(b",", b""))


def by_field(shape: LineShape, columns: Columns) -> dict[str, list[float]]:
    """Return the columns by the reading's field that each sets, without the steps."""
    found: dict[str, list[float]] = {}
    for fields, column in zip(shape.targets, columns, strict=True):
        if not {"step", "epoch_step"} & set(fields):
            found |= dict.fromkeys(fields, floats(column))
    return found


def columns_of(
    last: MetricPoint, losses: Sequence[float], steps: Sequence[float] | None, told: Mapping[str, Sequence[float]]
) -> PointColumns:
    """Return, as columns, readings whose counters simply go on.

    Args:
        last: the newest of them, placed.
        steps: the finest counter of each, if they have one of their own.
        told: what else the readings say: ``epoch``, ``learning_rate``, metrics by the names shown.
    """
    count = len(losses)
    values = {name: told.get(name) or [value] * count for name, value in {**last.metrics, **last.eval_metrics}.items()}
    rate, epoch, whole = last.learning_rate, last.counters.epoch, last.run_step
    if whole is None:
        run_steps: Sequence[float] | None = None
    elif steps is None:
        run_steps = [whole] * count
    else:  # steps within an epoch: add those of the epochs before
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
