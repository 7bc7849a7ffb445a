"""The table of results."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.wire.rundir import RunDir
from tests.trainer.building import train
from trainer.__main__ import _results
from trainer.errors import UsageError
from trainer.results import read, table


def test_a_training_is_summed_up_from_its_own_metrics(tmp_path: Path) -> None:
    run = tmp_path / "first"
    train("--limit", "32", "--epochs", "2", run_dir=run)
    found = read(RunDir(run))
    assert (found.run, found.device, found.steps, found.metric, found.finished) == (
        "first",
        "cpu",
        4,
        "val_accuracy",
        True,
    )
    assert found.best is not None
    assert found.best_step in {2, 4}
    assert table([tmp_path]) == table([run])
    assert table([tmp_path]).splitlines()[1].split()[:3] == ["first", "cpu", "4"]


def test_unknown_values_and_torn_lines_are_not_invented(tmp_path: Path) -> None:
    lines = '{"time": 1.0, "step": 1, "loss": null}\n{"time": 61.0, "step": 5, "val_loss": 0.5}\n{"time": 62.0, "st'
    (tmp_path / "metrics.jsonl").write_text(lines)
    found = read(RunDir(tmp_path))
    assert (found.train_loss, found.metric, found.best, found.best_step, found.minutes) == (
        None,
        "val_loss",
        0.5,
        5,
        1.0,
    )
    assert found.cells()[1] == found.cells()[3] == "n/a"


def test_a_folder_without_runs_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{tmp_path} holds no metrics"):
        table([tmp_path])
    with pytest.raises(UsageError, match="results needs run directories"):
        _results([])
