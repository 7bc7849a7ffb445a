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


def test_compiled_code_that_is_recorded_is_for_one_shape(
    compilations: Compilations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "replays_kernels", True)
    job("--limit", "32", "--compile", "on", "--optimizer", "sgd", folder=tmp_path)
    assert compilations == [{"dynamic": False}]


def test_elsewhere_it_is_for_any(compilations: Compilations, tmp_path: Path) -> None:
    job("--limit", "32", "--compile", "on", folder=tmp_path)
    assert compilations == [{}]
