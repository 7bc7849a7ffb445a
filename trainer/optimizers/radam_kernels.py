"""A CUDA kernel for a step of RAdam: one pass over a weight, its gradient and its moments instead of eight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK = 2048


@triton.jit
def _move_kernel(
    weight, gradient, first, second, adaptive, plain, lr, slow, slower, epsilon, weight_decay, skip, size,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Update a weight and its moments, unless ``skip`` says not to; factors, rate and skip are scalars in memory."""
    if skip is not None:  # noqa: SIM102 - this is known when the kernel is compiled, the next only when it runs
        if tl.load(skip) != 0.0:
            return
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    known = place < size
    arriving = tl.load(gradient + place, mask=known, other=0.0)
    momentum = tl.load(first + place, mask=known, other=0.0)
    spread = tl.load(second + place, mask=known, other=0.0)
    momentum += (arriving - momentum) * (1 - slow)
    spread = spread * slower + arriving * arriving * (1 - slower)
    tl.store(first + place, momentum, mask=known)
    tl.store(second + place, spread, mask=known)
    rate = tl.load(lr)
    along = momentum * (tl.load(adaptive) / (tl.sqrt(spread) + epsilon) + tl.load(plain))
    value = tl.load(weight + place, mask=known, other=0.0) * (1 - rate * weight_decay)
    tl.store(weight + place, value - rate * along, mask=known)


def move(
    weights: Sequence[torch.Tensor],
    gradients: Sequence[torch.Tensor],
    firsts: Sequence[torch.Tensor],
    seconds: Sequence[torch.Tensor],
    factors: tuple[torch.Tensor, torch.Tensor],
    group: dict[str, Any],
    skip: torch.Tensor | None = None,
) -> None:
    """Update the moments and the weights; nothing happens if ``skip``, a scalar on the GPU, is not 0."""
    for weight, arriving, first, second in zip(weights, gradients, firsts, seconds, strict=True):
        gradient = arriving if arriving.stride() == weight.stride() else torch.empty_like(weight).copy_(arriving)
        _move_kernel[triton.cdiv(weight.numel(), _BLOCK),](
            weight, gradient, first, second, *factors, group["lr"], *group["betas"], group["epsilon"],
            group["weight_decay"], skip, weight.numel(), _BLOCK,
        )  # fmt: skip


def try_out() -> None:
    """Run it once on the current GPU."""
    weight, scalar = torch.zeros(8, device="cuda"), torch.ones((), device="cuda")
    group = {"lr": scalar, "betas": (0.9, 0.999), "epsilon": 1e-8, "weight_decay": 0.0}
    move([weight], [weight.clone()], [weight.clone()], [weight.clone()], (scalar, scalar), group)
