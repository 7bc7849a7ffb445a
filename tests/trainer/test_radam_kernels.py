"""A step of RAdam: a kernel on CUDA (run here by Triton's interpreter) does what torch's operations do."""

from __future__ import annotations

import copy
from types import ModuleType

import pytest
import torch

from tests.trainer.conftest import Interpreted
from trainer.optimizers.radam import _factors, _move

SHAPES = [(12, 5, 3, 3), (7, 301), (9,)]


@pytest.fixture
def own(interpreted: Interpreted) -> ModuleType:
    return interpreted("trainer.optimizers.radam_kernels")


@pytest.mark.parametrize("step", [3, 300])
def test_the_kernel_does_what_torch_does(own: ModuleType, step: int) -> None:
    """Before and after the variance of the rate is finite."""
    generator = torch.Generator().manual_seed(1)
    weights, gradients, firsts, seconds = ([torch.randn(one, generator=generator) for one in SHAPES] for _ in range(4))
    seconds = [one.square() for one in seconds]
    weights[0], firsts[0], seconds[0] = (
        one[0].contiguous(memory_format=torch.channels_last) for one in (weights, firsts, seconds)
    )
    group = {"lr": torch.tensor(0.1), "betas": (0.9, 0.999), "epsilon": 1e-8, "weight_decay": 0.1}
    results = []
    for move in (_move, own.move):
        held = copy.deepcopy((weights, gradients, firsts, seconds))
        move(*held, _factors(torch.tensor(float(step)), 0.9, 0.999), group)
        results.append(held)
    expected, found = results
    assert all(not torch.equal(one, other) for one, other in zip(weights, found[0], strict=True))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_a_step_that_must_not_be_taken_changes_nothing(own: ModuleType) -> None:
    weight, first, second, spoiled = (torch.full((9,), value) for value in (1.0, 2.0, 3.0, float("nan")))
    group = {"lr": torch.tensor(0.1), "betas": (0.9, 0.999), "epsilon": 1e-8, "weight_decay": 0.1}
    factors = _factors(torch.tensor(9.0), 0.9, 0.999)
    own.move([weight], [spoiled], [first], [second], factors, group, torch.ones(()))
    assert [one.tolist() for one in (weight, first, second)] == [[1.0] * 9, [2.0] * 9, [3.0] * 9]
    own.move([weight], [torch.ones(9)], [first], [second], factors, group, torch.zeros(()))
    assert not torch.equal(weight, torch.ones(9))
