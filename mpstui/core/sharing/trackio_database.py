"""A Trackio database, as ``trackio show`` opens it: one SQLite file per project, one row per step."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from ...wire import storage
from .trackers import PROJECT, TrackedRun, details_of

_TABLES = """
CREATE TABLE IF NOT EXISTS metrics (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL, run_name TEXT NOT NULL,
    step INTEGER NOT NULL, metrics TEXT NOT NULL, log_id TEXT, space_id TEXT);
CREATE TABLE IF NOT EXISTS configs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, run_name TEXT NOT NULL, config TEXT NOT NULL,
    created_at TEXT NOT NULL, UNIQUE(run_id));
CREATE INDEX IF NOT EXISTS idx_metrics_run_step ON metrics(run_id, step);
"""


def write_trackio(run: TrackedRun, folder: Path) -> Path:
    """Write the run into ``mpstui.db`` in a folder for ``TRACKIO_DIR``, beside others; replace an earlier export."""
    storage.make_private_folder(folder)
    path = folder / f"{PROJECT}.db"
    run_id = hashlib.sha256(run.id.encode()).hexdigest()[:32]
    kept = {
        **run.config,
        "_Username": None,
        "_Created": _moment(run.started),
        "_Group": None,
        "argv": list(run.argv),
        "state": str(run.state),
        "tags": list(run.tags),
        "notes": run.note,
        "checkpoints": [details_of(one) for one in run.checkpoints],
    }
    rows = (
        (run_id, _moment(run.started if row.time is None else row.time), run.name, row.step, _values(row.values), log)
        for row, log in ((row, hashlib.md5(f"{run_id} {row.step}".encode()).hexdigest()) for row in run.rows)
    )
    try:
        database = sqlite3.connect(path)
        try:
            with database:
                database.executescript(_TABLES)
                database.execute("DELETE FROM metrics WHERE run_id = ?", (run_id,))
                database.execute("DELETE FROM configs WHERE run_id = ?", (run_id,))
                database.execute(
                    "INSERT INTO configs (run_id, run_name, config, created_at) VALUES (?, ?, ?, ?)",
                    (run_id, run.name, json.dumps(kept), _moment(run.started)),
                )
                database.executemany(
                    "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics, log_id)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    rows,
                )
        finally:
            database.close()
    except sqlite3.Error as error:
        raise OSError(None, str(error), str(path)) from error
    return path


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _values(values: Mapping[str, float]) -> str:
    """The values as JSON; Trackio writes numbers that are not finite as words."""
    words = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return json.dumps({n: v if math.isfinite(v) else words.get(v, "NaN") for n, v in values.items()})
