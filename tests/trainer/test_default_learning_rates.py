"""The learning rate nobody set follows the size of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trainer.building import job
from tests.trainer.running import train
from trainer import optimizers
from trainer.tasks.cifar import Cifar


def test_sgd_grows_linearly_and_adaptive_optimizers_with_the_root() -> None:
    assert optimizers.default_lr("sgd", 512) == pytest.approx(4 * optimizers.default_lr("sgd", 128))
    assert optimizers.default_lr("adamw", 512) == pytest.approx(2 * optimizers.default_lr("adamw", 128))


@pytest.mark.parametrize("name", optimizers.RECIPES)
def test_small_steps_keep_the_reference(name: str) -> None:
    assert optimizers.default_lr(name, 8) == optimizers.RECIPES[name].lr


def test_a_task_may_know_better_values_for_an_optimizer_and_the_command_line_beats_them(tmp_path: Path) -> None:
    tuned = Cifar.DEFAULTS.tuned["muon"].weight_decay
    assert tuned != optimizers.RECIPES["muon"].weight_decay
    words = ("--limit", "8", "--optimizer", "muon")
    assert job(*words, folder=tmp_path).optimizer.param_groups[0]["weight_decay"] == tuned
    given = job(*words, "--weight-decay", "0.5", folder=tmp_path)
    assert given.optimizer.param_groups[0]["weight_decay"] == 0.5


def test_a_tasks_rate_is_for_its_own_optimizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--width", "8", "--layers", "1", "--states", "2", "--limit", "128", "--epochs", "1", "--batch-size", "64")
    for words, rate in (
        (("--optimizer", "adamw"), "lr 0.001"),
        (("--optimizer", "muon"), "lr 0.02"),
        (("--lr", "0.5"), "lr 0.5"),
    ):
        train("genomics", *small, *words, "--accumulate", "2", run_dir=tmp_path / words[1])
        assert f"{rate} ·" in capsys.readouterr().out
