"""What the processes of one training agree on."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import torch
import torch.distributed as dist

from trainer.device import Device
from trainer.distributed import Averaged, Group, Ranks


def test_a_rank_waits_for_the_one_that_validates_longer_than_torchs_half_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(dist, "init_process_group", lambda backend: None)
    monkeypatch.setattr(dist, "new_group", lambda **settings: asked.append(settings))
    Group(Ranks(rank=1, world_size=2, local_rank=1), Device())
    assert [settings.get("timeout", datetime.timedelta()) >= datetime.timedelta(days=1) for settings in asked] == [True]


def test_all_gradients_are_averaged_at_once_and_laid_out_like_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanged: list[int] = []

    def all_reduce(tensor: torch.Tensor) -> None:
        """Another rank has three times these gradients."""
        exchanged.append(tensor.numel())
        tensor.mul_(4)

    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    image = torch.randn(4, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    weights = [torch.nn.Parameter(one) for one in (image, torch.randn(5), torch.randn(2, 3))]
    averaged = Averaged(weights, 2)
    for step in range(2):
        gradients = [torch.randn_like(weight) for weight in weights]
        weights[0].grad, weights[1].grad = gradients[0].contiguous(), gradients[1]
        weights[2].grad = gradients[2] if step == 0 else None
        averaged.exchange()
        expected = [*gradients[:2], gradients[2] if step == 0 else torch.zeros(2, 3)]
        for weight, own in zip(weights, expected, strict=True):
            assert weight.grad is not None
            assert weight.grad.stride() == weight.stride()
            torch.testing.assert_close(weight.grad, own * 2)
    assert exchanged == [64 + 32 + 32] * 2  # each begins at a multiple of 32
