"""How the model is called: eagerly, compiled, or compiled and replayed as one CUDA graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainer.building import job
from tests.trainer.test_step import OOM_TEXT
from trainer.device import CudaDevice, Device
from trainer.tasks import Batch, Loss
from trainer.tasks.cifar import Cifar

Compilations = list[dict[str, Any]]


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Compilations:
    """What the compiler was asked for; it gives the model back."""
    asked: Compilations = []

    def compile_(model: nn.Module, **settings: Any) -> nn.Module:
        asked.append(settings)
        return model

    monkeypatch.setattr(torch, "compile", compile_)
    return asked


@pytest.fixture
def replaying(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU stands in for a device that replays."""
    assert CudaDevice.replays_kernels
    assert not Device.replays_kernels
    monkeypatch.setattr(Device, "replays_kernels", True)


REPLAYED = {"mode": "reduce-overhead", "dynamic": False}


@pytest.mark.usefixtures("replaying")
@pytest.mark.parametrize(("accumulate", "settings"), [("1", REPLAYED), ("2", {})])
def test_only_a_step_of_one_pass_is_replayed(
    accumulate: str, settings: dict[str, Any], compilations: Compilations, tmp_path: Path
) -> None:
    job("--limit", "32", "--compile", "on", "--accumulate", accumulate, folder=tmp_path)
    assert compilations == [settings]


def test_a_device_that_cannot_replay_compiles_all_the_same(compilations: Compilations, tmp_path: Path) -> None:
    job("--limit", "32", "--compile", "on", folder=tmp_path)
    assert compilations == [{}]


@pytest.mark.usefixtures("replaying")
def test_replaying_ends_when_memory_makes_several_passes_of_a_step(
    compilations: Compilations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Cifar.loss

    def greedy(self: Cifar, model: nn.Module, batch: Batch) -> Loss:
        if len(batch["labels"]) > 8:
            raise RuntimeError(OOM_TEXT)
        return real(self, model, batch)

    made = job("--limit", "32", "--compile", "on", folder=tmp_path)
    monkeypatch.setattr(Cifar, "loss", greedy)
    made.stepper.step(*next(made.feed.epoch(1)), 1)
    assert made.stepper.micro_batch == 8
    assert compilations == [REPLAYED, {}]
    assert made.network.compiled
