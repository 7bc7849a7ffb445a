"""MLflow: folders ``mlruns/EXPERIMENT/RUN`` with a file per metric, and SQLite databases (``mlflow.db``)."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ....wire import storage
from ...model.snapshot import State
from ..points import Priority
from ..told import RunTold
from . import SEPARATOR, Store, StoredRun
from ._sqlite import Database
from ._yaml import read

if TYPE_CHECKING:
    from ..files import MetricFile

STATES = {"FINISHED": State.FINISHED, "FAILED": State.FAILED, "KILLED": State.KILLED}
STATUS_OF_NUMBER = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
"""Meaning of the status in a folder's ``meta.yaml``."""
NOTE, NAME, SOURCE, OWN = "mlflow.note.content", "mlflow.runName", "mlflow.source.name", "mlflow."
INFINITE = 1.7976931348623157e308
"""Stored in the database in place of infinity, which it cannot hold."""
_WORDS = ("SELECT key, value FROM params WHERE run_uuid = ?", "SELECT key, value FROM tags WHERE run_uuid = ?")
_MOST_FILES, _DEEPEST = 2000, 10
_MOST_ROWS = 20_000
_MOST_WORDS_BYTES = 1 << 16


def _told(status: str, start: Any, end: Any, params: Mapping[str, str], tags: Mapping[str, str]) -> RunTold:
    return RunTold(
        name=tags.get(NAME, ""),
        note=tags.get(NOTE, ""),
        tags=tuple(f"{key}={value}" if value else key for key, value in tags.items() if not key.startswith(OWN)),
        config=dict(params),
        argv=(tags[SOURCE],) if tags.get(SOURCE) else (),
        started=_seconds(start),
        ended=_seconds(end),
        state=STATES.get(status),
        says=status,
    )


def _seconds(milliseconds: Any) -> float | None:
    try:
        moment = float(milliseconds) / 1000
    except (TypeError, ValueError):
        return None
    return moment if math.isfinite(moment) and moment > 0 else None


class FolderRun(StoredRun):
    """A run whose metrics are files."""

    store = "MLflow"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._meta = _mapping(read(path / "meta.yaml"))
        self.name = str(self._meta.get("run_name") or path.name)

    @property
    def is_run(self) -> bool:
        """True if it is a run, and not deleted: experiments, and models since MLflow 3, have a ``meta.yaml`` too."""
        is_one = "run_id" in self._meta or "run_uuid" in self._meta
        return is_one and self._meta.get("lifecycle_stage") != "deleted"

    def files(self) -> Sequence[Path]:
        return [self.path / "meta.yaml", *metric_files(self.path / "metrics")]

    def open(self) -> MetricFile | None:
        from ._mlflow_curves import FolderCurves

        return FolderCurves(self.path)

    def told(self, reader: MetricFile | None) -> RunTold:
        meta = _mapping(read(self.path / "meta.yaml"))
        status = str(meta.get("status") or "")
        words = _words(self.path / "params"), {NAME: self.name, **_words(self.path / "tags")}
        return _told(STATUS_OF_NUMBER.get(status, status), meta.get("start_time"), meta.get("end_time"), *words)


class DatabaseRun(StoredRun):
    """A run stored as rows of a database."""

    store = "MLflow"
    is_shared = True

    def __init__(self, database: Database, run: str, name: str, experiment: str) -> None:
        super().__init__(database.path, name or run, f"{database.path}{SEPARATOR}{run}")
        self._database = database
        self._run = run
        self._experiment = experiment

    def files(self) -> Sequence[Path]:
        return self._database.files()

    def open(self) -> MetricFile | None:
        from ._mlflow_curves import TableCurves

        return TableCurves(self._database, self._run)

    def told(self, reader: MetricFile | None) -> RunTold:
        read = self._database.read_now
        rows = read("SELECT status, start_time, end_time FROM runs WHERE run_uuid = ?", [self._run])
        if not rows:
            return RunTold(says="no more of it")
        params, tags = (
            {str(key): str(value or "") for key, value in read(statement, [self._run])} for statement in _WORDS
        )
        status, start, end = rows[0]
        return _told(str(status), start, end, params, {NAME: self.name, **tags})._replace(project=self._experiment)


def metric_files(folder: Path) -> list[Path]:
    """Return the files of a run's metrics, which may be in subfolders: names of metrics may contain slashes."""
    found, level = list[str](), [str(folder)]
    for _ in range(_DEEPEST):
        below: list[str] = []
        for one in level[:_MOST_FILES]:
            with suppress(OSError), os.scandir(one) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        found.append(entry.path)
        level = sorted(below)
    return [Path(one) for one in sorted(found)[:_MOST_FILES]]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(folder: Path) -> dict[str, str]:
    """Return the content of each file of a folder, by its name."""
    found = {}
    for one in metric_files(folder):
        with suppress(OSError):
            found[str(one.relative_to(folder))] = storage.read_text(one, _MOST_WORDS_BYTES).strip()
    return found


class MLflowStore:
    """Folders are recognised by their content, databases by their tables."""

    priority: ClassVar[Priority] = Priority.EXACT
    alone: ClassVar[bool] = True
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        if "meta.yaml" in names and "metrics" in names and "params" in names:
            found = FolderRun(folder)
            return [found] if found.is_run else None
        return None

    def runs_of(self, file: Path) -> list[StoredRun]:
        database = Database(file)
        with suppress(OSError):
            if {"runs", "metrics", "params", "tags", "experiments"} <= database.tables():
                rows = database.read_now(
                    "SELECT r.run_uuid, r.name, e.name FROM runs r LEFT JOIN experiments e "
                    "ON e.experiment_id = r.experiment_id WHERE r.lifecycle_stage = 'active' "
                    "AND e.lifecycle_stage IS NOT 'deleted' "
                    f"ORDER BY r.start_time DESC LIMIT {_MOST_ROWS}"
                )
                return [DatabaseRun(database, str(run), str(name or ""), str(of or "")) for run, name, of in rows]
        return []


STORE: Store = MLflowStore()
