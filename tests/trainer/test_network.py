"""How the model is called: eagerly or compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainer.building import job
from trainer.device import CudaDevice, Device
from trainer.models.resnet import ResNet
from trainer.network import wants_compiling

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


@pytest.mark.parametrize(("optimizer", "parts"), [("sgd", 1), ("muon", 3), ("radam", 2)])
def test_compiled_code_that_is_recorded_is_for_one_shape(
    compilations: Compilations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimizer: str, parts: int
) -> None:
    """The model, and the step of an optimizer that gains by it, or its parts."""
    monkeypatch.setattr(Device, "replays_kernels", True)
    job("--limit", "32", "--compile", "on", "--optimizer", optimizer, folder=tmp_path)
    assert compilations == [{"dynamic": False}] * parts


def test_a_long_training_is_compiled_on_its_own_unless_the_model_has_kernels() -> None:
    plain, quick = nn.Linear(1, 1), ResNet((1, 1), 4, 10)
    assert [wants_compiling("auto", CudaDevice(0), steps, plain)[0] for steps in (500, 50_000)] == [False, True]
    assert not wants_compiling("auto", CudaDevice(0), 50_000, quick)[0]
    assert wants_compiling("on", CudaDevice(0), 500, quick)[0]


def test_elsewhere_it_is_for_any(compilations: Compilations, tmp_path: Path) -> None:
    job("--limit", "32", "--compile", "on", folder=tmp_path)
    assert compilations == [{}]


def test_a_smaller_last_step_is_not_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whichever comes first: a resumed training may begin with it."""
    compiled: list[int] = []

    class Counted(nn.Module):
        def __init__(self, model: nn.Module, **_: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, images: torch.Tensor) -> Any:
            compiled.append(len(images))
            return self.model(images)

    monkeypatch.setattr(torch, "compile", Counted)
    made = job("--limit", "40", "--batch-size", "16", "--compile", "on", folder=tmp_path)
    for batch, total in made.feed.epoch(1, first_step=2):
        made.stepper.step(batch, total, 1)
    assert compiled == []
    for number, (batch, total) in enumerate(made.feed.epoch(2), start=2):
        made.stepper.step(batch, total, number)
    assert compiled == [16, 16]
    tiny = job("--limit", "12", "--batch-size", "16", "--compile", "on", folder=tmp_path)
    for batch, total in tiny.feed.epoch(1):
        tiny.stepper.step(batch, total, 1)
    assert compiled == [16, 16, 12]  # the only step there is
