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
from trainer.network import Network, wants_compiling, weights_of_products

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


def test_compiled_code_that_is_recorded_is_for_one_shape(
    compilations: Compilations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "replays_kernels", True)
    job("--limit", "32", "--compile", "on", folder=tmp_path)
    assert compilations == [{"dynamic": False}]


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


class Mixed(nn.Module):
    """Products, attention, a norm and an embedding that is also a product's weight, and one that is not always used."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 8)
        self.convolution = nn.Conv1d(8, 8, 3, padding=1)
        self.norm = nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, add_bias_kv=True, batch_first=True)
        self.spare = nn.Linear(8, 8)
        self.head = nn.Linear(8, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor, *, spared: bool) -> torch.Tensor:
        shown = self.embedding(tokens)
        assert shown.dtype == torch.float32
        mixed = self.norm(self.convolution(shown.mT).mT + shown)
        mixed = mixed + self.attention(mixed, mixed, mixed, need_weights=False)[0]
        found: torch.Tensor = self.head(self.spare(mixed) if spared else mixed)
        return found


@pytest.mark.parametrize("spared", [True, False])
def test_weights_that_are_cast_together_give_what_autocast_gives(spared: bool) -> None:
    torch.manual_seed(1)
    model = Mixed()
    assert {name for name, _ in weights_of_products(model) if "attention" in name} == {
        f"attention.{name}" for name in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    }
    tokens, results = torch.randint(0, 5, (3, 7)), []
    for products in (None, torch.bfloat16):
        model.zero_grad(set_to_none=True)
        network = Network(model, compiled=False, products=products)
        for _ in range(2):  # gradients add up
            with torch.autocast("cpu", torch.bfloat16):
                network(tokens, spared=spared).float().square().mean().backward()
        results.append({name: one.grad for name, one in model.named_parameters()})
    expected, found = results
    assert (found["spare.weight"] is not None) == spared
    for name, gradient in expected.items():
        assert gradient is None or gradient.dtype == torch.float32
        torch.testing.assert_close(found[name], gradient, rtol=0, atol=0)
