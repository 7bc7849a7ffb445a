"""Totals in the configuration files that a command names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpstui.core.runs.planned import MOST_BYTES, totals_in_files

LATER = 4e9


@pytest.mark.parametrize(
    ("name", "text", "totals"),
    [
        ("c.json", '{"trainer": {"epochs": 4, "save_period": 1}}', {"epochs": 4}),
        ("c.json", '{"stages": [{"max_steps": 300}], "num_epochs": 2}', {"steps": 300, "epochs": 2}),
        ("c.yaml", "train:\n  max_epochs: 12  # a year\n  warmup_epochs: 5\n", {"epochs": 12}),
        ("c.yml", "max_iters: 40_000\nlr: 0.1\n", {"steps": 40_000}),
        ("c.toml", "[train]\nepochs = 7\n", {"epochs": 7}),
        ("c.cfg", "[optimization]\nN_epochs=13\nN_eval_epoch=4\n", {"epochs": 13}),
        ("c.ini", "[train]\n; epochs = 5\nepochs = 7\n", {"epochs": 7}),
        ("c.json", '{"pretrain": {"epochs": 4}, "train": {"epochs": 9}}', {}),
        ("c.json", '{"a": {"epochs": 4}, "b": {"num_epochs": 4}}', {"epochs": 4}),
        ("c.json", '{"epochs": "4", "max_steps": -1, "steps": true}', {}),
        ("c.json", '{"epochs": 4', {}),
        ("c.json", "[" * 100_000, {}),
        ("c.toml", "epochs = ", {}),
        ("c.txt", "epochs: 3", {}),
        ("c.yaml", "epochs: 3\n" + " " * MOST_BYTES, {}),
    ],
)
def test_a_plan_is_read_where_there_is_but_one(tmp_path: Path, name: str, text: str, totals: dict[str, float]) -> None:
    (tmp_path / name).write_text(text)
    assert totals_in_files(["python", "train.py", "-c", name], tmp_path, LATER) == totals
    assert totals_in_files(["python", "train.py", f"--config={name}"], tmp_path, LATER) == totals


def test_what_is_no_file_or_was_changed_since_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"epochs": 4}')
    os.utime(path, (1000, 1000))
    assert totals_in_files(["c.json"], tmp_path, 999.0) == {}
    assert totals_in_files(["c.json"], tmp_path, 1000.0) == {"epochs": 4}
    os.mkfifo(tmp_path / "d.json")
    (tmp_path / "e.json").mkdir()
    assert totals_in_files(["d.json", "e.json", "gone.yaml", "\0.json"], tmp_path, LATER) == {}
