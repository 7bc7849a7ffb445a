"""`mpstui parse`: the JSON that scripts rely on, the table for people, and errors in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpstui.cli.main import main


def test_the_json_has_exactly_the_promised_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "Epoch 1/9 | train loss: 0.5 | val loss: 0.7 | lr: 1e-3\n"
        "Epoch 2/9 | train loss: nan | val loss: inf | lr: 1e-3\n"
    )
    assert main(["parse", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "format": "key-value",
        "epoch": 2,
        "epochs": 9,
        "step": None,
        "steps": None,
        "train_loss": {"first": 0.5, "last": "nan", "count": 2},
        "metrics": ["train loss", "lr", "val loss"],
        "learning_rate": 0.001,
        "device": None,
        "done": False,
        "failure": None,
        "read_in_part": None,
    }


def test_a_file_without_training_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("the loss of 3 engineers was a blow\n")
    assert main(["parse", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [value for value in found.values() if value] == []
    assert main(["parse", str(path)]) == 0
    assert "nothing" in capsys.readouterr().out


def test_the_table_is_for_people_and_safe_for_terminals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 3, "loss": 0.5, "evil\\u001b[2J": 1.0}\n{"step": 4, "loss": 0.25}\n')
    assert main(["parse", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "0.5 -> 0.25 (2 readings)" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("name", ["absent.log", "."])
def test_what_cannot_be_read_exits_with_2(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", str(tmp_path / name)]) == 2
    assert "hint:" in capsys.readouterr().err
