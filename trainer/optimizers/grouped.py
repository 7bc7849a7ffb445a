"""What our own optimizers share: a step is one update of each group's weights together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

from ..gradients import zero_unless


class Grouped(Optimizer):
    """An optimizer that updates the weights of a group together: a call for all of them is one launch on a GPU."""

    found_inf: torch.Tensor | None = None
    """A flag on the device, as torch's fused optimizers take it: unless it is 0, the gradients have no effect."""

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
                self._update(weights, group)
        return loss

    def _gradients(self, weights: list[torch.Tensor], *, skipping: bool) -> list[torch.Tensor]:
        """The weights' gradients; zeros if the flag is up, unless kernels that skip the step by it are used."""
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        if self.found_inf is not None and not skipping:
            zero_unless(self.found_inf == 0, gradients)
        return gradients

    def _update(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        """Update a group's weights that have a gradient."""
        raise NotImplementedError
