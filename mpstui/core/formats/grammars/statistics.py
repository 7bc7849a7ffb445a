"""Rows of statistics under a header that names them: ``Min  Max  Mean`` above ``loss  0.25  2.0  0.75``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..measures import is_measure
from ..points import LineReading, as_float
from ..records import read_record
from ..vocabulary import STATISTIC_WORDS
from . import Example, LineGrammar

_CELLS = re.compile(r"\s{2,40}|\t|\s{0,40}[|│┃]\s{0,40}")
_HINTS = ("ean", "EAN", "avg", "Avg", "AVG", "verage")
_CENTRES = ("mean", "avg", "average")
_MOST_COLUMNS = 10


class Statistics(LineGrammar):
    """The mean gets the name of the metric, the other statistics theirs in addition: ``loss min``."""

    name = "statistics"
    examples = (
        Example(
            "Iteration 7\n          Min     Max     Mean\n"
            "loss      0.25    2.00    0.75\nreward   -1.50    3.25    0.50\n",
            0.75,
            losses=1,
            step=7,
            format="statistics",
        ),
        Example(
            "Epoch 3\n| Metric | Mean | Std |\n|--------|------|-----|\n"
            "| loss | 0.5 | 0.25 |\n| return | 12.5 | 2.5 |\n",
            0.5,
            losses=1,
            epoch=3,
            format="statistics",
        ),
    )

    def __init__(self) -> None:
        self._columns: list[str] = []

    @property
    def is_open(self) -> bool:
        """True if the next line may be a row."""
        return bool(self._columns)

    def read(self, line: str) -> Sequence[LineReading] | None:
        cells = [cell for cell in _CELLS.split(line.strip("|│┃ \t")) if cell]
        columns = _statistics(cells) if any(map(line.__contains__, _HINTS)) else []
        if columns:
            self._columns = columns
            return ()
        if not self._columns:
            return None
        if cells and not any(map(str.isalnum, line)):
            return ()  # a horizontal rule
        values = [as_float(cell) for cell in cells[1:]]
        if len(values) != len(self._columns) or None in values or not is_measure(cells[0]):
            self._columns = []
            return None
        centre = next(name for name in _CENTRES if name in self._columns)
        told = {
            cells[0] if column == centre else f"{cells[0]} {column}": value
            for column, value in zip(self._columns, values, strict=True)
        }
        reading = read_record(told, self.name)
        return None if reading is None else (reading,)


def _statistics(cells: Sequence[str]) -> list[str]:
    """Return the column names of a header, without a first one that heads the names of the rows."""
    names = [cell.lower() for cell in cells]
    if names and names[0] not in STATISTIC_WORDS:
        names = names[1:]
    told = 1 < len(names) <= _MOST_COLUMNS and all(name in STATISTIC_WORDS for name in names)
    return names if told and any(name in _CENTRES for name in names) else []


GRAMMAR = Statistics
