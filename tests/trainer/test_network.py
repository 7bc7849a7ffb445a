"""How the model is called: eagerly or compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainer.building import job
from trainer.device import Device

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


@pytest.mark.parametrize(("optimizer", "parts"), [("sgd", 1), ("muon", 1), ("radam", 2)])
def test_compiled_code_that_is_recorded_is_for_one_shape(
    compilations: Compilations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimizer: str, parts: int
) -> None:
    """The model, and the step of an optimizer that gains by it."""
    monkeypatch.setattr(Device, "replays_kernels", True)
    job("--limit", "32", "--compile", "on", "--optimizer", optimizer, folder=tmp_path)
    assert compilations == [{"dynamic": False}] * parts


def test_elsewhere_it_is_for_any(compilations: Compilations, tmp_path: Path) -> None:
    job("--limit", "32", "--compile", "on", folder=tmp_path)
    assert compilations == [{}]
