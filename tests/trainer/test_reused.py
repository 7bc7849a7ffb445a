"""Batches in store: made once, given again, and the training around them is the task's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.trainer.building import points
from tests.trainer.running import command, made
from trainer.device import Device
from trainer.measuring import CachedBatches

TINY = ("--model", "tiny", "--width", "4", "--batch-size", "8", "--limit", "64")


def test_a_batch_is_made_once_and_given_again() -> None:
    task: Any = CachedBatches(made("cifar", *TINY), 2, Device())
    given = [task.batch(torch.arange(4) + at, at) for at in range(6)]
    assert given[0] is not given[1]
    assert {id(batch) for batch in given[2:]} == {id(batch) for batch in given[:2]}
    assert len(task.batch(torch.arange(3), 0)["images"]) == 3
    assert task.train_size == 64


def test_a_training_takes_them(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("MPSTUI_RUN_DIR", str(tmp_path))
    words = ("--device", "cpu", "--epochs", "1", "--report-every", "1", "--reuse-batches", "1", "--optimizer", "sgd")
    assert command("cifar", *TINY, *words, "--lr", "0.01", "--warmup-epochs", "0", "--schedule", "constant") == 0
    losses = [loss for _, loss in points(tmp_path)]
    assert losses[-1] < losses[0]  # the one batch is learnt by heart
