"""What experiment trackers open: every value as it was measured, and what is told of the run.

`make integrations` reads the same with their own libraries; here our own readers do, which read what those write.
"""

from __future__ import annotations

import json
import re
import sqlite3
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.formats.files import read_log
from mpstui.core.formats.files.tensorboard import masked_crc32c
from mpstui.core.formats.files.wandb import TransactionLog
from mpstui.core.formats.stores._yaml import parse
from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.core.runs.monitor import Monitor
from mpstui.core.sharing import export, mlflow_store, trackers
from mpstui.core.sharing.event_file import write_event_file
from tests.core.runs.build import NOW, RunBuilder

from .build import home_in, labelled_run, resumed_run


@pytest.fixture(name="snapshot")
def _snapshot(tmp_path: Path) -> RunSnapshot:
    home = home_in(tmp_path / "home")
    return Monitor(home, columns=export.MOST_POINTS).snapshot(labelled_run(home))


def expected(snapshot: RunSnapshot) -> dict[str, list[tuple[float, float]]]:
    """Every point but the one that is no number."""
    curves = snapshot.series.items()
    return {name: [(x, v) for x, v in zip(view.x, view.values, strict=True) if v == v] for name, view in curves}


@pytest.mark.parametrize("tracker", trackers.FOLDERS)
def test_what_is_watched_again_is_as_it_was(tracker: str, snapshot: RunSnapshot, tmp_path: Path) -> None:
    trackers.write(trackers.tracked(snapshot), tracker, tmp_path / tracker)
    monitor = Monitor(home_in(tmp_path / "other"), columns=export.MOST_POINTS)
    [key] = monitor.watch_all(tmp_path / tracker)
    back = monitor.snapshot(key)
    assert {name: points for name, points in expected(back).items() if name in snapshot.series} == expected(snapshot)
    assert back.series["loss"].count == 900, "NaN is a point too"
    assert list(back.series["loss"].times)[:-1] == list(snapshot.series["loss"].times)[:-1]
    assert back.series["loss"].times[-1] == NOW + 901, "a step has one time there"
    assert (back.name, back.settings["lr"]) == ("digits", "0.5")
    if tracker != "trackio":  # which has no words for these
        assert (back.state, back.ended, back.note) == (State.FINISHED, NOW + 500, snapshot.note)
    if tracker == "wandb":
        assert (back.tags, back.exit and back.exit.code) == (("good", "keep"), 0)


def test_a_wandb_folder_is_framed_in_blocks_and_tells_no_secret(snapshot: RunSnapshot, tmp_path: Path) -> None:
    made = trackers.write(trackers.tracked(snapshot), "wandb", tmp_path / "wandb")
    assert made.name == "offline-run-20270115_080001-20270115-080000-digits"
    log = next(made.glob("*.wandb"))
    records = list(TransactionLog(log).read())
    assert log.stat().st_size > 2 * 32768
    assert len(records) == 1 + 1 + 900 + 1 + 1 + 1, "header, run, history, summary, artifact, exit"
    assert b"s3cr" not in log.read_bytes()
    assert (snapshot.checkpoints[0].path.as_uri()).encode() in records[-2]


@pytest.mark.parametrize("name", ["größe 模型", "run 😀", r'a "b" \ud83d', "x\x7fy\x85z", "half \ud83d"])
def test_any_name_is_a_word_of_yaml(snapshot: RunSnapshot, tmp_path: Path, name: str) -> None:
    """Over one record that YAML refuses MLflow lists none of the runs beside it: half a pair of surrogates is one."""
    made = trackers.write(replace(trackers.tracked(snapshot), name=name), "mlflow", tmp_path / "mlruns")
    text = (made / "meta.yaml").read_text(encoding="utf-8")
    assert parse(text)["run_name"] == name.replace("\ud83d", "?")
    assert not re.search(r"(?<!\\)(?:\\\\)*\\ud[89a-f]", text)
    assert text.replace("\n", "").isprintable()


def test_an_mlflow_store_has_a_file_for_each_metric(snapshot: RunSnapshot, tmp_path: Path) -> None:
    made = trackers.write(trackers.tracked(snapshot), "mlflow", tmp_path / "mlruns")
    lines = [line.split() for line in (made / "metrics" / "loss").read_text().splitlines()]
    assert [(float(step), float(value)) for _, value, step in lines if value != "nan"] == expected(snapshot)["loss"]
    assert lines[0][0] == str(int(NOW + 1) * 1000)
    assert (made / "metrics" / "val" / "acc").read_text() == f"{int(NOW + 901) * 1000} 0.5 900\n"
    assert (made / "params" / "lr").read_text() == "0.5"
    assert (made / "tags" / "mlflow.note.content").read_text() == snapshot.note
    meta = dict(line.split(": ", 1) for line in (made / "meta.yaml").read_text().splitlines())
    assert (meta["status"], meta["run_name"], json.loads(meta["end_time"])) == ("3", '"digits"', (NOW + 500) * 1000)
    assert json.loads((made / "artifacts" / "checkpoints.json").read_text())[0]["step"] == 900


def test_a_trackio_database_holds_runs_beside_each_other_and_none_twice(snapshot: RunSnapshot, tmp_path: Path) -> None:
    run = trackers.tracked(snapshot)
    for _ in range(2):
        path = trackers.write(run, "trackio", tmp_path / "trackio")
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT step, timestamp, metrics FROM metrics ORDER BY step").fetchall()
        (config,) = database.execute("SELECT config FROM configs").fetchone()
    database.close()
    assert [step for step, _, _ in rows] == list(range(1, 901))
    assert json.loads(rows[19][2])["loss"] == "NaN"
    assert json.loads(rows[-1][2]) == {"epoch": 2, "loss": 1 / 900, "val/acc": 0.5}
    assert (json.loads(config)["lr"], json.loads(config)["tags"]) == (0.5, ["good", "keep"])


@pytest.mark.parametrize("text", ["1" + "0" * 400, "[" * 100_000, "NaN", "x"], ids=["long", "deep", "NaN", "x"])
def test_a_setting_that_no_tracker_takes_for_a_number_stays_a_text(text: str) -> None:
    assert trackers._typed(text) == text


def test_an_event_file_is_framed_and_tells_settings_and_words(snapshot: RunSnapshot, tmp_path: Path) -> None:
    file = tmp_path / "events.out.tfevents.1.x"
    write_event_file(snapshot, trackers.tracked(snapshot), file)
    data, at, events = file.read_bytes(), 0, list[bytes]()
    while at < len(data):  # the frames, by the format's own description
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked_crc32c(data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked_crc32c(body)
        events.append(body)
        at += 16 + length
    assert len(events) == 1 + 900 + 1 + 7, "version; points; settings, five texts and how it ended"
    assert b"hparams" in events[1]
    found = read_log(file)
    assert (found.step, "val/acc" in found.metrics) == (900, True)
    assert masked_crc32c(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_where_steps_do_not_tell_the_rows_apart_rows_are_counted(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    run = RunBuilder(home, "epochs", NOW).status("ended").launch().exit(code=0)
    run.output("".join(f"epoch {at} train_loss {1 / at:.3f} val_loss {2 / at:.3f}\n" for at in (1, 2, 3, 4)))
    made = trackers.tracked(Monitor(home, columns=export.MOST_POINTS).snapshot(run.run.run))
    assert made.counts_rows
    assert [(row.step, row.values["epoch"], row.values["loss"]) for row in made.rows][:2] == [(0, 1, 1.0), (1, 2, 0.5)]
    resumed = trackers.tracked(Monitor(home, columns=export.MOST_POINTS).snapshot(resumed_run(home)))
    assert (resumed.counts_rows, [row.step for row in resumed.rows]) == (False, list(range(1, 41)))


@pytest.mark.parametrize("tracker", trackers.FOLDERS)
def test_what_cannot_be_written_is_not_there(
    tracker: str, snapshot: RunSnapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trackers.tracked(snapshot)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        trackers.write(run, tracker, tmp_path / "file")
    monkeypatch.setattr(trackers.LoggedRow, "values", property(lambda row: 1 / 0))  # in the middle of it
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            trackers.write(run, tracker, tmp_path / "made")
    left = [path.name for path in (tmp_path / "made").rglob("*") if path.is_file()]
    assert left in ([], ["meta.yaml"], ["mpstui.db"])


def test_names_that_a_disk_cannot_tell_apart_are_kept_apart() -> None:
    found = mlflow_store._keys(["val", "val/acc", "Val", "a@b", "a_b", "../x", ""])
    assert len({str(path).casefold() for path in found.values()}) == 7
    assert [str(found[name]) for name in ("val", "val/acc", "../x", "")] == ["val_", "val/acc", "x", "_"]
