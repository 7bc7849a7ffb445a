"""Checkpoint files: whole, few, the best one kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.trainer.building import job, train
from trainer.checkpoint import CheckpointFolder, load
from trainer.errors import UsageError


def test_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=2)
    for step in (1, 2, 3, 4):
        folder.save({"value": step}, step, best=step == 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.pt", "step-00000003.pt", "step-00000004.pt"]
    assert load(tmp_path / "best.pt", lambda state: None).state["value"] == 1


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = CheckpointFolder(tmp_path, keep=2)
    folder.save({"value": 1}, 1)

    def fill_the_disk(*args: object, **kwargs: object) -> None:
        raise RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed")

    monkeypatch.setattr(torch, "save", fill_the_disk)
    with pytest.raises(OSError, match="file write failed"):
        folder.save({"value": 2}, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001.pt"]
    assert load(tmp_path / "step-00000001.pt", lambda state: None).state["value"] == 1


def test_a_checkpoint_holds_all_that_resuming_needs(tmp_path: Path) -> None:
    state = job("--ema", "0.9", folder=tmp_path).state_dict()
    expected = {"model", "optimizer", "scheduler", "scaler", "average", "rng", "progress", "order", "signature"}
    assert expected <= set(state)
    assert {"python", "numpy", "torch"} <= set(state["rng"])
    path = CheckpointFolder(tmp_path, keep=1).save(state, 0)
    assert torch.load(path, weights_only=True)["order"]["seed"] == 0


def test_a_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (str(tmp_path / "touched"),)

    torch.save({"format": "mpstui.trainer/1", "model": Hostile()}, tmp_path / "hostile.pt")
    with pytest.raises(UsageError, match=r"hostile\.pt cannot be read"):
        load(tmp_path / "hostile.pt", lambda state: None)
    assert not (tmp_path / "touched").exists()


def test_a_foreign_checkpoint_is_told_from_ours(tmp_path: Path) -> None:
    torch.save({"weights": torch.zeros(2)}, tmp_path / "foreign.pt")
    with pytest.raises(UsageError, match="not written by this trainer"):
        load(tmp_path / "foreign.pt", lambda state: None)


def test_the_best_checkpoint_is_the_one_with_the_best_validation(tmp_path: Path) -> None:
    train("--limit", "128", "--epochs", "3", "--out", str(tmp_path), "--lr", "0.01")
    best = load(tmp_path / "best.pt", lambda state: None).state["progress"]
    newest = load(max(tmp_path.glob("step-*.pt")), lambda state: None).state["progress"]
    assert best["best"] == newest["best"]
    assert best["step"] == best["best_step"] == newest["best_step"]


def test_a_full_disk_does_not_end_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_space(*args: object, **kwargs: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CheckpointFolder, "save", no_space)
    train("--limit", "32", "--epochs", "1", "--out", str(tmp_path))
    printed = capsys.readouterr().out
    assert "the checkpoint could not be written" in printed
    assert "done: 2 steps" in printed
