"""A run that stopped anywhere and went on is the run that never stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.trainer.building import job, parsed, points, train
from trainer.control import Control
from trainer.errors import UsageError
from trainer.order import SampleOrder
from trainer.run import run

SMALL = ("--limit", "80", "--epochs", "3", "--ema", "0.9", "--clip", "1")


@pytest.mark.parametrize("stop", [1, 7, 10])
def test_stopped_inside_an_epoch_and_resumed_equals_uninterrupted(tmp_path: Path, stop: int) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(*SMALL, run_dir=whole)
    train(*SMALL, "--stop-after", str(stop), run_dir=parts)
    train(*SMALL, "--resume", "latest", run_dir=parts)
    assert len(points(whole)) == 15
    assert points(parts) == points(whole)
    assert points(parts, "val_loss") == points(whole, "val_loss")
    assert points(parts, "epoch_loss") == points(whole, "epoch_loss")


def test_sample_order_and_augmentation_depend_on_nothing_but_seed_and_place(tmp_path: Path) -> None:
    one, other = (job("--limit", "50", folder=tmp_path) for _ in range(2))
    whole = [batch for batch, _ in one.feed.epoch(2)]
    rest = [batch for batch, _ in other.feed.epoch(2, first_step=2)]
    assert [len(batch["labels"]) for batch in whole] == [16, 16, 16, 2]
    for expected, found in zip(whole[2:], rest, strict=True):
        assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_every_epoch_visits_every_sample_once_in_another_order(tmp_path: Path) -> None:
    order = job("--limit", "50", folder=tmp_path).feed.order
    first, second = order.epoch(1), order.epoch(2)
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(50))
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize(("size", "steps", "last"), [(50, 3, 16), (48, 3, 16), (10, 1, 10)])
def test_a_task_may_leave_out_the_smaller_last_step(size: int, steps: int, last: int) -> None:
    order = SampleOrder(size, 16, seed=0, drop_last=True)
    assert order.steps_per_epoch == steps
    assert len(order.step(order.epoch(1), steps - 1)) == last


def test_effective_batch_and_seed_come_from_the_checkpoint_unless_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ("--limit", "96", "--epochs", "2", "--out", str(tmp_path))
    train(*start, "--batch-size", "8", "--accumulate", "4", "--seed", "7", "--stop-after", "2")
    capsys.readouterr()
    args = parsed(*start, "--resume", "latest")
    args.batch_size = None
    run("cifar", args, {}, Control())
    printed = capsys.readouterr().out
    assert "32 samples a step (micro-batch 8)" in printed
    assert "seed 7" in printed
    assert "starts again" not in printed


def test_a_smaller_micro_batch_keeps_the_step_and_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = ("--limit", "64", "--epochs", "2", "--out", str(tmp_path))
    train(*start, "--stop-after", "6")
    train(*start, "--batch-size", "8", "--resume", "latest", "--stop-after", "7")
    printed = capsys.readouterr().out
    assert "16 samples a step (micro-batch 8)" in printed
    assert "starts again" not in printed


def test_another_step_size_restarts_the_epoch_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = ("--limit", "64", "--epochs", "2", "--out", str(tmp_path))
    train(*start, "--stop-after", "6")
    train(*start, "--batch-size", "8", "--accumulate", "1", "--resume", "latest", "--stop-after", "7")
    assert "epoch 2 starts again" in capsys.readouterr().out


def test_truncated_newest_is_passed_over_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = ("--limit", "64", "--epochs", "2", "--out", str(tmp_path))
    train(*start)
    newest = max(tmp_path.glob("step-*.pt"))
    newest.write_bytes(newest.read_bytes()[:2000])
    train(*start, "--resume", str(tmp_path))
    printed = capsys.readouterr().out
    assert f"passed over: {newest}" in printed
    assert "step-00000004.pt (step 4" in printed


def test_a_named_truncated_checkpoint_is_refused_with_its_name_and_the_remedy(tmp_path: Path) -> None:
    train("--limit", "32", "--epochs", "1", "--out", str(tmp_path))
    named = tmp_path / "best.pt"
    named.write_bytes(named.read_bytes()[:2000])
    with pytest.raises(UsageError, match=r"best\.pt cannot be read .* name another checkpoint"):
        train("--limit", "32", "--epochs", "1", "--out", str(tmp_path), "--resume", str(named))


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    train("--limit", "32", "--epochs", "1", "--out", str(tmp_path))
    with pytest.raises(UsageError, match=r"best\.pt is a checkpoint of another model \(tiny · width 4"):
        train("--width", "8", "--limit", "32", "--resume", str(tmp_path / "best.pt"))


def test_latest_without_any_checkpoint_starts_anew_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train("--limit", "32", "--epochs", "1", "--out", str(tmp_path), "--resume", "latest")
    assert "starting from the beginning" in capsys.readouterr().out


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.pt does not exist"):
        train("--resume", str(tmp_path / "nowhere.pt"))
    with pytest.raises(UsageError, match="no checkpoints"):
        train("--resume", str(tmp_path))


def test_another_optimizer_starts_afresh_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = ("--limit", "64", "--epochs", "2", "--out", str(tmp_path))
    train(*start, "--optimizer", "sgd", "--stop-after", "2")
    train(*start, "--optimizer", "adam", "--resume", "latest")
    assert "adam starts from scratch: the checkpoint is sgd's" in capsys.readouterr().out
