"""Trackio: an SQLite database per project, in which each row of metrics is one JSON object."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..points import Point, Priority
from ..told import SYSTEM, RunTold, flattened
from . import SEPARATOR, Store, StoredRun
from ._curves import DatabaseCurves
from ._sqlite import Database

if TYPE_CHECKING:
    from ..files import MetricFile

_MOST_ROWS, _FEW_ROWS = 5000, 50
_MOST_RUNS = 20_000
_DEEPEST = 5
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class TrackioRun(StoredRun):
    """The rows of one run."""

    store = "Trackio"
    is_shared = True

    def __init__(self, database: Database, column: str, run: str, name: str) -> None:
        super().__init__(database.path, name or run, f"{database.path}{SEPARATOR}{run}")
        self._database = database
        self._column = column
        self._run = run

    def files(self) -> Sequence[Path]:
        return self._database.files()

    def open(self) -> MetricFile | None:
        return TrackioCurves(self._database, self._column, self._run)

    def told(self, reader: MetricFile | None) -> RunTold:
        """Return its settings and its start; Trackio records no end."""
        rows: list[tuple[Any, ...]] = []
        if "configs" in self._database.tables():
            rows = self._database.read_now(_CONFIG[self._column], [self._run])
        began = self._database.read_now(_BEGIN[self._column], [self._run])
        config = _object(rows[0][0]) if rows else {}
        shown = {key: value for key, value in config.items() if not key.startswith("_")}
        return RunTold(
            name=self.name,
            project=self._database.path.stem,
            group=str(config.get("_Group") or ""),
            config=flattened("", shown) if shown else {},
            started=_moment(began[0][0]) if began else None,
        )


_COLUMNS = ("run_id", "run_name")
"""Columns that identify a run; old versions have only the name."""
_CONFIG = {one: f"SELECT config FROM configs WHERE {one} = ? LIMIT 1" for one in _COLUMNS}
_BEGIN = {one: f"SELECT timestamp FROM metrics WHERE {one} = ? ORDER BY id LIMIT 1" for one in _COLUMNS}
_METRICS = {
    one: f"SELECT id, timestamp, step, metrics FROM metrics WHERE {one} = ? AND id > ? ORDER BY id LIMIT {_MOST_ROWS}"
    for one in _COLUMNS
}
_NEWEST = {
    one: f"SELECT timestamp, step, metrics FROM metrics WHERE {one} = ? ORDER BY id DESC LIMIT {_FEW_ROWS}"
    for one in _COLUMNS
}
_MACHINE = {
    one: f"SELECT id, timestamp, metrics FROM system_metrics WHERE {one} = ? AND id > ? ORDER BY id LIMIT {_MOST_ROWS}"
    for one in _COLUMNS
}


class TrackioCurves(DatabaseCurves):
    """Reads what was logged, and the readings of the machine."""

    name: ClassVar[str] = "trackio"

    def __init__(self, database: Database, column: str, run: str) -> None:
        super().__init__(database)
        self._column = column
        self._run = run
        self._last = self._last_of_machine = -1
        self._times: list[float] = []
        self._steps: list[float] = []

    def glance(self) -> Sequence[Point]:
        """Return the points of the newest rows."""
        from ..rows import Row, Rows

        rows = self._database.read_now(_NEWEST[self._column], [self._run])[::-1]
        told = [
            Row(dict(_numbers(_object(text))), float(step), _moment(stamp) or float("nan"))
            for stamp, step, text in rows
            if isinstance(step, (int, float))
        ]
        return Rows(self.name).place([row for row in told if row.values])

    def next_rows(self) -> tuple[Sequence[Point], int, bool]:
        from ..rows import Row

        read, run, machine = self._database.read, self._run, list[tuple[Any, ...]]()
        rows = read(_METRICS[self._column], [run, self._last])
        if len(rows) < _MOST_ROWS and "system_metrics" in self._database.tables():
            machine = read(_MACHINE[self._column], [run, self._last_of_machine])
        found = []
        for row, stamp, step, text in rows:
            self._last = row
            moment = _moment(stamp) or float("nan")
            if isinstance(step, (int, float)):
                self._times.append(moment)
                self._steps.append(float(step))
                found.append(Row(dict(_numbers(_object(text))), float(step), moment))
        for row, stamp, text in machine:
            self._last_of_machine = row
            moment = _moment(stamp) or float("nan")
            place = bisect_right(self._times, moment) - 1
            step = self._steps[max(0, place)] if self._steps else float("nan")
            values = {SYSTEM + name: value for name, value in _numbers(_object(text))}
            found.append(Row(values, step, moment))
        is_all = len(rows) < _MOST_ROWS and len(machine) < _MOST_ROWS
        return self.rows.place([row for row in found if row.values]), len(rows) + len(machine), is_all


def _object(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _numbers(found: dict[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    for key, value in found.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _numbers(value, f"{before}{key}.", depth + 1)
        elif isinstance(value, str):
            if value in _SPECIAL:
                yield before + key, _SPECIAL[value]
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            with suppress(OverflowError):
                yield before + key, float(value)


def _moment(stamp: Any) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return None


class TrackioStore:
    """Recognised by the columns of its table."""

    priority: ClassVar[Priority] = Priority.SHARED
    alone: ClassVar[bool] = True
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        return None

    def runs_of(self, file: Path) -> list[StoredRun]:
        database = Database(file)
        with suppress(OSError):
            if "metrics" not in database.tables():
                return []
            columns = {str(row[1]) for row in database.read_now("PRAGMA table_info(metrics)")}
            if not {"id", "timestamp", "run_name", "step", "metrics"} <= columns:
                return []
            column = "run_id" if "run_id" in columns else "run_name"
            rows = database.read_now(
                f"SELECT {column}, run_name, MIN(id) FROM metrics GROUP BY {column} ORDER BY 3 DESC LIMIT {_MOST_RUNS}"
            )
            return [TrackioRun(database, column, str(run), str(name)) for run, name, _ in rows]
        return []


STORE: Store = TrackioStore()
