"""Tables with a header: fastai, skorch, spaCy, any script that prints ``epoch  train_loss  valid_loss`` above rows.

Columns may be separated by commas, as from the csv module, and rows may start with an index, as from pandas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from ..measures import is_duration, is_measure
from ..names import Role, classify
from ..points import LineReading, Priority, as_float
from ..records import read_record
from ..vocabulary import (
    EPISODES,
    EPOCH_WORDS,
    EVAL_WORDS,
    GENERATION_WORDS,
    RATE_WORDS,
    STEP_WORDS,
    SUBJECT_WORDS,
    TRAIN_WORDS,
)
from . import Example, LineGrammar

_COLUMNS = re.compile(r"\s{2,}|\t|\s{0,40}[|│┃]\s{0,40}")
_NUMBER = re.compile(r"\d[./]\d")
_CLOCK = re.compile(r"\d{1,3}:\d{2}(?::\d{2})?\Z")
_LIST = re.compile(r"\[[-+\d.][-+\d.,eE\s]{0,200}\]")
"""``[0.116 0.227]``: several values in one column, of which none is the column's value."""
_SHARED = ("LOSS TOK2VEC", "LOSS TRANSFORMER")
_BORDERS = " |│┃"
_RULED = ("|", "│", "┃")
_SPLITS = frozenset(("split", "phase", "set", "subset", "mode", "stage", "data", "dataset"))
"""Names of the column that says which split a row belongs to."""
_DRAWN = ("│", "┃")
"""Borders of a table that is redrawn with every row, as by Rich."""
_MOST_ROWS = 4096
_WORD = re.compile(r"\S+")
_FIRST = re.compile(r"[\s|│┃]{0,40}([^\W\d_]{0,20})")
_MAX_COLUMNS = 40
_ASIDE = 1
"""Characters by which the start of a number may be off that of its column name."""
_TOTAL = "loss  total"
"""The name a column "total" is read under, if it is the sum of the losses beside it."""
_HINTS = ("oss", "OSS", "total", "AP")
_GENERATIONS = GENERATION_WORDS | {"gen"}
_STATISTICS = frozenset(("avg", "mean", "median", "std", "min", "max"))
"""Column names for statistics over the members of a generation, whatever is measured."""
_HEADING_WORDS = EPOCH_WORDS | STEP_WORDS | EPISODES | _GENERATIONS
_OF_TOTAL = re.compile(r"(\d{1,9})/\d{1,9}\Z")
_COUNTERS = (Role.EPOCH, Role.STEP, Role.EPOCHS, Role.BATCH)


class Table(LineGrammar):
    """Rows of numbers under a header that names an epoch or step and a loss."""

    name = "table"
    priority = Priority.SHARED
    examples: ClassVar[tuple[Example, ...]] = (
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
        Example(
            "epoch       iteration   main/loss   validation/main/loss  elapsed_time\n"
            "0           100         2.5                               114.5\n"
            "0           200         2.25        2.125                 229.5\n",
            2.25,
            losses=2,
            epoch=0,
            step=200,
        ),
        Example(
            "+------ Epoch 2/3 ------+\n| split | loss  | acc   |\n+-------+-------+-------+\n"
            "| train | 1.250 | 0.500 |\n| valid | 1.500 | 0.400 |\n",
            1.25,
            epoch=2,
            epochs=3,
        ),
        Example(
            "#  step    rmse_val   rmse_trn     lr\n"
            "     0    1.2e+01    1.1e+01  1.0e-03\n   100    2.5e+00    2.4e+00  9.0e-04\n",
            losses=0,
            step=100,
            learning_rate=9e-4,
            format="key-value",
        ),
        Example(
            "gen\tnevals\tavg\tstd\tmin\tmax\n0\t100\t3.125\t0.5\t1\t9\n1\t60\t4.25\t0.75\t2\t10\n",
            losses=0,
            step=1,
            format="key-value",
        ),
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
        self._starts: list[int] = []
        """Where the words of the header begin."""
        self._spans: list[tuple[int, int]] = []
        """The spans of the column names in the header; empty if unknown."""
        self._rows: set[str] = set()
        """Rows already read, of a table that is redrawn."""
        self._titles = ""
        self._of_total = False
        """True if the first column holds counts with totals, ``3/20``."""
        self._measured: list[str] = []
        """The metric columns of a table with one row per split."""

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Return a row's reading; claim a header without a reading."""
        line = line.removeprefix("copypaste: ").removeprefix("#").lstrip()
        if line.startswith(_RULED) and (split := self._of_split(_split(line))) is not None:
            return split
        if not (self._columns and line.lstrip(_BORDERS)[:1].isdigit()):
            columns = _header(line)
            if columns:
                self._columns, self._commas, self._fresh = columns, "," in line, True
                self._starts, self._titles = [word.start() for word in _WORD.finditer(line)], line
                self._spans = _spans(line, columns)
            return () if columns else None
        self._align(line)
        by_commas = self._commas and "," in line  # below a header with commas, rows may have tabs
        cells = (_comma_cells if by_commas else _cells)(line, len(self._columns))
        if cells is None and len(self._starts) == len(self._columns):
            cells = _cells_below(line, self._starts)
        if cells is not None and not by_commas and len(cells) < len(self._columns):
            cells = _cells_within(line, self._spans) or cells
        if cells is None or (self._first_cell is not None and ("/" in cells[0]) != self._of_total):
            return None  # not a row of this table
        if line.startswith(_DRAWN):
            if line in self._rows:
                return ()
            self._rows.update((line,) if len(self._rows) < _MOST_ROWS else ())
        self._of_total = "/" in cells[0]
        position = _number(cells[0])
        repeats = self._fresh and self._first_cell is not None and position is not None and position <= self._first_cell
        self._fresh, self._first_cell = False, position
        record = dict(zip(self._columns, cells, strict=False))
        subject = next((cell for name, cell in record.items() if name.lower() in SUBJECT_WORDS and cell.isascii()), "")
        if subject and as_float(subject) is None:
            record = {
                name if classify(name).role in _COUNTERS else f"{subject} {name}": record[name] for name in record
            }
        reading = read_record(record, self.name)
        if reading is None:
            return None
        metrics = {("total" if name == _TOTAL else name): value for name, value in reading.metrics.items()}
        return (replace(reading, metrics=metrics, restart=repeats, declared=True),)

    def _of_split(self, cells: Sequence[str]) -> Sequence[LineReading] | None:
        """Return the reading of a row ``| valid | 0.93 | 0.50 |``; claim the header above it without a reading."""
        first = cells[0].lower() if len(cells) > 1 else ""
        if first in _SPLITS and all(map(is_measure, cells[1:])):
            self._measured = list(cells[1:])
            return ()
        values = [as_float(cell.rstrip("%")) for cell in cells[1:]]
        if first not in TRAIN_WORDS | EVAL_WORDS or len(values) != len(self._measured) or None in values:
            return None
        told = {f"{cells[0]} {name}": value for name, value in zip(self._measured, values, strict=True)}
        reading = read_record(told, self.name)
        return None if reading is None else (replace(reading, declared=True),)

    def _align(self, row: str) -> None:
        """Split the header where the cells of the first row begin: its names may be only one space apart."""
        starts = [word.start() for word in _WORD.finditer(row)]
        if not (self._fresh and len(self._columns) < len(starts)) or not set(starts) <= set(self._starts):
            return
        names = [
            self._titles[start:end].strip(_BORDERS) for start, end in zip(starts, [*starts[1:], None], strict=True)
        ]
        if row[:1].isdigit() and any(classify(name).role is Role.LOSS for name in names[1:]):
            self._columns = names


def _header(line: str) -> list[str]:
    """Return the column names, if the line is a header; else an empty list."""
    if len(line) > 600 or ":" in line or "=" in line or _NUMBER.search(line):
        return []
    if not any(map(line.__contains__, _HINTS)) and _first_word(line) not in _HEADING_WORDS:
        return []
    for columns in (_by_commas(line),) if "," in line else (_split(line), line.split()):
        if "," in line and len(columns) > 2 and all(map(is_measure, columns)):
            return columns  # ``AP,AP50,AP75``
        if "total" in columns and len(columns) > 3 and classify(columns[1]).role in _COUNTERS:
            columns = [_TOTAL if column == "total" else column for column in columns]
        roles = [classify(column).role for column in columns]
        if "\t" in line and len(columns) > 1 and Role.LOSS in roles and all(map(is_measure, columns)):
            return columns  # no counter: each row is a reading
        told = Role.LOSS in roles or _all_measured(columns, roles, line)
        first = columns[0].lower() if columns else ""
        told = told or (first in _GENERATIONS and len(_STATISTICS.intersection(columns)) > 1)
        counted = roles[:1] and (roles[0] in _COUNTERS or first in EPISODES | _GENERATIONS)
        if 2 <= len(columns) <= _MAX_COLUMNS and counted and told:
            return columns if not any(as_float(column) is not None for column in columns) else []
        if columns[:2] == ["E", "#"]:
            # spaCy: with a single component, the loss passed to the shared layers is not a loss of its own.
            own = [column for column in columns if column.startswith("LOSS ") and column not in _SHARED]
            renamed = {name: name.removeprefix("LOSS ") for name in _SHARED if len(own) == 1}
            return ["epoch", "step", *(renamed.get(column, column) for column in columns[2:])]
    return []


def _first_word(line: str) -> str:
    found = _FIRST.match(line)
    return found[1].lower() if found is not None else ""


def _all_measured(columns: Sequence[str], roles: Sequence[Role], line: str) -> bool:
    """True if well separated columns are all measures, rates and times, without a loss: ``step  rmse_val  lr``."""
    counted = EPISODES | _GENERATIONS
    beside = [
        column
        for column, role in zip(columns, roles, strict=True)
        if role not in _COUNTERS and column.lower() not in counted
    ]
    measures = sum(map(is_measure, beside))
    apart = columns == _split(line) and len(columns) > 2
    rest = all(is_measure(column) or is_duration(column) or column.lower() in RATE_WORDS for column in beside)
    return apart and measures > 1 and rest


def _number(cell: str) -> float | None:
    """Return the value of a cell; of ``3/20``, the 3."""
    of_total = _OF_TOTAL.match(cell)
    return as_float(of_total[1] if of_total else cell)


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in _COLUMNS.split(line.strip(_BORDERS)) if cell.strip()]


def _by_commas(line: str) -> list[str]:
    cells = [cell.strip().strip("\"'") for cell in line.split(",")]
    history = len(cells) > 2 and not cells[0] and all(map(is_measure, cells[1:]))
    return ["epoch", *cells[1:]] if history else cells  # ``,loss,acc``: pandas has no name for the index


def _comma_cells(line: str, expected: int) -> list[str] | None:
    """Return the cells of a row in CSV: exactly as many as there are columns, some possibly empty."""
    cells = _by_commas(line)
    if len(cells) != expected or any(cell and as_float(cell) is None for cell in cells) or as_float(cells[0]) is None:
        return None
    return cells


def _cells(line: str, expected: int) -> list[str] | None:
    """Return the cells of a row: a number, then numbers or clock times, about as many as there are columns."""
    if "[" in line:
        line = _LIST.sub(lambda found: ",".join(found.group().split()), line)
    by_space = line.split()
    if len(by_space) == expected + 1 and by_space[0].isdigit() and all(as_float(cell) is not None for cell in by_space):
        return by_space[1:]  # the index of pandas has no name
    apart, by_space = _split(line), [cell for cell in line.replace("|", " ").split() if cell != "+"]
    for cells in (by_space, apart) if len(by_space) == expected else (apart, by_space):
        cells = [cell for cell in cells if cell != "+"]
        numeric = sum(map(_is_numeric, cells))
        enough = max(2, expected - 2) <= len(cells) <= expected and numeric >= len(cells) - 1
        if enough and _number(cells[0]) is not None:
            return [cell.rstrip("%s") for cell in cells]
    return None


def _is_numeric(cell: str) -> bool:
    return _number(cell.rstrip("%s")) is not None or bool(_CLOCK.match(cell) or _LIST.fullmatch(cell))


def _spans(header: str, columns: Sequence[str]) -> list[tuple[int, int]]:
    """Return the spans of the column names in the header."""
    found: list[tuple[int, int]] = []
    for column in columns:
        start = header.find(column, found[-1][1] if found else 0)
        if start < 0:
            return []
        found.append((start, start + len(column)))
    return found


def _cells_within(line: str, spans: Sequence[tuple[int, int]]) -> list[str] | None:
    """Return the cells of a row with gaps, however aligned: each must overlap exactly one column name above it."""
    found: dict[int, str] = {}
    for word in _WORD.finditer(line):
        if word.group() in _BORDERS:
            continue
        below = [at for at, (start, end) in enumerate(spans) if word.start() < end and start < word.end()]
        if len(below) != 1 or below[0] in found:
            return None
        found[below[0]] = word.group().rstrip("%s")
    return [found.get(at, "") for at in range(len(spans))] if len(found) > 1 and 0 in found else None


def _cells_below(line: str, starts: Sequence[int]) -> list[str] | None:
    """Return the cells of a row with gaps, as Chainer prints it: each number starts where its column name does."""
    words = list(_WORD.finditer(line))
    found = {min(starts, key=lambda start: abs(start - word.start())): word.group() for word in words}
    beside = any(min(abs(start - word.start()) for start in starts) > _ASIDE for word in words)
    if len(words) < 3 or beside or len(found) < len(words) or any(as_float(cell) is None for cell in found.values()):
        return None
    return [found.get(start, "") for start in starts]


GRAMMAR = Table
