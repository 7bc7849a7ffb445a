"""The measure of unseen logs (`tests/bench/metric_names.py`) finds what is wrong, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench import metric_names

LOG = "Using device: cpu\n" + "".join(
    f"epoch {epoch}/3 loss {1 / epoch:.4f} lr 0.001\nepoch {epoch}/3 val_loss {1.1 / epoch:.4f} val_acc 0.{epoch}\n"
    for epoch in (1, 2, 3)
)
ENTRY: dict[str, Any] = {
    "file": "small.log",
    "numbering": {"epoch_base": 1},
    "expected": {
        "last_epoch": 3,
        "total_epochs": 3,
        "last_step": None,
        "total_steps": None,
        "first_train_loss": 1.0,
        "last_train_loss": 0.3333,
        "n_train_loss_points": 3,
        "learning_rate": 0.001,
    },
    "metrics": ["loss", ["validation loss", "val_loss"], ["val_acc"]],
    "device": ["cpu"],
    "validation": {"val loss": 0.3667, "val_acc": 0.3},
}
GAN = "".join(f"step {step} loss_D: 0.{step} loss_G: 1.{step} temperature: 0.{step}5\n" for step in range(1, 9))
GAN_ENTRY: dict[str, Any] = {
    "file": "gan.log",
    "expected": {"last_step": 9, "last_train_loss": None, "n_train_loss_points": 0},
    "metrics": ["loss_D", "loss_G", "accuracy"],
    "tolerated": [],
    "device": None,
}


def measured(folder: Path, capsys: pytest.CaptureFixture[str], *logs: tuple[str, dict[str, Any]]) -> tuple[int, str]:
    for text, entry in logs:
        (folder / entry["file"]).write_text(text)
    (folder / "index.json").write_text(json.dumps([entry for _, entry in logs]))
    code = metric_names.main([str(folder)])
    return code, capsys.readouterr().out


def test_a_log_that_is_understood_reaches_the_goals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = measured(tmp_path, capsys, (LOG, ENTRY))
    assert code == 0
    assert "small.log" not in out
    assert "values right          8 of 8, 100.0 %" in out
    assert "invented losses       0" in out
    assert "metrics missed        0 of 3" in out
    assert "device right          1 of 1" in out
    assert "validation right      2 of 2" in out


def test_what_is_wrong_is_told_log_by_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = measured(tmp_path, capsys, (LOG, ENTRY), (GAN, GAN_ENTRY))
    assert code == 1
    assert "small.log" not in out
    assert "gan.log: last_step 8, not 9; 'temperature' is no metric; 'accuracy' is missed\n" in out
    assert "values right          10 of 11, 90.9 % (goal 98 %)" in out
    assert "names that are metrics 5 of 6, 83.3 % (goal 95 %)" in out


def test_a_loss_where_there_is_none_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = dict.fromkeys(ENTRY["expected"]) | {"n_train_loss_points": 0}
    code, out = measured(tmp_path, capsys, (LOG, ENTRY | {"expected": expected}))
    assert code == 1
    assert "a training loss is invented" in out
    other = {"series": "epochs", "n": 3, "first": 1.0, "last": 0.3333}
    _, out = measured(tmp_path, capsys, (LOG, ENTRY | {"expected": expected, "alternates": [other]}))
    assert "invented losses       0" in out, "a series that the index accepts is none"


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({"last_epoch": 2}, False),
        ({"last_epoch": 4}, False),
        ({"last_train_loss": 0.33331}, False),
        ({"learning_rate": 0.0010000001}, True),
        ({"n_train_loss_points": 2}, False),
    ],
)
def test_values_are_exact(change: dict[str, float], right: bool) -> None:
    expected = ENTRY["expected"] | change
    found = metric_names.score(ENTRY | {"expected": expected}, metric_names.read(LOG.encode()))
    assert (found.right == found.values) == right


@pytest.mark.parametrize(
    "tolerance",
    [{"accept": {"last_epoch": [3, 7]}}, {"accept": {"last_epoch": 3}}, {"numbering": {"epoch_base": 0}}],
)
def test_the_index_may_tolerate_more_than_one_answer(tolerance: dict[str, Any]) -> None:
    entry = ENTRY | {"expected": ENTRY["expected"] | {"last_epoch": 2}} | tolerance
    assert not metric_names.score(entry, metric_names.read(LOG.encode())).wrong


def test_one_metric_may_be_spelt_in_many_ways() -> None:
    log = "".join(f"epoch {epoch} train/loss 0.{epoch} valid-loss 0.{epoch}\n" for epoch in (1, 2, 3)).encode()
    entry = {"expected": {}, "metrics": ["loss", "loss (validation)"], "validation": {"Val_Loss": 0.3}}
    assert not metric_names.score(entry, metric_names.read(log)).wrong


def test_the_name_of_an_evaluation_may_be_that_of_training() -> None:
    entry = {"expected": {}, "metrics": ["loss", "acc"], "validation": {"acc": 0.75}}
    found = metric_names.score(entry, metric_names.read(b"epoch 1 loss: 0.5 acc: 0.5 val_acc: 0.75\n"))
    assert (found.names_right, found.names, found.validations_right) == (3, 3, 1)


def test_a_metric_file_is_read_by_its_own_format(tmp_path: Path) -> None:
    (tmp_path / "progress.csv").write_text("step,loss,acc\n1,2.5,0.25\n2,1.5,0.5\n")
    assert metric_names.read_file(tmp_path / "progress.csv").value("n_train_loss_points") == 2
