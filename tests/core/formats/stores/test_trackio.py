"""Trackio's databases: rows of JSON, the machine beside them, old and new tables."""

from __future__ import annotations

import json
import math
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mpstui.core.model.snapshot import State
from tests.core.runs.build import FakeClock, make_home, make_monitor

START = 1_700_000_000.0


def stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


@pytest.mark.parametrize("column", ["run_id", "run_name"])
def test_runs_of_a_project(tmp_path: Path, column: str) -> None:
    path = tmp_path / "cifar.db"
    writer = sqlite3.connect(path)
    more = "run_id TEXT, " if column == "run_id" else ""
    for table, rest in (
        ("metrics", "step INTEGER, metrics TEXT"),
        ("system_metrics", "metrics TEXT"),
        ("configs", "config TEXT"),
    ):
        writer.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {more}timestamp TEXT, run_name TEXT, {rest})")
    for name in ("one", "two"):
        told = {"run_name": name, **({"run_id": f"id-{name}"} if more else {})}
        rows = [
            ("metrics", {"step": step, "timestamp": stamp(START + step), "metrics": json.dumps(
                {"train/loss": 1 / (step + 1), "val": {"acc": step / 9}, "odd": "NaN", "text": "x", "flag": True}
            )})
            for step in range(10)
        ]  # fmt: skip
        rows.append(("system_metrics", {"timestamp": stamp(START + 4.5), "metrics": '{"gpu/0/temp": 61}'}))
        rows.append(("configs", {"config": json.dumps({"lr": 0.1, "model": {"depth": 3}, "_Group": "sweep"})}))
        rows.append(("metrics", {"step": None, "timestamp": "never", "metrics": "no json"}))
        for table, values in rows:
            values = {**told, **values}
            marks = ", ".join("?" * len(values))
            writer.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))
    writer.commit()
    writer.close()
    monitor = make_monitor(make_home(tmp_path / "home"), FakeClock())
    keys = monitor.watch_all(path)
    assert keys == [f"{path}#{'id-' if more else ''}{name}" for name in ("two", "one")]
    shown = monitor.snapshot(keys[1])
    assert (shown.name, shown.state, shown.store, shown.started) == ("one", State.WATCHED, "Trackio", START)
    assert shown.settings == {"lr": "0.1", "model.depth": "3"}
    assert list(shown.series) == ["loss", "odd", "val.acc", "system/gpu/0/temp"]
    assert list(shown.series["loss"].values) == [1 / (step + 1) for step in range(10)]
    assert shown.series["loss"].times[2] == START + 2
    assert (list(shown.series["system/gpu/0/temp"].x), shown.series["system/gpu/0/temp"].last) == ([4], 61)
    assert all(map(math.isnan, shown.series["odd"].values))
