"""Tables with a header: fastai, skorch, spaCy, any script that prints ``epoch  train_loss  valid_loss`` over rows.

With commas between the columns too, as the csv module prints them, and with an index in front, as pandas does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..names import Role, classify, is_measure
from ..points import LineReading, Priority, as_float
from ..records import read_record
from . import Example, LineGrammar

_COLUMNS = re.compile(r"\s{2,}|\t|\s{0,40}[|│┃]\s{0,40}")
_NUMBER = re.compile(r"\d[./]\d")
_CLOCK = re.compile(r"\d{1,3}:\d{2}(?::\d{2})?\Z")
_SHARED = ("LOSS TOK2VEC", "LOSS TRANSFORMER")
_BORDERS = " |│┃"
_MAX_COLUMNS = 40
_COUNTERS = (Role.EPOCH, Role.STEP, Role.EPOCHS, Role.BATCH)


class Table(LineGrammar):
    """Rows of numbers under a header that names an epoch or step and a loss."""

    name = "table"
    priority = Priority.SHARED
    examples = (
        Example(
            "epoch     train_loss  valid_loss  accuracy  time\n0         0.94        0.52        0.80      00:12\n"
            "1         0.84        0.50        0.82      00:12\n",
            0.84,
            losses=2,
            epoch=1,
        ),
        Example(
            "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  SCORE \n"
            "---  ------  ------------  --------  ------  ------\n"
            "  0       0          0.00     55.50    0.00    0.00\n"
            "  1     200         12.00     35.50    0.50    0.50\n",
            35.5,
            losses=2,
            epoch=1,
            step=200,
        ),
        Example("total loss\tborder loss\t\n" + "3.5\t0.5\t\n2.5\t0.4\t\n" * 4, 2.5, losses=8),
        Example("Step\tTraining Loss\n10\t1.250000\n20\t1.125000\n", 1.125, losses=2, step=20),
        Example(
            "epoch,train_loss,val_loss,lr\n1,1.5,,0.1\n2,1.25,1.5,0.1\n",
            1.25,
            losses=2,
            epoch=2,
            learning_rate=0.1,
        ),
        Example(
            "   epoch      loss  val_loss\n0      1  1.500000      0.95\n"
            "   epoch      loss  val_loss\n1      2  1.250000      0.90\n",
            1.25,
            losses=2,
            epoch=2,
        ),
    )

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._commas = False
        self._fresh = False
        self._first_cell: float | None = None

    def read(self, line: str) -> Sequence[LineReading] | None:
        """A row's reading, or nothing for the header itself."""
        if not (self._columns and line.lstrip(_BORDERS)[:1].isdigit()):
            columns = _header(line)
            if columns:
                self._columns, self._commas, self._fresh = columns, "," in line, True
            return () if columns else None
        cells = (_comma_cells if self._commas else _cells)(line, len(self._columns))
        if cells is None:
            return None
        position = as_float(cells[0])
        repeats = self._fresh and self._first_cell is not None and position is not None and position <= self._first_cell
        self._fresh, self._first_cell = False, position
        reading = read_record(dict(zip(self._columns, cells, strict=False)), self.name)
        return None if reading is None else (replace(reading, restart=repeats),)


def _header(line: str) -> list[str]:
    """The column names, if the line is such a header."""
    if len(line) > 600 or not ("oss" in line or "OSS" in line) or ":" in line or "=" in line or _NUMBER.search(line):
        return []
    for columns in (_by_commas(line),) if "," in line else (_split(line), line.split()):
        roles = [classify(column).role for column in columns]
        if "\t" in line and len(columns) > 1 and Role.LOSS in roles and all(map(is_measure, columns)):
            return columns  # no counter: each row is a reading
        if 2 <= len(columns) <= _MAX_COLUMNS and roles[0] in _COUNTERS and Role.LOSS in roles:
            return columns if not any(as_float(column) is not None for column in columns) else []
        if columns[:2] == ["E", "#"]:
            # spaCy: where one component learns, the loss passed on to the layers it shares is not another one.
            own = [column for column in columns if column.startswith("LOSS ") and column not in _SHARED]
            renamed = {name: name.removeprefix("LOSS ") for name in _SHARED if len(own) == 1}
            return ["epoch", "step", *(renamed.get(column, column) for column in columns[2:])]
    return []


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in _COLUMNS.split(line.strip(_BORDERS)) if cell.strip()]


def _by_commas(line: str) -> list[str]:
    return [cell.strip().strip("\"'") for cell in line.split(",")]


def _comma_cells(line: str, expected: int) -> list[str] | None:
    """The cells of a row of the csv module: as many as there are columns, some of them empty."""
    cells = _by_commas(line)
    if len(cells) != expected or any(cell and as_float(cell) is None for cell in cells) or as_float(cells[0]) is None:
        return None
    return cells


def _cells(line: str, expected: int) -> list[str] | None:
    """The cells of a row: a number first, numbers or clocks behind it, about as many as there are columns."""
    by_space = line.split()
    if len(by_space) == expected + 1 and by_space[0].isdigit() and all(as_float(cell) is not None for cell in by_space):
        return by_space[1:]  # the index of pandas has no name
    for cells in (_split(line), line.replace("|", " ").split()):
        cells = [cell for cell in cells if cell != "+"]
        numeric = sum(as_float(cell.rstrip("%s")) is not None or bool(_CLOCK.match(cell)) for cell in cells)
        enough = max(2, expected - 2) <= len(cells) <= expected and numeric >= len(cells) - 1
        if enough and as_float(cells[0]) is not None:
            return [cell.rstrip("%s") for cell in cells]
    return None


GRAMMAR = Table
