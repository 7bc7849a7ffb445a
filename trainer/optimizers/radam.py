"""RAdam: Adam whose steps are rectified while its second moment rests on few gradients (Liu et al., 2020).

torch's own, when capturable, recomputes for each weight what depends only on the step number. A step of
ResNet-18 with 512 images on an H200 took 6.99 ms with it, 5.86 with SGD, and 5.82 with this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from ..kernels import kernels_on
from .grouped import Grouped

_FROM_ADAMS = {"step": "count", "exp_avg": "first", "exp_avg_sq": "second"}
"""Names in checkpoints that were written with torch's RAdam."""
_TRACTABLE = 5.0
"""From this length of the moving average on, the variance of the adaptive rate is finite."""


class RAdam(Grouped):
    """Algorithm 2 of the paper, with decoupled weight decay; all tensors of a group in one call each."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "epsilon": epsilon, "weight_decay": weight_decay})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rename the state of older checkpoints."""
        super().__setstate__(state)
        for weight, kept in self.state.items():
            for theirs in _FROM_ADAMS.keys() & kept.keys():
                kept[_FROM_ADAMS[theirs]] = kept.pop(theirs).to(weight.device)

    def _update(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        states = [self._state_of(weight) for weight in weights]
        own = kernels_on("optimizers.radam_kernels", weights, group["lr"])
        gradients = self._gradients(weights, skipping=own is not None)
        firsts, seconds = [state["first"] for state in states], [state["second"] for state in states]
        torch._foreach_add_([state["count"] for state in states], 1)
        factors = _factors(states[0]["count"], *group["betas"])  # the same for all: they start together
        if own:
            own.move(weights, gradients, firsts, seconds, factors, group, self.found_inf)
        else:
            _move(weights, gradients, firsts, seconds, factors, group)

    def _state_of(self, weight: torch.Tensor) -> dict[str, torch.Tensor]:
        state: dict[str, torch.Tensor] = self.state[weight]
        if not state:
            count = torch.zeros((), device=weight.device)
            state.update(count=count, first=torch.zeros_like(weight), second=torch.zeros_like(weight))
        return state


def _move(
    weights: list[torch.Tensor],
    gradients: list[torch.Tensor],
    firsts: list[torch.Tensor],
    seconds: list[torch.Tensor],
    factors: tuple[torch.Tensor, torch.Tensor],
    group: dict[str, Any],
) -> None:
    """Update the moments and the weights, by torch's own operations."""
    (slow, slower), lr, (adaptive, plain) = group["betas"], group["lr"], factors
    torch._foreach_lerp_(firsts, gradients, 1 - slow)
    torch._foreach_mul_(seconds, slower)
    torch._foreach_addcmul_(seconds, gradients, gradients, value=1 - slower)
    rates = torch._foreach_sqrt(seconds)
    torch._foreach_add_(rates, group["epsilon"])
    torch._foreach_reciprocal_(rates)
    torch._foreach_mul_(rates, adaptive * -lr)
    torch._foreach_add_(rates, plain * -lr, alpha=1)  # without `alpha` torch reads the tensor's number back
    if group["weight_decay"]:
        torch._foreach_mul_(weights, 1 - lr * group["weight_decay"])
    torch._foreach_addcmul_(weights, firsts, rates)


def _factors(count: torch.Tensor, slow: float, slower: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The factors of momentum / sqrt(second moment), and of the momentum alone, in the step with this number.

    Depending on that number, one of them is 0; both are scalars on its device.
    """
    # 1 - beta**count without cancellation: the length of the average depends on the lost digits.
    unbiased, unbiased_square = (-torch.expm1(count * math.log(beta)) for beta in (slow, slower))
    longest = 2 / (1 - slower) - 1
    length = longest - 2 * count * (1 - unbiased_square) / unbiased_square
    rectified = (length - 4) * (length - 2) / length * (longest / ((longest - 4) * (longest - 2)))
    tractable = length > _TRACTABLE
    adaptive = torch.where(tractable, (rectified.clamp(min=0) * unbiased_square).sqrt(), 0.0)
    return adaptive / unbiased, ~tractable / unbiased
