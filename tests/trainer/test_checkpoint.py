"""Checkpoint files: whole, few, the best one kept."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from mpstui.wire.checkpoints import owner_of
from tests.trainer.building import job, train
from trainer import pretrained
from trainer.checkpoint import CheckpointFolder, find, load
from trainer.data.indicator_cache import IndicatorCache
from trainer.data.markets import synthetic
from trainer.errors import TrainingError, UsageError
from trainer.loop import Loop


def test_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=2)
    for step in (1, 2, 3, 4):
        folder.save({"value": step}, step, best=step == 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.pt", "step-00000003.pt", "step-00000004.pt"]
    assert load(tmp_path / "best.pt", lambda state: None).state["value"] == 1


def _bests(folder: Path) -> dict[str, int]:
    return {path.name: load(path, lambda state: None).state["value"] for path in sorted(folder.glob("best*.pt"))}


def _state(value: int, best: float, best_step: int) -> dict[str, Any]:
    return {"value": value, "progress": {"best": best, "best_step": best_step}}


def test_the_best_of_a_training_before_stays_beside_that_of_one_begun_anew(tmp_path: Path) -> None:
    for value, score in ((1, 0.9), (2, 0.1), (3, 0.2)):
        folder = CheckpointFolder(tmp_path, keep=1)
        folder.save(_state(0, score - 0.05, 5), 5, best=True)
        folder.save(_state(value, score, 10), 10, best=True)
    assert _bests(tmp_path) == {"best-earlier-1.pt": 1, "best-earlier-2.pt": 2, "best.pt": 3}
    (tmp_path / "step-00000010.pt").unlink()
    found = find(str(tmp_path), tmp_path, lambda state: None, print)
    assert found is not None
    assert found.path.name == "best.pt"


def test_only_the_newest_two_earlier_bests_stay_and_are_tried_newest_first(tmp_path: Path) -> None:
    (tmp_path / "best-earlier-mine.pt").write_bytes(b"named by a person")
    for value in range(1, 13):
        folder = CheckpointFolder(tmp_path, keep=1)
        newest = folder.save(_state(value, value / 100, value), value, best=True)
    (tmp_path / "best-earlier-mine.pt").unlink()
    assert _bests(tmp_path) == {"best-earlier-10.pt": 10, "best-earlier-11.pt": 11, "best.pt": 12}
    for gone in (newest, tmp_path / "best.pt"):
        gone.unlink()
    found = find(str(tmp_path), tmp_path, lambda state: None, print)
    assert found is not None
    assert found.path.name == "best-earlier-11.pt"


def test_who_goes_on_replaces_its_own_best_and_no_better_one(tmp_path: Path) -> None:
    CheckpointFolder(tmp_path, keep=1).save(_state(1, 0.5, 10), 10, best=True)
    own = CheckpointFolder(tmp_path, keep=1)
    own.goes_on_from(_state(7, 0.5, 10))
    own.save(_state(2, 0.6, 20), 20, best=True)
    assert _bests(tmp_path) == {"best.pt": 2}
    from_before = CheckpointFolder(tmp_path, keep=1)
    from_before.goes_on_from(_state(7, 0.5, 10))
    from_before.save(_state(3, 0.55, 15), 15, best=True)
    assert _bests(tmp_path) == {"best-earlier-1.pt": 2, "best.pt": 3}


def test_a_best_that_cannot_be_read_is_kept_too(tmp_path: Path) -> None:
    (tmp_path / "best.pt").write_bytes(b"somebody's")
    CheckpointFolder(tmp_path, keep=1).save(_state(1, 0.5, 10), 10, best=True)
    assert (tmp_path / "best-earlier-1.pt").read_bytes() == b"somebody's"


@pytest.mark.parametrize("words", [(), ("--resume", "latest")])
def test_a_training_begun_anew_keeps_the_best_of_the_one_before(tmp_path: Path, words: tuple[str, ...]) -> None:
    train("--limit", "32", "--epochs", "1", "--out", str(tmp_path))
    before = (tmp_path / "best.pt").read_bytes()
    train("--limit", "32", "--epochs", "2", "--out", str(tmp_path), *words)
    earlier = tmp_path / "best-earlier-1.pt"
    assert earlier.exists() != bool(words)
    assert words or earlier.read_bytes() == before


def test_a_start_from_scratch_in_the_same_folder_keeps_its_own_and_forgets_the_oldest(tmp_path: Path) -> None:
    before = CheckpointFolder(tmp_path, keep=2)
    for number, step in enumerate((1000, 2000)):
        os.utime(before.save({"value": step}, step), (number, number))
    again = CheckpointFolder(tmp_path, keep=2)
    saved = again.save({"value": 10}, 10)
    assert saved.exists()
    assert [path.name for path in again.newest_first()] == ["step-00000010.pt", "step-00002000.pt"]
    found = find(str(tmp_path), tmp_path, lambda state: None, print)
    assert found is not None
    assert found.path == saved


def test_copied_checkpoints_of_one_time_are_ordered_by_their_steps(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=9)
    for step in (9, 123456789, 10):
        os.utime(folder.save({"value": step}, step), (1, 1))
    assert [int(path.stem.removeprefix("step-")) for path in folder.newest_first()] == [123456789, 10, 9]


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


def test_a_best_that_could_not_be_written_stands_in_no_later_ones_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = iter((True, False))
    scores = iter((0.9, 0.5))
    made = job("--epochs", "2", "--limit", "32", folder=tmp_path)
    monkeypatch.setattr(type(made.task), "evaluate", lambda *_: iter([{"val_accuracy": next(scores)}]))
    write = CheckpointFolder.save

    def save(folder: CheckpointFolder, *arguments: Any, **named: Any) -> Path:
        if next(full, False):
            raise OSError("no space left")
        return write(folder, *arguments, **named)

    monkeypatch.setattr(CheckpointFolder, "save", save)
    Loop(made).run()
    found = load(tmp_path / "best.pt", lambda state: None).state["progress"]
    assert (found["best"], found["best_step"]) == (0.5, made.progress.step)


def test_a_training_whose_last_checkpoint_is_lost_is_not_called_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def save(*arguments: Any, **named: Any) -> Path:
        raise OSError("no space left")

    monkeypatch.setattr(CheckpointFolder, "save", save)
    with pytest.raises(TrainingError, match="trained to the end, but the last checkpoint could not be written"):
        Loop(job("--epochs", "2", "--limit", "32", folder=tmp_path)).run()
    assert "done: 4 steps" not in capsys.readouterr().out


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
    full = iter((True,))
    write = CheckpointFolder.save

    def no_space_at_first(folder: CheckpointFolder, *arguments: Any, **named: Any) -> Path:
        if next(full, False):
            raise OSError(28, "No space left on device")
        return write(folder, *arguments, **named)

    monkeypatch.setattr(CheckpointFolder, "save", no_space_at_first)
    train("--limit", "32", "--epochs", "2", "--out", str(tmp_path))
    printed = capsys.readouterr().out
    assert "the checkpoint could not be written" in printed
    assert "done: 4 steps" in printed


def test_a_checkpoint_says_which_run_wrote_it(tmp_path: Path) -> None:
    state = {"value": 1, "model": {f"layer{n}": torch.zeros(1000) for n in range(300)}}
    saved = CheckpointFolder(tmp_path, keep=1, run="20261121-114700-cifar").save(state, 1, best=True)
    assert owner_of(saved) == owner_of(tmp_path / "best.pt") == "20261121-114700-cifar"
    assert owner_of(CheckpointFolder(tmp_path, keep=1).save(state, 2)) is None


def test_checkpoints_and_caches_are_read_by_their_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        CheckpointFolder(tmp_path / "out" / "checkpoints", keep=2).save({"value": 1}, 1, best=True)
        candles = synthetic(0, symbols=1, days=50)[0]
        IndicatorCache(tmp_path / "cache" / "mpstui").get(candles, "x", lambda of: of.close)
    finally:
        os.umask(before)
    made = sorted(tmp_path.rglob("*"))
    assert [path.name for path in made if path.is_file()][1:] == ["best.pt", "step-00000001.pt"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {0o700}


def test_a_zip_that_would_fill_the_memory_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 20))
    for read in (lambda: load(path, lambda state: None), lambda: pretrained.read(path)):
        with pytest.raises(UsageError, match="compressed"):
            read()
