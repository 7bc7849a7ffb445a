"""Keeps a non-finite step from reaching the weights without asking the device anything."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.optim import Optimizer


class FiniteGuard:
    """A flag on the device that falls with the first non-finite step, for good.

    From then on the weights stand still: fused kernels skip their step (``found_inf``), other optimizers see gradients
    of zero. The flag travels with the next report, so it costs no read-back of its own.
    """

    def __init__(self, device: torch.device, *, skips_by_kernel: bool) -> None:
        self._finite = torch.ones((), dtype=torch.bool, device=device)
        self._suspect = torch.zeros((), dtype=torch.int32, device=device)
        self._watched = False
        self._skips_by_kernel = skips_by_kernel

    def watch(self, value: torch.Tensor, step: int) -> None:
        """Take in what must be finite of a step, a scalar."""
        if not self._watched:
            self._watched = True
            self._suspect.fill_(step)
        self._finite.logical_and_(torch.isfinite(value))
        self._suspect.masked_fill_(self._finite, step + 1)

    def verdict(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Whether all was finite so far, and the step that was not if not; scalars on the device."""
        return self._finite, self._suspect

    def protect(self, optimizer: Optimizer, parameters: Sequence[torch.Tensor]) -> None:
        """Call between backward and the optimizer's step."""
        bad = ~self._finite
        if self._skips_by_kernel:
            optimizer.grad_scale = None  # type: ignore[attr-defined]
            optimizer.found_inf = bad.float()  # type: ignore[attr-defined]
            return
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.masked_fill_(bad, 0.0)


def gradient_norm(parameters: Sequence[torch.Tensor]) -> torch.Tensor:
    """2-norm over all gradients together, a scalar on their device."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm: torch.Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    return norm


def clip_gradients(parameters: Sequence[torch.Tensor], norm: torch.Tensor, most: float) -> None:
    """Scale all gradients so that their common norm is ``most`` at the highest; no read-back."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    torch._foreach_mul_(gradients, (most / (norm + 1e-6)).clamp(max=1.0))
