"""CSV with a header, written by Lightning, Stable-Baselines3, Ultralytics and Keras' CSVLogger.

Lightning and Stable-Baselines3 rewrite the whole file when a column is added, so the header is compared on every call.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from ..measures import is_measure
from ..names import Role, classify
from ..points import Priority, as_float
from ..records import ALIASES, IGNORED
from . import GrowingLines

_MAX_COLUMNS = 1000
_FIRST_ROWS, _FEWEST_ROWS = 6, 3


class CsvTable(GrowingLines):
    """Rows under one header; empty cells mean "not logged in this row"."""

    name = "csv"
    priority = Priority.SHARED
    suffixes = (".csv", ".tsv")

    def __init__(self, path: Path) -> None:
        self._columns: list[str] = []
        self._delimiter = ","
        super().__init__(path)

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """True if the header names a counter or a loss and the first rows, if any, fit it.

        A header that only names a measure is enough if all cells are numbers and one column counts the rows.
        """
        lines = start.split(b"\n", _FIRST_ROWS + 1)
        delimiter, columns = _header(lines[0])
        rows = [_cells(line, delimiter) for line in lines[1:-1] if line.strip()]
        if not columns or not all(len(row) == len(columns) for row in rows):
            return False
        if any(ALIASES.get(name.lower(), IGNORED) != IGNORED or classify(name).role is Role.LOSS for name in columns):
            return all(any(as_float(cell) is not None for cell in row) for row in rows)
        return any(map(is_measure, columns)) and _are_counted(rows)

    def start_over(self) -> None:
        super().start_over()
        self._columns = []

    def record(self, line: bytes) -> Mapping[str, object] | None:
        line = line.rstrip(b"\r")
        if not self._columns:
            self._delimiter, self._columns = _header(line)
            return None
        cells = _cells(line, self._delimiter)
        if cells == self._columns or len(cells) != len(self._columns):
            return None
        return {name: cell for name, cell in zip(self._columns, cells, strict=True) if cell}

    def is_whole(self, line: bytes) -> bool:
        return bool(self._columns) and len(_cells(line, self._delimiter)) == len(self._columns) and line[-1:] != b"."


def _header(line: bytes) -> tuple[str, list[str]]:
    """Return the delimiter and column names of a header line; no names if it is not a header."""
    for delimiter in (",", "\t", ";"):
        columns = _cells(line.removeprefix(b"\xef\xbb\xbf"), delimiter)
        if 2 <= len(columns) <= _MAX_COLUMNS:
            numbers = (name for name in columns if as_float(name) is not None and not name.isalpha())
            are_names = not any(numbers) and not any("=" in name or ": " in name for name in columns)
            return delimiter, columns if are_names else []
    return ",", []


def _are_counted(rows: Sequence[Sequence[str]]) -> bool:
    """True if all cells are numbers and one column increases by a constant from row to row."""
    if len(rows) < _FEWEST_ROWS or any(cell and as_float(cell) is None for row in rows for cell in row):
        return False
    whole = ([int(cell) for cell in column] for column in zip(*rows, strict=True) if all(map(str.isdigit, column)))
    strides = ({after - before for before, after in pairwise(column)} for column in whole)
    return any(len(stride) == 1 and min(stride) > 0 for stride in strides)


def _cells(line: bytes, delimiter: str) -> list[str]:
    text = line.decode(errors="replace").strip("\r\n")
    try:
        row = next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in row]


FILE = CsvTable
