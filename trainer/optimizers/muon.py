"""Muon: orthogonalised momentum for weight matrices, AdamW for the rest (Jordan et al., 2024).

torch has its own Muon from 2.9 on, for 2-D weights only; this one also takes convolutions (flattened) and runs on 2.6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from ..kernels import kernels_on
from ..streams import side_by_side
from .grouped import Grouped

# Four odd polynomials of degree 5, one after the other, push singular values between 0.0033 and 1 to between 0.7 and
# 1.25; Jordan's single one needs five steps to do so, from 0.0016 on. Four can do better still (Amsel et al., The Polar
# Express, 2025), but bring large values close to 0 on their way, where bfloat16 loses them. These were found by a
# search that let each coefficient be off by 0.3 %, about as much as bfloat16 rounds.
_POLYNOMIALS = (
    ((4.345, -7.36, 3.11), (4.155, -6.37, 2.50)),
    ((4.11, -5.855, 2.225), (3.105, -3.29, 1.083)),
)
"""Pairs that are applied at once; each polynomial as its coefficients of x, x**3 and x**5."""
_ADAM_LR_RATIO = 0.05
"""The AdamW part runs at this fraction of the matrix learning rate: 0.02 gives the usual 0.001."""
_ADAM_BETAS = (0.9, 0.95)

_FREE_ZEROS = 1 << 18
"""Padding a matrix with this many zeros costs a GPU less than iterating one more size class."""


class Muon(Grouped):
    """Groups marked ``muon`` are updated by orthogonalised Nesterov momentum, all others by AdamW."""

    def __init__(
        self, params: Iterable[Any], lr: float = 0.02, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "muon": False})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Convert the step counts of older checkpoints, which were Python integers."""
        super().__setstate__(state)
        for weight, kept in self.state.items():
            if isinstance(kept.get("count"), int):
                kept["count"] = torch.full((), float(kept["count"]), device=weight.device)

    def _update(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        (self._update_matrices if group["muon"] else self._update_adamw)(weights, group)

    def _update_matrices(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["momentum"] = torch.zeros_like(weight)
        classes = size_classes(weights, _FREE_ZEROS if weights[0].is_cuda else 0)
        around = kernels_on("optimizers.muon_kernels", weights, group["lr"]) or _Around
        with side_by_side(weights[0].device) as places:
            for members, place in zip(classes, places, strict=False):
                with place:
                    gradients = self._gradients(members, skipping=around is not _Around)
                    momenta = [self.state[weight]["momentum"] for weight in members]
                    matrices = around.directions(gradients, momenta, group["momentum"], _wide(members), self.found_inf)
                    around.move(members, iterated(matrices), group["lr"], group["weight_decay"], self.found_inf)

    def _update_adamw(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        states = [self.state[weight] for weight in weights]
        for weight, state in zip(weights, states, strict=True):
            if not state:
                count = torch.zeros((), device=weight.device)
                state.update(count=count, first=torch.zeros_like(weight), second=torch.zeros_like(weight))
        gradients = self._gradients(weights, skipping=True)
        counts, firsts, seconds = ([state[name] for state in states] for name in ("count", "first", "second"))
        (slow, slower), lr = _ADAM_BETAS, group["lr"] * _ADAM_LR_RATIO
        torch._foreach_add_(counts, 1)
        torch._fused_adamw_(
            weights, gradients, firsts, seconds, [], counts,
            lr=lr, beta1=slow, beta2=slower, weight_decay=group["weight_decay"], eps=1e-8,
            amsgrad=False, maximize=False, found_inf=self.found_inf,
        )  # fmt: skip


class _Around:
    """The work around the iteration, in torch's own operations; on CUDA our kernels do the same."""

    @staticmethod
    def directions(
        gradients: list[torch.Tensor],
        momenta: list[torch.Tensor],
        momentum: float,
        size: tuple[int, int],
        skip: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Update the momenta of a size class; return its directions as matrices of its size, ready for the iteration.

        Args:
            skip: only for kernels; here the gradients of a step to be skipped are 0 already.
        """
        torch._foreach_lerp_(momenta, gradients, 1 - momentum)
        return normalised(_stacked(torch._foreach_lerp(gradients, momenta, momentum), size))

    @staticmethod
    def move(
        weights: list[torch.Tensor],
        matrices: torch.Tensor,
        lr: float | torch.Tensor,
        weight_decay: float,
        skip: torch.Tensor | None = None,
    ) -> None:
        """Apply the orthogonalised matrices of a size class to its weights; ``skip`` is for kernels here too."""
        updates = [torch.empty_like(weight) for weight in weights]
        torch._foreach_copy_(updates, _taken_back(matrices, weights))
        torch._foreach_mul_(updates, [-math.sqrt(max(1.0, len(one) / (one.numel() // len(one)))) for one in updates])
        torch._foreach_mul_(updates, lr)  # which may be a tensor, unlike `alpha`
        torch._foreach_mul_(weights, 1 - lr * weight_decay)
        torch._foreach_add_(weights, updates)


def _wide(weights: Sequence[torch.Tensor]) -> tuple[int, int]:
    """Rows and columns that hold every weight's matrix, turned so that it has no more rows than columns."""
    sides = [(len(weight), weight.numel() // len(weight)) for weight in weights]
    return max(min(one) for one in sides), max(max(one) for one in sides)


def size_classes(weights: Sequence[torch.Tensor], free_zeros: int) -> list[list[torch.Tensor]]:
    """Groups of weights that go through the iteration together. Smaller ones are padded with zeros, which stay zero.

    Args:
        free_zeros: how many zeros may be added to a matrix of any size; beyond that it may at most double.
    """
    classes: list[list[torch.Tensor]] = []
    for weight in sorted(weights, key=lambda one: _wide([one])):
        if classes:
            joined = [*classes[-1], weight]
            size, least = math.prod(_wide(joined)), min(one.numel() for one in joined)
            if size <= 2 * least or size - least <= free_zeros:
                classes[-1] = joined
                continue
        classes.append([weight])
    return classes


def _stacked(weights: Sequence[torch.Tensor], size: tuple[int, int]) -> torch.Tensor:
    """Weights as matrices of one size, padded with zeros; columns are in the order of channels-last memory."""
    rows, columns = size
    laid = [weight.movedim(1, -1).flatten(1) for weight in weights]
    wide = [one.mT if len(one) > one.shape[1] else one for one in laid]
    return torch.stack([F.pad(one, (0, columns - one.shape[1], 0, rows - len(one))) for one in wide])


def _taken_back(stacked: torch.Tensor, weights: list[torch.Tensor]) -> list[torch.Tensor]:
    """Undo :func:`_stacked`: each matrix in its weight's own shape."""
    found = []
    for matrix, weight in zip(stacked, weights, strict=True):
        rows, columns = len(weight), weight.numel() // len(weight)
        laid = matrix[:columns, :rows].mT if rows > columns else matrix[:rows, :columns]
        found.append(laid.unflatten(1, weight.movedim(1, -1).shape[1:]).movedim(-1, 1))
    return found


def normalised(matrices: torch.Tensor) -> torch.Tensor:
    """The matrices scaled so that their singular values are at most 1."""
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    found: torch.Tensor = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    return found


def iterated(x: torch.Tensor) -> torch.Tensor:
    """Push singular values of at most 1 towards 1 by a Newton-Schulz iteration.

    ``x`` has the shape (count, rows, columns), and is fastest with fewer rows than columns. Both polynomials of a pair
    are applied at once: the second needs the product of the first's result with its transpose, which is computed from
    square matrices, a ninth of the size of a 3x3 convolution's.
    """
    for first, second in _POLYNOMIALS:
        gram = x @ x.mT
        inner = _polynomial(gram, *first)
        x = _polynomial(inner @ gram @ inner, *second) @ inner @ x
    return x


def _polynomial(gram: torch.Tensor, a: float, b: float, c: float) -> torch.Tensor:
    """Return a + b * gram + c * gram**2; times the matrix, that is its polynomial with these coefficients."""
    found = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
    # Added to the diagonal in place: for a separate sum torch would copy all matrices.
    found.diagonal(dim1=1, dim2=2).add_(a)
    return found
