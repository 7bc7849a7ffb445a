"""Lion: the sign of an interpolated momentum (Chen et al., Symbolic Discovery of Optimization Algorithms, 2023)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from .grouped import Grouped


class Lion(Grouped):
    """Algorithm 2 of the paper, with decoupled weight decay; all tensors of a group in one call each."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def _update(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        gradients = self._gradients(weights, skipping=False)
        momenta = [self._momentum(weight) for weight in weights]
        first, second = group["betas"]
        directions = torch._foreach_lerp(momenta, gradients, 1 - first)
        torch._foreach_sign_(directions)
        torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_mul_(directions, -group["lr"])  # the rate may be a tensor; `alpha` may not
        torch._foreach_add_(weights, directions)
        torch._foreach_lerp_(momenta, gradients, 1 - second)

    def _momentum(self, weight: torch.Tensor) -> torch.Tensor:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        momentum: torch.Tensor = state["momentum"]
        return momentum
