"""The curves of MLflow's runs: lines ``milliseconds value step`` of a file for each metric, or rows of a database."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from ....wire import storage
from ...follow import LineTail
from ..points import Point
from ._curves import Curves, DatabaseCurves
from ._sqlite import Database
from .mlflow import INFINITE, metric_files

_MOST_ROWS = 20_000
_BYTES_A_FILE = 1 << 17


class FolderCurves(Curves):
    """Files below ``metrics``."""

    name: ClassVar[str] = "mlflow"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._tails: dict[str, LineTail] = {}

    def take(self, limit: int) -> Sequence[Point]:
        folder = self.path / "metrics"
        for file in metric_files(folder):
            self._tails.setdefault(str(file.relative_to(folder)), LineTail(file))
        parts = []
        for name, tail in self._tails.items():
            growth = tail.read(_BYTES_A_FILE)
            if growth.data and (columns := _columns(growth.data)) is not None:
                parts.append((columns[0][-1], name, columns))
        self.rows.learn([name for _, name, _ in parts])
        meta = storage.stamp(self.path / "meta.yaml")
        self.position = sum(tail.offset for tail in self._tails.values()) + (meta[2] if meta else 0)
        parts.sort(key=lambda part: part[:2])
        return [point for _, name, columns in parts for point in self.rows.columns({name: columns[2]}, *columns[:2])]


def _columns(data: bytes) -> tuple[Sequence[float], Sequence[float], Sequence[float]] | None:
    """Steps, times and values of whole lines; what is no such line is left out."""
    words = data.split()
    if len(words) != 3 * data.count(b"\n"):
        words = [word for line in data.splitlines() if len(parts := line.split()) >= 2 for word in [*parts, b"0"][:3]]
    try:
        times, values, steps = (array("d", map(float, words[place::3])) for place in range(3))
    except ValueError:
        return None
    return (steps, array("d", [time / 1000 for time in times]), values) if steps else None


class TableCurves(DatabaseCurves):
    """Rows of the table ``metrics``."""

    name: ClassVar[str] = "mlflow"

    def __init__(self, database: Database, run: str) -> None:
        super().__init__(database)
        self._run = run
        self._last = -1

    def next_rows(self) -> tuple[Sequence[Point], int, bool]:
        rows = self._database.read(
            "SELECT rowid, key, value, timestamp, step, is_nan FROM metrics WHERE run_uuid = ? AND rowid > ? "
            f"ORDER BY rowid LIMIT {_MOST_ROWS}",
            [self._run, self._last],
        )
        columns: dict[str, tuple[array[float], array[float], array[float]]] = {}
        for row, key, value, moment, step, is_nan in rows:
            self._last = row
            if not isinstance(key, str) or not all(isinstance(one, (int, float)) for one in (value, moment, step)):
                continue
            number = math.nan if is_nan else math.copysign(math.inf, value) if abs(value) >= INFINITE else value
            found = columns.setdefault(key, (array("d"), array("d"), array("d")))
            for column, one in zip(found, (step, moment / 1000, number), strict=True):
                column.append(one)
        self.rows.learn(list(columns))
        order = sorted(columns, key=lambda name: columns[name][0][-1])
        placed = [self.rows.columns({name: columns[name][2]}, *columns[name][:2]) for name in order]
        return [point for points in placed for point in points], len(rows), len(rows) < _MOST_ROWS
