"""The networks have the sizes their papers give."""

from __future__ import annotations

import pytest
import torch

from trainer.models.resnet import ResNet, WideResNet


@pytest.mark.parametrize(
    ("model", "parameters"),
    [(ResNet((2, 2, 2, 2), 64, 10), 11_173_962), (WideResNet(16, 4, 10), 2_748_890)],
    ids=["resnet18", "wrn-16-4"],
)
def test_parameters_and_shapes(model: torch.nn.Module, parameters: int) -> None:
    assert sum(weight.numel() for weight in model.parameters()) == parameters
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
