"""What a list shows of runs that are too long to be read for it: their newest values, whatever keeps them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mpstui.core.formats.files.tensorboard import TensorBoard
from mpstui.core.runs import stored
from tests.core.runs.build import FakeClock, make_home, make_monitor
from tests.wandb_files import events

STEPS = 20_000
START = 1_700_000_000.0


def mlflow_folder(root: Path) -> None:
    for name in "ab":
        run = root / "mlruns" / "1" / name
        for folder in ("metrics", "params"):
            (run / folder).mkdir(parents=True)
        (run / "meta.yaml").write_text(f"run_id: {name}\nrun_name: {name}\nstatus: 1\n")
        lines = (f"{int(START * 1000) + step} {1 / (step + 1)!r} {step}\n" for step in range(STEPS))
        (run / "metrics" / "train_loss").write_text("".join(lines))
        (run / "metrics" / "val_acc").write_text(f"{int(START * 1000)} 0.5 3\n")


def mlflow_database(root: Path) -> None:
    writer = sqlite3.connect(root / "mlflow.db")
    writer.executescript("""
        CREATE TABLE runs (run_uuid, name, status, start_time, end_time, lifecycle_stage, experiment_id);
        CREATE TABLE metrics (key, value, timestamp, run_uuid, step, is_nan);
        CREATE TABLE latest_metrics (key, value, timestamp, run_uuid, step, is_nan);
        CREATE TABLE params (key, value, run_uuid);
        CREATE TABLE tags (key, value, run_uuid);
        CREATE TABLE experiments (experiment_id, name, lifecycle_stage);
    """)
    for name in "ab":
        writer.execute("INSERT INTO runs VALUES (?, ?, 'RUNNING', 1, NULL, 'active', 1)", (name, name))
        rows = [("train_loss", 1 / (step + 1), START * 1000 + step, name, step, 0) for step in range(STEPS)]
        rows.append(("val_acc", 0.5, START * 1000, name, 3, 0))
        writer.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        writer.executemany("INSERT INTO latest_metrics VALUES (?, ?, ?, ?, ?, ?)", rows[-2:])
    writer.commit()
    writer.close()


def trackio(root: Path) -> None:
    writer = sqlite3.connect(root / "cifar.db")
    writer.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp, run_name, step, metrics)")
    for name in "ab":
        rows = (
            (datetime.fromtimestamp(START + step, UTC).isoformat(), name, step, json.dumps({"loss": 1 / (step + 1)}))
            for step in range(STEPS)
        )
        writer.executemany("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", rows)
    writer.commit()
    writer.close()


def tensorboard(root: Path) -> None:
    for name in "ab":
        events(root / "runs" / name / "events.out.tfevents.1700000000.host.1.0", range(STEPS))
        events(root / "runs" / name / "events.out.tfevents.1600000000.host.1.0", range(9), "old/loss")
        os.utime(root / "runs" / name / "events.out.tfevents.1600000000.host.1.0", (1.6e9, 1.6e9))


@pytest.mark.parametrize("made", [mlflow_folder, mlflow_database, trackio, tensorboard])
def test_a_list_shows_where_a_long_run_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(stored, "LIST_BYTES", 1000)
    (tmp_path / "kept").mkdir()
    made(tmp_path / "kept")
    monitor = make_monitor(make_home(tmp_path / "home"), FakeClock())
    assert len(monitor.watch_all(tmp_path / "kept")) == 2
    for one in monitor.refresh_whole():
        assert one.numbers.step == STEPS - 1
        assert one.numbers.loss == pytest.approx(1 / STEPS)
        assert monitor.snapshot(one.run).series["loss"].count == STEPS


@pytest.mark.parametrize("torn", range(1, 60))
def test_the_end_of_a_long_event_file_is_understood_wherever_it_is_looked_at(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "events.out.tfevents.1.host"
    events(path, range(3999))
    shorter = path.stat().st_size
    events(path, range(4000))
    record = path.stat().st_size - shorter
    path.write_bytes(path.read_bytes()[:-torn])
    assert TensorBoard(path).glance()[-1].newest.counters.step == 3999 - -(-torn // record)
