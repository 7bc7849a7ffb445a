"""What surrounds Muon's iteration: kernels on CUDA (run here by Triton's interpreter) do what torch's operations do."""

from __future__ import annotations

import copy
from types import ModuleType

import pytest
import torch

from tests.trainer.conftest import Interpreted
from trainer.optimizers.muon import _Around, _wide, size_classes

SHAPES = [(40, 12, 3, 3), (40, 10, 3, 3), (130, 64, 1, 1), (20, 300), (300, 20), (7, 5, 4)]
"""Tall and wide ones, channels-last and not, three padded to one size and three to another."""


@pytest.fixture
def own(interpreted: Interpreted) -> ModuleType:
    return interpreted("trainer.optimizers.muon_kernels")


def _laid_out(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    drawn = torch.randn(shape, generator=generator)
    return drawn.contiguous(memory_format=torch.channels_last) if drawn.ndim == 4 else drawn


def test_the_kernels_do_what_torch_does(own: ModuleType) -> None:
    """But for the rounding of the matrices to bfloat16."""
    generator = torch.Generator().manual_seed(1)
    classes = size_classes([_laid_out(shape, generator) for shape in SHAPES], 8000)
    assert [len(members) for members in classes] == [3, 3]
    momenta = [[_laid_out(one.shape, generator) for one in members] for members in classes]
    # As they come, some in another order of memory than their weights.
    gradients = [[torch.randn(one.shape, generator=generator) for one in members] for members in classes]
    results = []
    for around in (_Around, own):
        kept = copy.deepcopy(momenta)
        sizes = [_wide(members) for members in classes]
        parts = zip(gradients, kept, sizes, strict=True)
        found = [around.directions(arriving, one, 0.9, size) for arriving, one, size in parts]
        results.append((found, kept))
    (torchs, torchs_momenta), (found, own_momenta) = results
    assert not torch.equal(momenta[0][0], own_momenta[0][0])
    torch.testing.assert_close(torchs_momenta, own_momenta)
    assert [one.dtype for one in found] == [torch.bfloat16] * 2
    # The order of columns differs where channels are last in memory.
    for one, other in zip(torchs, found, strict=True):
        torch.testing.assert_close(one.sort().values, other.float().sort().values, rtol=1e-2, atol=1e-4)
    alike = [one @ one.mT for one in torchs], [one.float() @ one.float().mT for one in found]
    torch.testing.assert_close(*alike, rtol=1e-2, atol=1e-3)


def test_they_move_weights_as_torch_does(own: ModuleType) -> None:
    generator = torch.Generator().manual_seed(1)
    for shape in SHAPES[:-1]:  # of the last, each takes the columns in an order of its own
        weight, lr = _laid_out(shape, generator), torch.tensor(0.1)
        matrix = torch.randn(1, *_wide([weight]), generator=generator).bfloat16()
        theirs, mine = weight.clone(), weight.clone()
        _Around.move([theirs], matrix, lr, 0.1)
        own.move([mine], matrix, lr, 0.1)
        assert not torch.equal(weight, mine)
        torch.testing.assert_close(theirs, mine)


def test_a_step_that_must_not_be_taken_changes_nothing(own: ModuleType) -> None:
    weight, momentum, lr, skip = torch.ones(6, 9), torch.ones(6, 9), torch.tensor(0.1), torch.ones(())
    matrices = own.directions([torch.full((6, 9), float("nan"))], [momentum], 0.9, (6, 9), skip)
    own.move([weight], matrices, lr, 0.1, skip)
    assert torch.equal(weight, torch.ones(6, 9))
    assert torch.equal(momentum, torch.ones(6, 9))
    skip.zero_()
    own.move([weight], own.directions([torch.ones(6, 9)], [momentum], 0.9, (6, 9), skip), lr, 0.1, skip)
    assert not torch.equal(weight, torch.ones(6, 9))
