"""MLflow's folders and databases: every value, the states that it records, and no lock on who writes."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from mpstui.core.formats.stores import _sqlite, find_runs
from mpstui.core.formats.stores._sqlite import Database, NotNow
from mpstui.core.model.snapshot import State
from mpstui.core.runs.monitor import Monitor
from tests.core.runs.build import FakeClock, make_home, make_monitor

START = 1_700_000_000_000


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    return make_monitor(make_home(tmp_path), FakeClock())


def folder_run(root: Path, status: int = 3, name: str = "try 1") -> Path:
    run = root / "mlruns" / "17" / f"run{status}"
    for folder in ("metrics/val", "params", "tags", "artifacts"):
        (run / folder).mkdir(parents=True)
    (run.parent / "meta.yaml").write_text("experiment_id: '17'\nname: cifar\n")
    end = START + 9000 if status > 2 else "null"
    meta = f"artifact_uri: file:///x\nend_time: {end}\nrun_id: abc\nrun_name: '{name}'\n"
    meta += f"start_time: {START}\nstatus: {status}\n"
    (run / "meta.yaml").write_text(meta)
    (run / "metrics" / "train_loss").write_text("".join(f"{START + i} {1 / (i + 1)!r} {i}\n" for i in range(40)))
    (run / "metrics" / "val" / "acc").write_text(f"{START} 0.5 3 data 12ab\n{START} nan 4 data 12ab\n{START} 0.")
    (run / "params" / "lr").write_text("0.1")
    (run / "tags" / "team").write_text("vision")
    (run / "tags" / "mlflow.note.content").write_text("a note")
    (run / "tags" / "mlflow.source.name").write_text("train.py")
    return run


SCHEMA = """
CREATE TABLE runs (
    run_uuid TEXT, name TEXT, status TEXT, start_time INT, end_time INT, lifecycle_stage TEXT, experiment_id INT
);
CREATE TABLE metrics (key TEXT, value FLOAT, timestamp INT, run_uuid TEXT, step INT, is_nan BOOLEAN);
CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
CREATE TABLE experiments (experiment_id INT, name TEXT, lifecycle_stage TEXT);
INSERT INTO experiments VALUES (1, 'cifar', 'active'), (2, 'old', 'deleted');
INSERT INTO runs VALUES ('e', 'run e', 'FINISHED', 1, 2, 'active', 2);
"""


def database(path: Path, mode: str = "DELETE") -> sqlite3.Connection:
    writer = sqlite3.connect(path)
    writer.execute(f"PRAGMA journal_mode = {mode}")
    writer.executescript(SCHEMA)
    states = [
        ("a", "FINISHED", "active"),
        ("b", "RUNNING", "active"),
        ("c", "KILLED", "active"),
        ("d", "FAILED", "deleted"),
    ]
    for place, (run, status, stage) in enumerate(states):
        end = None if status == "RUNNING" else START + 9000
        writer.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, 1)", (run, f"run {run}", status, START + place, end, stage)
        )
        rows = [("train_loss", 1 / (step + 1), START + step, run, step, 0) for step in range(50)]
        odd = [("odd", 0.0, START, run, 1, 1), ("odd", 1.7976931348623157e308, START, run, 2, 0)]
        writer.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows + odd)
        writer.execute("INSERT INTO params VALUES ('lr', '0.1', ?)", (run,))
    writer.commit()
    return writer


def test_a_folder(monitor: Monitor, tmp_path: Path) -> None:
    shown = monitor.snapshot(monitor.watch(folder_run(tmp_path)))
    assert (shown.name, shown.note, shown.tags, shown.state) == ("try 1", "a note", ("team=vision",), State.FINISHED)
    assert (shown.reason, shown.store) == ("MLflow has recorded its end: FINISHED", "MLflow")
    assert (shown.settings, shown.argv, shown.started, shown.ended) == (
        {"lr": "0.1"},
        ("train.py",),
        START / 1e3,
        START / 1e3 + 9,
    )
    loss, accuracy = shown.series["loss"], shown.series["val/acc"]
    assert list(loss.values) == [1 / (i + 1) for i in range(40)]
    assert list(loss.x) == list(range(40))
    assert loss.times[3] == (START + 3) / 1e3
    assert (accuracy.values[0], math.isnan(accuracy.values[1]), accuracy.count) == (0.5, True, 2)  # the last is torn
    assert not shown.loading


def test_a_deleted_run_is_none(tmp_path: Path) -> None:
    kept, deleted = folder_run(tmp_path, 3), folder_run(tmp_path, 4)
    with (deleted / "meta.yaml").open("a") as file:
        file.write("lifecycle_stage: deleted\n")
    with (kept / "meta.yaml").open("a") as file:
        file.write("lifecycle_stage: active\n")
    assert [run.path for run in find_runs(tmp_path / "mlruns")] == [kept]


def test_states_of_folders_and_their_growth(monitor: Monitor, tmp_path: Path) -> None:
    live = folder_run(tmp_path, 1)
    folder_run(tmp_path, 4)
    (tmp_path / "mlruns" / "17" / "models" / "m-1" / "metrics").mkdir(parents=True)
    assert monitor.watch(tmp_path / "mlruns") == ""
    found = {one.dir.name: one for one in monitor.refresh_whole()}
    assert {name: one.state for name, one in found.items()} == {"run1": State.WATCHED, "run4": State.FAILED}
    assert found["run1"].reason.startswith("MLflow says RUNNING; last written")
    assert monitor.snapshot(found["run1"].run).series["loss"].count == 40
    with (live / "metrics" / "train_loss").open("a") as file:
        file.write(f"{START} 0.01 40\n")
    (live / "metrics" / "lr").write_text(f"{START} 0.1 1\n")
    meta = (live / "meta.yaml").read_text()
    (live / "meta.yaml").write_text(meta.replace("status: 1", "status: 5"))
    shown = monitor.snapshot(str(live))
    assert (shown.state, shown.series["loss"].count, shown.series["lr"].last) == (State.KILLED, 41, 0.1)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_database_that_is_being_written(monitor: Monitor, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "mlflow.db"
    writer = database(path, mode)
    before = sorted(tmp_path.iterdir())
    assert monitor.watch(path) == ""
    found = {one.name: one for one in monitor.refresh_whole()}
    assert {name: one.state for name, one in found.items()} == {
        "run a": State.FINISHED, "run b": State.WATCHED, "run c": State.KILLED,
    }  # fmt: skip
    live = found["run b"].run
    assert live == f"{path}#b"
    shown = monitor.snapshot(live)
    assert shown.series["loss"].count == 50
    assert (shown.series["odd"].count, shown.series["odd"].minimum, shown.settings) == (2, None, {"lr": "0.1"})
    writer.execute("PRAGMA busy_timeout = 0")
    writer.execute("INSERT INTO metrics VALUES ('train_loss', 0.001, ?, 'b', 50, 0)", (START,))
    writer.execute("UPDATE runs SET status = 'FAILED', end_time = ? WHERE run_uuid = 'b'", (START + 1,))
    writer.commit()
    shown = monitor.snapshot(live)
    assert (shown.state, shown.series["loss"].count, shown.numbers.loss) == (State.FAILED, 51, 0.001)
    assert sorted(tmp_path.iterdir()) == before
    assert [run.key for run in find_runs(Path(live))] == [live]
    writer.close()


@pytest.mark.parametrize("name", ["system/cpu_utilization_percentage", "val_acc"])
def test_what_is_counted_by_something_else_is_not_the_step_of_the_run(
    monitor: Monitor, tmp_path: Path, name: str
) -> None:
    """MLflow counts what it measures of the machine, and programs their evaluations by epochs."""
    writer = database(tmp_path / "mlflow.db")
    key = f"{tmp_path / 'mlflow.db'}#b"
    monitor.watch_all(tmp_path / "mlflow.db")
    for count in range(3):
        writer.execute("INSERT INTO metrics VALUES (?, 0.5, ?, 'b', ?, 0)", (name, START + 60 + count, count))
        writer.commit()
        shown = monitor.snapshot(key)
        assert (shown.numbers.step, list(shown.series[name].x)) == (49, [float(one) for one in range(count + 1)])
    writer.close()


@pytest.mark.parametrize("brief", [True, False])
def test_epochs_that_are_logged_for_themselves_stand_beside_the_steps(
    monitor: Monitor, tmp_path: Path, brief: bool
) -> None:
    """As the Trainer of transformers logs them, to MLflow and to TensorBoard."""
    writer = database(tmp_path / "mlflow.db")
    rows = [("epoch", (step + 1) / 10, START + step, "b", step, 0) for step in range(50)]
    writer.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
    writer.commit()
    key = f"{tmp_path / 'mlflow.db'}#b"
    monitor.watch_all(tmp_path / "mlflow.db")
    found = {one.run: one for one in monitor.refresh_whole()}
    shown = found[key] if brief else monitor.snapshot(key)
    assert (shown.numbers.step, shown.numbers.epoch) == (49, 5)
    assert list(shown.series["loss"].epochs)[-1] == 5.0
    assert "epoch" not in shown.series
    writer.close()


def test_what_somebody_writes_meanwhile_is_read_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mlflow.db"
    writer, reader = database(path), Database(path)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO params VALUES ('x', 'y', 'a')")
    monkeypatch.setattr(_sqlite, "_PATIENCE_SECONDS", 0.01)
    with pytest.raises(OSError, match=r"mlflow\.db"):
        reader.read("SELECT 1 FROM runs")
    writer.commit()
    assert len(reader.read("SELECT key FROM params WHERE run_uuid = 'a'")) == 2
    writer.close()


def test_the_runs_of_a_database_in_the_middle_of_a_transaction_are_found(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    writer = database(path)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO params VALUES ('x', 'y', 'a')")
    assert path.with_name("mlflow.db-journal").exists()
    assert len(find_runs(path)) == 3
    writer.rollback()
    writer.close()


def test_the_runs_of_a_database_are_found_once_a_slow_writer_is_through(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    database(path).close()
    locked = threading.Event()

    def write() -> None:
        writer = sqlite3.connect(path)
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("INSERT INTO params VALUES ('x', 'y', 'a')")
        locked.set()
        time.sleep(0.7)
        writer.commit()
        writer.close()

    other = threading.Thread(target=write)
    other.start()
    assert locked.wait(60)
    assert len(find_runs(path)) == 3
    other.join()


def test_a_database_that_is_locked_is_no_log(monitor: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mlflow.db"
    writer = database(path)
    monkeypatch.setattr(_sqlite, "_PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(_sqlite, "_LONGER_PATIENCE_SECONDS", 0.01)
    writer.execute("BEGIN EXCLUSIVE")
    writer.execute("INSERT INTO metrics VALUES ('val_loss 7.0', 7.0, 0, 'b', 50, 0)")
    assert path.with_name("mlflow.db-journal").exists()
    assert monitor.watch_all(path) == []
    assert monitor.refresh_whole() == ()
    writer.rollback()
    writer.close()
    assert len(find_runs(path)) == 3


def test_no_database_of_a_stranger_keeps_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "evil.db"
    writer = sqlite3.connect(path)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS run_uuid FROM n"
    for name in ("runs", "metrics", "params", "tags", "experiments"):
        writer.execute(f"CREATE VIEW {name} AS {endless}")
    writer.commit()
    writer.close()
    assert find_runs(path) == []
    monkeypatch.setattr(_sqlite, "LONGEST_QUERY_SECONDS", 0.05)
    with pytest.raises(OSError, match="interrupted"):
        Database(path).read("SELECT * FROM runs")
    whole = path.read_bytes()
    for end in (17, 100, 5000):
        path.write_bytes(whole[:end] + b"\xff" * 3000)
        assert find_runs(path) == []


def test_a_busy_machine_cuts_no_query_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mlflow.db"
    database(path).close()
    monkeypatch.setattr(_sqlite, "LONGEST_QUERY_SECONDS", 0.2)
    monkeypatch.setattr(_sqlite, "_STEPS_BETWEEN_LOOKS", 10)
    others = iter(range(10**6))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(others)))  # a second goes by at each look
    assert len(Database(path).read("SELECT key FROM metrics")) == 4 * 52


def test_a_database_that_stays_locked_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mlflow.db"
    writer, reader = database(path, "WAL"), Database(path)
    monkeypatch.setattr(_sqlite, "_PATIENCE_SECONDS", 0.0)
    writer.execute("PRAGMA locking_mode = EXCLUSIVE")
    writer.execute("INSERT INTO params VALUES ('x', 'y', 'a')")
    told: list[BaseException] = []
    while not told or isinstance(told[-1], NotNow):
        with pytest.raises(OSError, match="locked") as caught:
            reader.read("SELECT key FROM params")
        told.append(caught.value)
    assert 10 < len(told) < 100
    writer.commit()
    writer.close()
    assert len(reader.read("SELECT key FROM params")) == 5


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_pipe_beside_a_database_is_not_waited_for(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "mlflow.db"
    database(path).close()
    os.mkfifo(f"{path}{ending}")
    with pytest.raises(OSError, match=rf"mlflow\.db{ending} is no file"):
        Database(path).read("SELECT 1 FROM runs")
    assert find_runs(path) == []


def test_no_text_of_a_database_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mlflow.db"
    writer = database(path)
    writer.execute("CREATE TABLE bomb (n, text AS (hex(zeroblob(300000000))))")
    writer.execute("INSERT INTO bomb (n) VALUES (1)")
    writer.commit()
    writer.close()
    with pytest.raises(OSError, match="too big"):
        Database(path).read("SELECT text FROM bomb")
    monkeypatch.setattr(_sqlite, "MOST_BYTES", 500)
    with pytest.raises(OSError, match="its texts are too long"):
        Database(path).read("SELECT key FROM metrics")
    assert len(Database(path).read("SELECT key FROM params")) == 4


def test_a_column_whose_name_is_no_utf8_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    database(path).close()
    path.write_bytes(path.read_bytes().replace(b"is_nan BOOLEAN", b"is_n\xff\x87 BOOLEAN"))
    with pytest.raises(OSError, match=r"mlflow\.db"):
        Database(path).read("SELECT * FROM metrics")


def test_a_table_that_cannot_be_read_is_asked_again_when_the_file_has_changed(monitor: Monitor, tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    writer = database(path)
    writer.executescript("ALTER TABLE metrics RENAME TO kept; CREATE TABLE metrics (key PRIMARY KEY) WITHOUT ROWID")
    assert monitor.watch(path) == ""
    monitor.refresh_whole()
    shown = monitor.snapshot(f"{path}#a")
    assert (shown.loading, shown.series, shown.state) == (False, {}, State.FINISHED)
    assert "no such column" in str(shown.readers)
    writer.executescript("DROP TABLE metrics; ALTER TABLE kept RENAME TO metrics")
    assert monitor.snapshot(f"{path}#a").series["loss"].count == 50
    writer.close()


def test_a_name_that_is_no_utf8_is_a_name(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff?mode=rwc#%41")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("the file system takes UTF-8 alone")
    database(folder / "mlflow.db").close()
    assert [run.name for run in find_runs(tmp_path)] == ["run c", "run b", "run a"]
