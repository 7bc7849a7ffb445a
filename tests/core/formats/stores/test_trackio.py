"""Trackio's databases: rows of JSON, the machine beside them, old and new tables."""

from __future__ import annotations

import json
import math
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mpstui.core.model.snapshot import Health, State
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
    assert monitor.watch_all(Path(f"{path}#one")) == keys[1:], "its name, where rows have an id of it as well"
    shown = monitor.snapshot(keys[1])
    assert (shown.name, shown.state, shown.store, shown.started) == ("one", State.WATCHED, "Trackio", START)
    assert shown.settings == {"lr": "0.1", "model.depth": "3"}
    assert list(shown.series) == ["loss", "odd", "val.acc", "system/gpu/0/temp"]
    assert shown.numbers.step == 9, "the machine was measured at an earlier one"
    assert list(shown.series["loss"].values) == [1 / (step + 1) for step in range(10)]
    assert shown.series["loss"].times[2] == START + 2
    assert (list(shown.series["system/gpu/0/temp"].x), shown.series["system/gpu/0/temp"].last) == ([4], 61)
    assert all(map(math.isnan, shown.series["odd"].values))


@pytest.mark.parametrize("most", [4 << 20, 1000])
def test_a_run_does_not_go_on_because_another_writes_into_the_same_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("mpstui.core.runs.stored.LIST_BYTES", most)
    path, clock = tmp_path / "cifar.db", FakeClock(START)
    writer = sqlite3.connect(path)
    writer.execute(
        "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INT, metrics TEXT)"
    )
    writer.execute("CREATE TABLE system_metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, metrics TEXT)")

    def log(name: str, step: int) -> None:
        row = stamp(clock()), name, step, json.dumps({"loss": 1 / (step + 1)})
        writer.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", row)
        writer.commit()

    monitor = make_monitor(make_home(tmp_path / "home"), clock)
    log("short", 0)
    writer.execute("INSERT INTO system_metrics VALUES (1, ?, 'short', ?)", [stamp(START - 9), '{"cpu": 3}'])
    log("long", 0)
    monitor.watch_all(path)
    found = {}
    for step in range(1, 60):
        clock.advance(1)
        if step < 10:
            log("short", step)
        log("long", step)
        found = {one.name: one for one in monitor.refresh()}
        if step == 5:
            assert {one.health for one in found.values()} == {Health.TRAINING}
    assert (found["long"].health, found["long"].updated) == (Health.TRAINING, START + 59)
    assert (found["short"].health, found["short"].updated) == (None, START + 9)
    assert "nothing written for" in found["short"].health_note
