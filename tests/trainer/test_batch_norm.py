"""Batch norm with an addition and ReLU: torch's own on the CPU, kernels on CUDA (run here by Triton's interpreter)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.trainer.conftest import Interpreted
from trainer.kernels import kernels
from trainer.models.batch_norm import BatchNorm

SHAPES = [(3, 12, 6, 5), (2, 200, 4, 4)]
"""Channels that fill no tile, and more of them than one tile has."""


@pytest.fixture
def norm_relu(interpreted: Interpreted) -> Callable[..., Any]:
    found: Callable[..., Any] = interpreted("trainer.models.batch_norm_kernels").norm_relu
    return found


def _seeded(shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    return (drawn * 2 + 1).contiguous(memory_format=torch.channels_last)


def _norm(kind: type[nn.BatchNorm2d], channels: int) -> nn.BatchNorm2d:
    norm = kind(channels)
    with torch.no_grad():
        norm.weight.copy_(torch.linspace(0.5, 1.5, channels))
        norm.bias.copy_(torch.linspace(-1, 1, channels))
    return norm


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(("relu", "twice"), [(True, False), (False, False), (True, True)])
def test_the_kernels_give_what_torch_gives(
    shape: tuple[int, ...], adds: bool, relu: bool, twice: bool, norm_relu: Callable[..., Any]
) -> None:
    mine, torchs = _norm(nn.BatchNorm2d, shape[1]), _norm(nn.BatchNorm2d, shape[1]).double()
    x, added = _seeded(shape, 1).requires_grad_(), _seeded(shape, 2).requires_grad_()
    exact_x, exact_added = (one.detach().double().requires_grad_() for one in (x, added))
    found = norm_relu(mine, x, added if adds else None, relu=relu, twice=twice)
    outputs = found if twice else (found,)
    arriving = [_seeded(shape, 3 + number) for number in range(len(outputs))]
    torch.autograd.backward(outputs, arriving)
    expected = torchs(exact_x) + (exact_added if adds else 0)
    expected = F.relu(expected) if relu else expected
    expected.backward(torch.stack(arriving).sum(dim=0).double())
    pairs: list[tuple[Any, Any]] = [(outputs[-1], expected), (x.grad, exact_x.grad)]
    pairs += [(added.grad, exact_added.grad)] if adds else []
    pairs += [(mine.weight.grad, torchs.weight.grad), (mine.bias.grad, torchs.bias.grad)]
    pairs += list(zip(mine.buffers(), torchs.buffers(), strict=True))
    for one, other in pairs:
        torch.testing.assert_close(one, other.to(one.dtype), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_in_evaluation_the_kernel_takes_the_running_statistics(
    adds: bool, relu: bool, norm_relu: Callable[..., Any]
) -> None:
    norm = _norm(nn.BatchNorm2d, 12)
    norm(_seeded((9, 12, 6, 5), 1))
    norm.eval()
    x, added = _seeded((3, 12, 6, 5), 2), _seeded((3, 12, 6, 5), 3)
    with torch.no_grad():
        expected = norm(x) + (added if adds else 0)
        found, again = norm_relu(norm, x, added if adds else None, relu=relu, twice=True)
    torch.testing.assert_close(found, F.relu(expected) if relu else expected, rtol=1e-4, atol=1e-5)
    assert found is again


@pytest.mark.parametrize("training", [True, False])
def test_on_the_cpu_it_is_torchs_own(training: bool) -> None:
    mine, torchs = (_norm(kind, 8).train(training) for kind in (BatchNorm, nn.BatchNorm2d))
    x, added = _seeded((4, 8, 3, 3), 1), _seeded((4, 8, 3, 3), 2)
    assert torch.equal(mine(x), torchs(x))
    assert torch.equal(mine(x, added, relu=True), F.relu(torchs(x) + added))
    assert isinstance(mine, BatchNorm)
    first, second = mine.twice(x, added)
    assert first is second
    assert mine.state_dict().keys() == torchs.state_dict().keys()


def test_where_the_kernels_cannot_be_built_torchs_own_are_used_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "trainer.models.batch_norm_kernels", None)  # as where there is no Triton
    kernels.cache_clear()
    with pytest.warns(UserWarning, match="batch norm by torch's own kernels, which are slower: ModuleNotFoundError: "):
        assert kernels("models.batch_norm_kernels") is None
    kernels.cache_clear()
