"""Muon's iteration and its batching."""

from __future__ import annotations

import pytest
import torch

from trainer.optimizers.muon import Muon, orthogonalised


@pytest.mark.parametrize("shape", [(1, 6, 6), (3, 4, 20), (2, 20, 4)])
def test_the_iteration_pushes_all_singular_values_towards_1(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    found = orthogonalised(matrices)
    assert found.shape == shape
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.3
    assert values.max() < 1.3
    assert torch.linalg.svdvals(matrices).max() > 2


def test_weights_of_one_shape_are_updated_as_if_each_were_alone() -> None:
    def updated(size: int) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(2)
        weights = [torch.nn.Parameter(torch.randn(4, 3, 3, 3, generator=generator)) for _ in range(3)]
        together = [weights[start : start + size] for start in range(0, 3, size)]
        optimizers = [Muon([{"params": part, "muon": True}], lr=0.1) for part in together]
        for _ in range(3):
            for weight in weights:
                weight.grad = torch.randn(weight.shape, generator=generator)
            for optimizer in optimizers:
                optimizer.step()
        return [weight.detach() for weight in weights]

    for one, many in zip(updated(1), updated(3), strict=True):
        torch.testing.assert_close(one, many)


def test_a_weight_without_a_gradient_is_left_alone() -> None:
    used, unused = torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Parameter(torch.ones(2, 2))
    used.grad = torch.eye(2)
    for matrix in (True, False):
        Muon([{"params": [used, unused], "muon": matrix}], lr=0.1).step()
    assert not torch.equal(used, torch.ones(2, 2))
    assert torch.equal(unused, torch.ones(2, 2))
