"""Tables with a two-line header, the words of each column name one above the other: MATLAB, Vowpal Wabbit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ..names import Role, classify
from ..points import LineReading
from . import Example
from .table import Table

_LOSS = ("oss", "OSS")
_CELL = re.compile(r"[^|│┃]{1,80}")
_WORD = re.compile(r"\S{1,40}")
_BORDERS = ("|", "│", "┃")
_FEWEST_COLUMNS = 3
_MARK = re.compile(r"(?<=\d) {1,4}[a-z*]\Z")
"""A flag at the end of a row: in ``34 h`` the row was measured on held-out data."""
_COUNTING = (Role.EPOCH, Role.STEP)
_COUNTER = " counter"
"""The end of a column name whose column counts the steps: ``example counter``."""


class StackedTable(Table):
    """Rows as in any table, below a two-line header."""

    name = "stacked table"
    examples = (
        Example(
            "|  Epoch  |  Iteration  |  Time Elapsed  |  Mini-batch  |  Validation  |  Base Learning  |\n"
            "|         |             |   (hh:mm:ss)   |     Loss     |     Loss     |      Rate       |\n"
            "|=======================================================================================|\n"
            "|       1 |           1 |       00:00:02 |       1.5000 |       1.6000 |          0.0100 |\n"
            "|       2 |          50 |       00:00:21 |       1.2500 |              |          0.0050 |\n",
            1.25,
            losses=2,
            epoch=2,
            step=50,
            learning_rate=0.005,
        ),
        Example(
            "average  since         example  current\nloss     last          counter    label\n"
            "0.693147 0.693147            1   -1.0000\n0.512500 0.331853            2    1.0000 h\n",
            0.5125,
            losses=2,
            step=2,
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._above = ""

    def read(self, line: str) -> Sequence[LineReading] | None:
        above, self._above = self._above, line
        if line.lstrip(" |│┃")[:1].isdigit():
            return super().read(_MARK.sub("", line)) if self._columns else None
        if not any(map(line.__contains__, _LOSS)) or any(map(str.isdigit, above + line)) or ":" in above:
            return None
        spans = _spans(above, line)
        columns = [" ".join(f"{above[slice(*span)]} {line[slice(*span)]}".split()).strip("|│┃ ") for span in spans]
        columns = ["step" if column.endswith(_COUNTER) else column for column in columns]
        roles = [classify(column).role for column in columns]
        if len(columns) < _FEWEST_COLUMNS or Role.LOSS not in roles or not any(role in roles for role in _COUNTING):
            return None
        self._columns, self._spans, self._starts, self._fresh = columns, spans, [], True
        return ()


def _spans(above: str, below: str) -> list[tuple[int, int]]:
    """Return the spans of the columns of a two-line header; empty if the lines are not divided in the same way."""
    ruled = above.startswith(_BORDERS) and below.startswith(_BORDERS)
    first, second = ([found.span() for found in (_CELL if ruled else _WORD).finditer(text)] for text in (above, below))
    if ruled:
        return first if first == second else []
    together = [(min(one[0], other[0]), max(one[1], other[1])) for one, other in zip(first, second, strict=False)]
    apart = all(one[1] < other[0] for one, other in pairwise(together))
    return together if len(first) == len(second) and apart else []


GRAMMAR = StackedTable
