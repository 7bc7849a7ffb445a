"""How the model is called: eagerly, compiled, or compiled and replayed as one CUDA graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainer.building import job
from trainer.device import CudaDevice, Device
from trainer.job import Job

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
def test_a_device_that_can_replays_a_compiled_pass(compilations: Compilations, tmp_path: Path) -> None:
    job("--limit", "32", "--compile", "on", folder=tmp_path)
    assert compilations == [{"mode": "reduce-overhead", "dynamic": False}]


def test_a_device_that_cannot_replay_compiles_all_the_same(compilations: Compilations, tmp_path: Path) -> None:
    job("--limit", "32", "--compile", "on", folder=tmp_path)
    assert compilations == [{}]


def _overwritten_by_the_next_pass(made: Job) -> Job:
    """As replaying does it: a pass gives its gradients in memory that the next pass takes for its own."""
    given: list[torch.UntypedStorage] = []  # a reference to the tensor itself would make autograd copy it

    def give(gradient: torch.Tensor) -> torch.Tensor:
        own = gradient.clone()
        given.append(own.untyped_storage())
        return own

    def begin(*_: Any) -> None:
        for storage in given:
            storage.fill_(255)  # type: ignore[attr-defined]  # all bits set: NaN
        given.clear()

    for weight in made.model.parameters():
        weight.register_hook(give)  # type: ignore[no-untyped-call]
    made.model.register_forward_pre_hook(begin)
    return made


@pytest.mark.usefixtures("replaying", "compilations")
@pytest.mark.parametrize("limit", ["48", "41"])
def test_replayed_passes_of_one_step_add_up(limit: str, tmp_path: Path) -> None:
    arguments = ("--limit", limit, "--optimizer", "sgd", "--batch-size", "8", "--accumulate", "3")
    plain = job(*arguments, folder=tmp_path)
    replayed = _overwritten_by_the_next_pass(job(*arguments, "--compile", "on", folder=tmp_path))
    assert (plain.network.replayed, replayed.network.replayed) == (False, True)
    for made in (plain, replayed):
        for number, (batch, total) in enumerate(made.feed.epoch(1)):
            made.stepper.step(batch, total, number + 1)
    for mine, theirs in zip(replayed.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)
