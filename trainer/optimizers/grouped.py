"""What our own optimizers share: a step is one update of each group's weights together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer


class Grouped(Optimizer):
    """An optimizer that updates the weights of a group together: a call for all of them is one launch on a GPU."""

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

    def _update(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        """Update a group's weights that have a gradient."""
        raise NotImplementedError
