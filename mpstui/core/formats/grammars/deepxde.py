"""DeepXDE: rows under ``Step  Train loss  Test loss  Test metric``, each loss a list of its parts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_HEADER = re.compile(r"Step\s{2,20}Train loss\s{2,400}Test loss\s{2,400}Test metric\s{0,400}\Z")
_LIST = r"\[((?:[^\[\],]{1,16}(?:, )?){0,60})\]"
_ROW = re.compile(rf"(\d{{1,9}})\s{{1,10}}{_LIST}\s{{1,400}}{_LIST}\s{{1,400}}{_LIST}\s{{0,400}}\Z")


class DeepXDE(LineGrammar):
    """The loss is the sum of its parts, one per equation and condition, which is also what DeepXDE itself plots."""

    name = "deepxde"
    needles = ("Train loss", "[")
    examples = (
        Example(
            "Step      Train loss              Test loss               Test metric\n"
            "0         [7.50e-01, 2.50e-01]    [5.00e-01, 2.50e-01]    []  \n"
            "1000      [2.50e-02, 2.50e-02]    [5.00e-02, 2.50e-02]    [1.50e-01]\n",
            0.05,
            losses=2,
            step=1000,
        ),
    )

    def __init__(self) -> None:
        self._in_table = False

    def read(self, line: str) -> Sequence[LineReading] | None:
        if _HEADER.match(line):
            self._in_table = True
            return ()
        row = _ROW.match(line) if self._in_table else None
        if row is None:
            return None
        train, test, measured = ([as_float(text) for text in part.split(", ") if text] for part in row.groups()[1:])
        counters, total = Counters(step=parse_count(row[1])), _sum(train)
        parts = _each("train loss", train) if len(train) > 1 else {}
        measures, total_of_test = _each("test metric", measured), _sum(test)
        known = measures if total_of_test is None else {"test loss": total_of_test, **measures}
        found = [] if total is None else [LineReading.training(self.name, counters, "loss", total, metrics=parts)]
        return (*found, LineReading.evaluation(self.name, known)) if known else found


def _each(name: str, values: Sequence[float | None]) -> dict[str, float]:
    """Name the values of a list by its name and their position; a single value gets just the name."""
    named = {name if len(values) == 1 else f"{name} {place}": value for place, value in enumerate(values, 1)}
    return {name: value for name, value in named.items() if value is not None}


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


GRAMMAR = DeepXDE
