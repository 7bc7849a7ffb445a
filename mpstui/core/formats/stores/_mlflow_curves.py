"""The curves of MLflow runs: a file per metric with lines ``milliseconds value step``, or rows of a database."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ....wire import storage
from ...follow import LineTail, last_lines
from ..points import Point
from ..rows import Rows, is_epoch
from ._curves import Curves, DatabaseCurves
from ._sqlite import Database
from .mlflow import INFINITE, metric_files

_MOST_ROWS = 20_000
_BYTES_A_FILE, _BYTES_OF_AN_END = 1 << 17, 1 << 10
_VALUES = "key, value, timestamp, step, is_nan"
_Columns = tuple[Sequence[float], Sequence[float], Sequence[float]]
"""Steps, times and values of one metric."""


class FolderCurves(Curves):
    """Reads the files below ``metrics``."""

    name: ClassVar[str] = "mlflow"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._tails: dict[str, LineTail] = {}

    def glance(self) -> Sequence[Point]:
        """Return the newest values, from the last line of each file."""
        folder, parts = self.path / "metrics", dict[str, _Columns]()
        for file in metric_files(folder):
            line = last_lines(file, _BYTES_OF_AN_END).splitlines(keepends=True)[-1:]
            if line and (columns := _columns(line[0])) is not None:
                parts[str(file.relative_to(folder))] = columns
        return _placed(Rows(self.name), parts)

    def take(self, limit: int) -> Sequence[Point]:
        folder = self.path / "metrics"
        for file in metric_files(folder):
            self._tails.setdefault(str(file.relative_to(folder)), LineTail(file))
        parts: dict[str, _Columns] = {}
        for name, tail in self._tails.items():
            growth = tail.read(_BYTES_A_FILE)
            if growth.data and (columns := _columns(growth.data)) is not None:
                parts[name] = columns
        meta = storage.stamp(self.path / "meta.yaml")
        self.position = sum(tail.offset for tail in self._tails.values()) + (meta[2] if meta else 0)
        return _placed(self.rows, parts)


def _columns(data: bytes) -> _Columns | None:
    """Return the steps, times and values of complete lines; lines of any other form are left out."""
    words = data.split()
    if len(words) != 3 * data.count(b"\n"):
        words = [word for line in data.splitlines() if len(parts := line.split()) >= 2 for word in [*parts, b"0"][:3]]
    try:
        times, values, steps = (array("d", map(float, words[place::3])) for place in range(3))
    except ValueError:
        return None
    return (steps, array("d", [time / 1000 for time in times]), values) if steps else None


class TableCurves(DatabaseCurves):
    """Reads the rows of the table ``metrics``."""

    name: ClassVar[str] = "mlflow"

    def __init__(self, database: Database, run: str) -> None:
        super().__init__(database)
        self._run = run
        self._last = -1

    def glance(self) -> Sequence[Point]:
        """Return the newest values, which have a table of their own."""
        rows = self._database.read_now(f"SELECT {_VALUES} FROM latest_metrics WHERE run_uuid = ?", [self._run])
        return _placed(Rows(self.name), _by_name(rows))

    def next_rows(self) -> tuple[Sequence[Point], int, bool]:
        rows = self._database.read(
            f"SELECT {_VALUES}, rowid FROM metrics WHERE run_uuid = ? AND rowid > ? ORDER BY rowid LIMIT {_MOST_ROWS}",
            [self._run, self._last],
        )
        self._last = rows[-1][-1] if rows else self._last
        return _placed(self.rows, _by_name(rows)), len(rows), len(rows) < _MOST_ROWS


def _by_name(rows: Sequence[tuple[Any, ...]]) -> dict[str, _Columns]:
    """Return the columns of each metric; rows of any other form are left out."""
    columns: dict[str, tuple[array[float], array[float], array[float]]] = {}
    for key, value, moment, step, is_nan, *_ in rows:
        if not isinstance(key, str) or not all(isinstance(one, (int, float)) for one in (value, moment, step)):
            continue
        number = math.nan if is_nan else math.copysign(math.inf, value) if abs(value) >= INFINITE else value
        found = columns.setdefault(key, (array("d"), array("d"), array("d")))
        for column, one in zip(found, (step, moment / 1000, number), strict=True):
            column.append(one)
    return dict(columns)


def _placed(rows: Rows, columns: Mapping[str, _Columns]) -> list[Point]:
    """Return the points of metrics, each with its own steps: epochs first, then the others, the newest last."""
    rows.learn(list(columns))
    order = sorted(columns, key=lambda name: (not is_epoch(name), columns[name][0][-1], name))
    return [point for name in order for point in rows.columns({name: columns[name][2]}, *columns[name][:2])]
