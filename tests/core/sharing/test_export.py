"""What other programs read of a run: every point, in its place, and what nobody measured left empty."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from mpstui.core.model.errors import OperationError
from mpstui.core.runs.monitor import Monitor
from mpstui.core.sharing import export
from mpstui.core.sharing.event_file import write_event_file
from mpstui.core.sharing.trackers import tracked
from tests.core.runs.build import NOW, RunBuilder

from .build import home_in, poisoned_run, resumed_run


def table(folder: Path, run: str) -> export.Table:
    return export.table_of(Monitor(home_in(folder), columns=export.MOST_POINTS).snapshot(run))


def test_a_csv_has_each_point_once_and_empty_fields_where_nothing_was_measured(tmp_path: Path) -> None:
    made = table(tmp_path, resumed_run(home_in(tmp_path)))
    export.write_csv(made, tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert list(rows[0]) == ["step", "epoch", "time", "loss", "val_loss"]
    losses = [(int(row["step"]), row["loss"]) for row in rows if row["loss"]]
    assert [step for step, _ in losses] == list(range(1, 41)), "what the resumed attempt measured again counts once"
    assert losses[29][1] == repr(1 / 30), "and it is the later one"
    assert math.isnan(float(losses[19][1]))
    assert [(row["step"], row["val_loss"]) for row in rows if row["val_loss"]][-1] == ("40", "0.05")
    assert rows[0]["time"] == str(int(NOW) + 1)
    assert not made.thinned


def test_the_loss_that_is_printed_and_the_one_that_is_seen_are_columns_and_tags_of_their_own(tmp_path: Path) -> None:
    run = RunBuilder(home_in(tmp_path), "both", NOW).status("ended").launch().beat(step=9, loss_seen="backward")
    run.points(*({"time": NOW, "step": at, "loss": at / 10, "attempt": 1} for at in range(1, 10)))
    run.output("".join(f"epoch {at}/2 loss {at + 0.5}\n" for at in (1, 2))).exit(code=0)
    snapshot = Monitor(home_in(tmp_path), columns=export.MOST_POINTS).snapshot(run.run.run)
    names = export.table_of(snapshot).names
    assert len(set(names)) == len(names)
    assert {name for name in names if "loss" in name} == {name for name in snapshot.series if "loss" in name}
    write_event_file(snapshot, tracked(snapshot), tmp_path / "events")
    tags = {name for name in snapshot.series if name.encode() in (tmp_path / "events").read_bytes()}
    assert tags == set(snapshot.series)


def test_every_point_of_a_long_run_is_there_and_a_shorter_bound_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunBuilder(home_in(tmp_path), "long", NOW).status("ended").launch().exit(code=0)
    run.points(*({"time": NOW, "step": at, "loss": float(at % 7), "attempt": 1} for at in range(1, 9001)))
    whole = table(tmp_path, run.run.run)
    assert [row[3] for row in whole.rows] == [float(at % 7) for at in range(1, 9001)]
    assert not whole.thinned
    monkeypatch.setattr(export, "MOST_POINTS", 3000)
    thin = table(tmp_path, run.run.run)
    assert thin.thinned == ("loss",)
    assert len(thin.rows) <= 3000


def test_steps_that_nobody_told_leave_their_column_empty(tmp_path: Path) -> None:
    run = RunBuilder(home_in(tmp_path), "epochs", NOW).status("ended").launch().exit(code=0)
    run.output("".join(f"epoch {at} train_loss {1 / at:.3f} val_loss {2 / at:.3f}\n" for at in (1, 2, 3, 4)))
    made = table(tmp_path, run.run.run)
    assert [(row[0], row[1]) for row in made.rows] == [(None, 1.0), (None, 2.0), (None, 3.0), (None, 4.0)]


def test_parquet_says_what_it_needs_or_writes_nulls(tmp_path: Path) -> None:
    made = table(tmp_path, resumed_run(home_in(tmp_path)))
    try:
        from pyarrow import parquet
    except ImportError:
        with pytest.raises(OperationError, match="pyarrow") as error:
            export.write_parquet(made, tmp_path / "out.parquet")
        assert "pip install" in error.value.hint
        assert not (tmp_path / "out.parquet").exists()
        return
    export.write_parquet(made, tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.column_names == list(made.names)
    assert found.column("val_loss").null_count == len(made.rows) - 4


def test_a_name_becomes_a_file_name_that_stays_in_its_folder(tmp_path: Path) -> None:
    assert export.file_stem("../../etc/passwd") == "etc-passwd"
    assert export.file_stem("....") == "run"
    assert export.file_stem("Quick start · tiny network") == "Quick-start-tiny-network"
    assert len(export.file_stem("x" * 500)) == 80
    made = table(tmp_path, poisoned_run(home_in(tmp_path)))
    export.write_csv(made, tmp_path / "out.csv")
    assert len(list(csv.DictReader((tmp_path / "out.csv").open()))) == 3
