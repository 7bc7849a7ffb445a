"""Muon: momentum made orthogonal for weight matrices, AdamW for the rest (Jordan et al., 2024).

torch has a Muon of its own from 2.9 on, for 2-D weights only; this one takes convolutions (flattened) and runs on 2.6.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim import Optimizer

# Coefficients of the quintic iteration from Jordan's write-up: steep at 0, singular values end between 0.7 and 1.2.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
_ADAM_LR_RATIO = 0.05
"""The AdamW part runs at this fraction of the matrix learning rate: 0.02 gives the usual 0.001."""
_ADAM_BETAS = (0.9, 0.95)


class Muon(Optimizer):
    """Groups marked ``muon`` are updated by orthogonalised Nesterov momentum, all others by AdamW."""

    def __init__(
        self, params: Iterable[Any], lr: float = 0.02, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "muon": False})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Older checkpoints count in Python."""
        super().__setstate__(state)
        for weight, kept in self.state.items():
            if isinstance(kept.get("count"), int):
                kept["count"] = torch.full((), float(kept["count"]), device=weight.device)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update; a closure is evaluated first, as torch's own optimizers do."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                (self._update_matrices if group["muon"] else self._update_adamw)(weights, group)
        return loss

    def _update_matrices(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["momentum"] = torch.zeros_like(weight)
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        momenta = [self.state[weight]["momentum"] for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        directions = torch._foreach_lerp(gradients, momenta, group["momentum"])
        torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        # A launch costs more than the product of a small matrix: equal shapes go through the iteration together.
        alike: dict[torch.Size, list[tuple[torch.Tensor, torch.Tensor]]] = defaultdict(list)
        for weight, direction in zip(weights, directions, strict=True):
            alike[weight.shape].append((weight, direction.reshape(len(direction), -1)))
        for pairs in alike.values():
            found = orthogonalised(torch.stack([matrix for _, matrix in pairs]))
            scale = math.sqrt(max(1.0, found.shape[1] / found.shape[2]))
            updates = [
                matrix.reshape(weight.shape).to(weight.dtype) for matrix, (weight, _) in zip(found, pairs, strict=True)
            ]
            torch._foreach_mul_(updates, group["lr"] * -scale)  # the rate may be a tensor, which `alpha` may not
            torch._foreach_add_([weight for weight, _ in pairs], updates)

    def _update_adamw(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        states = [self.state[weight] for weight in weights]
        for weight, state in zip(weights, states, strict=True):
            if not state:
                count = torch.zeros((), device=weight.device)
                state.update(count=count, first=torch.zeros_like(weight), second=torch.zeros_like(weight))
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        firsts, seconds = [state["first"] for state in states], [state["second"] for state in states]
        torch._foreach_add_([state["count"] for state in states], 1)
        count = states[0]["count"]  # of all: they begin together
        lr = group["lr"] * _ADAM_LR_RATIO
        slow, slower = _ADAM_BETAS
        torch._foreach_lerp_(firsts, gradients, 1 - slow)
        torch._foreach_mul_(seconds, slower)
        torch._foreach_addcmul_(seconds, gradients, gradients, value=1 - slower)
        spreads = torch._foreach_div(seconds, 1 - slower**count)
        torch._foreach_sqrt_(spreads)
        torch._foreach_add_(spreads, 1e-8)
        torch._foreach_mul_(weights, 1 - lr * group["weight_decay"])
        updates = torch._foreach_div(firsts, spreads)
        torch._foreach_mul_(updates, -lr / (1 - slow**count))
        torch._foreach_add_(weights, updates)


def orthogonalised(matrices: torch.Tensor) -> torch.Tensor:
    """Push the singular values of matrices towards 1 by a Newton-Schulz iteration.

    Args:
        matrices: shape (count, rows, columns).

    Returns:
        The same shape; bfloat16 on GPUs that have it in hardware.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x: torch.Tensor = matrices.mT if tall else matrices
    if matrices.device.type == "cuda":
        x = x.bfloat16()
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    return x.mT if tall else x
