"""Muon: momentum made orthogonal for weight matrices, AdamW for the rest (Jordan et al., 2024).

torch has a Muon of its own from 2.9 on, for 2-D weights only; this one takes convolutions (flattened) and runs on 2.6.
"""

from __future__ import annotations

import math
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

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update; a closure is evaluated first, as torch's own optimizers do."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            update = self._update_matrix if group["muon"] else self._update_adamw
            for weight in group["params"]:
                if weight.grad is not None:
                    update(weight, weight.grad, group)
        return loss

    def _update_matrix(self, weight: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        momentum = state["momentum"].lerp_(gradient, 1 - group["momentum"])
        direction = gradient.lerp(momentum, group["momentum"])
        matrix = orthogonalised(direction.reshape(len(direction), -1))
        scale = math.sqrt(max(1.0, matrix.shape[0] / matrix.shape[1]))
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        weight.add_(matrix.reshape(weight.shape).to(weight.dtype), alpha=-group["lr"] * scale)

    def _update_adamw(self, weight: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state.update(count=0, first=torch.zeros_like(weight), second=torch.zeros_like(weight))
        state["count"] += 1
        lr = group["lr"] * _ADAM_LR_RATIO
        state["first"].lerp_(gradient, 1 - _ADAM_BETAS[0])
        state["second"].mul_(_ADAM_BETAS[1]).addcmul_(gradient, gradient, value=1 - _ADAM_BETAS[1])
        corrections = [1 - beta ** state["count"] for beta in _ADAM_BETAS]
        spread = (state["second"] / corrections[1]).sqrt_().add_(1e-8)
        weight.mul_(1 - lr * group["weight_decay"])
        weight.addcdiv_(state["first"], spread, value=-lr / corrections[0])


def orthogonalised(matrix: torch.Tensor) -> torch.Tensor:
    """Push the singular values of a matrix towards 1 by a Newton-Schulz iteration; same shape, bfloat16 on GPUs."""
    tall = matrix.shape[0] > matrix.shape[1]
    x: torch.Tensor = matrix.T if tall else matrix
    if matrix.device.type == "cuda":
        x = x.bfloat16()
    x = x / (x.norm() + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.T
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.T if tall else x
