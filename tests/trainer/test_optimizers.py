"""Muon's iteration and its batching; what optimizers load, and keep."""

from __future__ import annotations

import copy
import inspect
import math
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tests.trainer.building import ROOT
from tests.trainer.running import parsed
from trainer.errors import UsageError
from trainer.optimizers import RECIPES, build, load_state, muon
from trainer.optimizers.eager import without_compiler
from trainer.optimizers.muon import Muon, iterated, normalised, size_classes
from trainer.optimizers.radam import RAdam
from trainer.options import from_namespace


@pytest.mark.parametrize("shape", [(1, 6, 6), (3, 4, 20), (2, 20, 4)])
def test_the_iteration_pushes_all_singular_values_towards_1(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    found = iterated(normalised(matrices))
    assert found.shape == shape
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.3
    assert values.max() < 1.3
    assert torch.linalg.svdvals(matrices).max() > 2


def test_singular_values_end_in_the_promised_range() -> None:
    values = torch.logspace(math.log10(0.0033), 0, 2_000, dtype=torch.float64)
    found = torch.stack([iterated(value.view(1, 1, 1)) for value in values]).flatten()
    assert found.min() > 0.7
    assert found.max() < 1.25


@pytest.mark.parametrize("shape", [(64, 4, 8), (64, 1, 9), (8, 10, 256)])
def test_one_direction_survives_in_bfloat16(shape: tuple[int, int, int]) -> None:
    """Matrices of equal values: their rounding errors add up instead of averaging out."""
    matrices = (torch.rand(shape[0], 1, 1, generator=torch.Generator().manual_seed(1)) + 0.01).expand(shape)
    values = torch.linalg.svdvals(iterated(normalised(matrices.bfloat16())).float())[:, 0]
    assert values.min() > 0.65
    assert values.max() < 1.3


MATRICES = ((10, 12), (27, 64), (64, 27), (8, 3, 3, 3), (8, 8, 3, 3), (16, 8, 1, 1), (16, 16, 3, 3))


def test_weights_of_one_size_class_are_updated_as_if_each_were_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever class, tall or wide, and however they lie in memory."""

    def updated(size: int) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(2)
        weights = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in MATRICES]
        for weight in weights[::2]:
            if weight.ndim == 4:
                weight.data = weight.data.to(memory_format=torch.channels_last)
        together = [weights[start : start + size] for start in range(0, len(weights), size)]
        optimizers = [Muon([{"params": part, "muon": True}], lr=0.1) for part in together]
        for _ in range(3):
            for weight in weights:
                weight.grad = torch.empty_like(weight).copy_(torch.randn(weight.shape, generator=generator))
            for optimizer in optimizers:
                optimizer.step()
        return [weight.detach() for weight in weights]

    alone = updated(1)
    monkeypatch.setattr(muon, "size_classes", lambda weights, _: size_classes(weights, 1 << 20))
    for one, many in zip(alone, updated(len(MATRICES)), strict=True):
        torch.testing.assert_close(one, many, rtol=1e-4, atol=1e-5)


def test_a_class_holds_what_at_most_doubles_or_costs_nothing() -> None:
    weights = [torch.empty(shape) for shape in ((4, 8), (4, 15), (16, 4), (4, 17), (9, 17))]

    def sizes(free_zeros: int) -> list[list[tuple[int, ...]]]:
        return [[tuple(one.shape) for one in members] for members in size_classes(weights, free_zeros)]

    assert sizes(0) == [[(4, 8), (4, 15), (16, 4)], [(4, 17)], [(9, 17)]]
    assert sizes(36) == [[(4, 8), (4, 15), (16, 4), (4, 17)], [(9, 17)]]
    assert len(sizes(9 * 17)) == 1


def test_a_weight_without_a_gradient_is_left_alone() -> None:
    used, unused = torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Parameter(torch.ones(2, 2))
    used.grad = torch.eye(2)
    for matrix in (True, False):
        Muon([{"params": [used, unused], "muon": matrix}], lr=0.1).step()
    assert not torch.equal(used, torch.ones(2, 2))
    assert torch.equal(unused, torch.ones(2, 2))


def test_momentum_is_for_those_that_have_one() -> None:
    """The command line loads no torch to know which; so these are named there."""
    for name, recipe in RECIPES.items():
        args = parsed("cifar", "--optimizer", name, "--momentum", "0.5")
        if "momentum" in inspect.signature(recipe.make).parameters:
            assert from_namespace(args).momentum == 0.5
        else:
            with pytest.raises(UsageError, match="--momentum is for sgd and muon"):
                from_namespace(args)
    groups = [{"params": [torch.nn.Parameter(torch.ones(2, 2))], "muon": True}]
    built = build("muon", groups, lr=0.1, weight_decay=None, momentum=0.5, fused=False)
    assert built.param_groups[0]["momentum"] == 0.5


def test_moments_are_taken_as_their_weight_lies_in_memory() -> None:
    """Fused kernels walk through memory: what a device without channels-last weights saved must not be mixed up."""

    def fresh() -> tuple[torch.nn.Parameter, torch.optim.Optimizer]:
        weight = torch.nn.Parameter(torch.linspace(0, 1, 360).view(4, 10, 3, 3).to(memory_format=torch.channels_last))
        return weight, build("adamw", [{"params": [weight]}], lr=0.1, weight_decay=0.0, fused=True)

    def step(weight: torch.nn.Parameter, optimizer: torch.optim.Optimizer, seed: int) -> torch.Tensor:
        gradient = torch.randn(weight.shape, generator=torch.Generator().manual_seed(seed))
        weight.grad = gradient.to(memory_format=torch.channels_last)
        optimizer.step()
        return weight.detach()

    weight, optimizer = fresh()
    step(weight, optimizer, 1)
    saved, reached = copy.deepcopy(optimizer.state_dict()), weight.detach().clone()
    saved["state"][0] = {name: value.contiguous() for name, value in saved["state"][0].items()}
    other, resumed = fresh()
    other.data.copy_(reached)
    load_state(resumed, saved)
    torch.testing.assert_close(step(other, resumed, 2), step(weight, optimizer, 2))


STEPS_OF_ALL = """
import sys, torch
from trainer import assemble, run
from trainer.models.mamba import MambaBlock, parameter_groups
from trainer.optimizers import RECIPES, build
model = MambaBlock(4)
for name in RECIPES:
    optimizer = build(name, parameter_groups(model), lr=0.1, weight_decay=None, fused=False)
    model(torch.ones(1, 2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
print([name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules])
"""


def test_a_training_that_compiles_nothing_does_not_load_the_compiler() -> None:
    child = subprocess.run([sys.executable, "-c", STEPS_OF_ALL], cwd=ROOT, capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "[]"


@pytest.mark.parametrize("name", RECIPES)
def test_without_the_compiler_an_optimizer_is_itself(name: str) -> None:
    def trained(kind: Callable[..., torch.optim.Optimizer]) -> tuple[torch.Tensor, int, str]:
        called: list[torch.optim.Optimizer] = []
        weight = torch.nn.Parameter(torch.linspace(-1, 1, 6).view(2, 3))
        optimizer = kind([{"params": [weight]}], lr=0.1, **RECIPES[name].settings)
        hook = register_optimizer_step_post_hook(lambda one, *_: called.append(one))
        for _ in range(3):
            optimizer.zero_grad()
            (weight**3).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        hook.remove()
        return weight.detach(), sum(one is optimizer for one in called), type(optimizer).__name__

    kind = RECIPES[name].make
    expected, found = trained(kind), trained(without_compiler(kind))
    assert torch.equal(found[0], expected[0])
    assert found[1:] == expected[1:] == (3, kind.__name__)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_radam_is_torchs_and_goes_on_from_its_checkpoints(weight_decay: float) -> None:
    """Over the steps without a finite variance (five), and later ones."""
    mine, theirs = ([torch.nn.Parameter(torch.linspace(-1, 1, size)) for size in (5, 1)] for _ in range(2))
    own = RAdam(mine, lr=0.1, weight_decay=weight_decay)
    torchs = torch.optim.RAdam(theirs, lr=0.1, weight_decay=weight_decay, decoupled_weight_decay=True)
    generator = torch.Generator().manual_seed(1)

    def step() -> None:
        for one, other in zip(mine, theirs, strict=True):
            one.grad = other.grad = torch.randn(one.shape, generator=generator)
        own.step()
        torchs.step()
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)

    for _ in range(8):
        step()
    own = RAdam(mine, lr=0.1, weight_decay=weight_decay)
    load_state(own, copy.deepcopy(torchs.state_dict()))
    for _ in range(3):
        step()
