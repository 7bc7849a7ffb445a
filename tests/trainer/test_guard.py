"""The guard against non-finite steps, in both of its forms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from trainer.gradients import FiniteGuard, GradientGuard, KernelGuard, clip_gradients, guard_for, zero_unless
from trainer.optimizers import build

GUARDS: list[Callable[[], FiniteGuard]] = [
    lambda: KernelGuard(torch.device("cpu")),
    lambda: GradientGuard(torch.device("cpu")),
]


def _loss(value: float = 1.0) -> torch.Tensor:
    return torch.tensor(value)


@pytest.mark.parametrize("make", GUARDS)
@pytest.mark.parametrize("spoiled", ["loss", "gradient"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_the_first_bad_step_is_remembered_whatever_follows(
    make: Callable[[], FiniteGuard], spoiled: str, value: float
) -> None:
    guard = make()
    for step in range(41, 47):
        bad = step == 43
        gradients = [torch.ones(3), torch.full((2,), value if bad and spoiled == "gradient" else 1.0)]
        guard.begin(step)
        guard.watch(_loss(value if bad and spoiled == "loss" else 1.0), gradients)
        assert guard.first_bad().item() == (43 if step >= 43 else -1)


@pytest.mark.parametrize("make", GUARDS)
def test_the_very_first_step_can_be_the_bad_one(make: Callable[[], FiniteGuard]) -> None:
    guard = make()
    guard.begin(7)
    guard.watch(_loss(float("nan")), [torch.ones(3)])
    assert guard.first_bad().item() == 7


@pytest.mark.parametrize("fused", [True, False])
def test_weights_stand_still_from_a_bad_step_on(fused: bool) -> None:
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=1.0, fused=fused)
    guard = guard_for(optimizer, weight.device, loss_scaling=False)
    assert isinstance(guard, KernelGuard if fused else GradientGuard)
    weights = []
    for step, value in enumerate((1.0, float("inf"), 1.0), start=1):
        weight.grad = torch.full((4,), value)
        guard.begin(step)
        guard.watch(_loss(), [weight.grad])
        guard.protect(optimizer, [weight.grad])
        optimizer.step()
        weights.append(weight.tolist())
    assert weights == [[0.0] * 4] * 3


@pytest.mark.parametrize("name", ["radam", "lion", "muon"])
@pytest.mark.parametrize("matrix", [True, False])
def test_an_optimizer_of_ours_minds_the_flag(name: str, matrix: bool) -> None:
    weight = torch.nn.Parameter(torch.ones(4, 4) if matrix else torch.ones(4))
    optimizer = build(name, [{"params": [weight], "muon": matrix}], lr=0.1, weight_decay=0.0, fused=False)
    flag = torch.zeros(())
    optimizer.found_inf = flag  # type: ignore[attr-defined]
    weight.grad = torch.eye(4) if matrix else torch.arange(4.0)
    optimizer.step()
    assert not torch.equal(weight, torch.ones_like(weight))
    weight.grad = torch.full_like(weight, float("nan"))
    flag.fill_(1.0)
    optimizer.step()
    assert torch.isfinite(weight).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_not_finite_becomes_zero_by_its_bits(dtype: torch.dtype) -> None:
    values = torch.tensor([1.5, float("nan"), float("-inf"), -0.25], dtype=dtype)
    kept, dropped = values.clone(), values.clone()
    zero_unless(torch.tensor(True), [kept])
    zero_unless(torch.tensor(False), [dropped])
    torch.testing.assert_close(kept, values, rtol=0, atol=0, equal_nan=True)
    assert dropped.tolist() == [0.0] * 4


def test_gradients_that_a_loss_scaler_may_overflow_are_left_to_it() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0, fused=True)
    guard = guard_for(optimizer, torch.device("cpu"), loss_scaling=True)
    guard.begin(1)
    guard.watch(_loss(), [torch.tensor([float("inf")])])
    assert guard.first_bad().item() == -1
    guard.begin(2)
    guard.watch(_loss(float("nan")), [torch.ones(1)])
    assert guard.first_bad().item() == 2


def test_clipping_gives_back_the_norm_there_was() -> None:
    gradients = [torch.tensor([3.0]), torch.tensor([4.0])]
    assert clip_gradients(gradients, 1.0).item() == pytest.approx(5.0)
    assert [gradient.item() for gradient in gradients] == pytest.approx([0.6, 0.8], abs=1e-5)
