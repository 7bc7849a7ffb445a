"""A network that trains in seconds: whitened patches, then stages of 3x3 convolutions that each halve the image.

Its parts come from the fastest published trainings on CIFAR-10: a fixed first layer that whitens 2x2 patches (Coates et
al., 2011; Page, 2018; Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024), pooling right after the first
convolution of a stage, convolutions initialised as the identity, batch norm without a scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

_PATCH = 2
_LEAST_VARIANCE = 5e-4
"""Added to each direction's variance: the weakest ones are mostly noise."""
_LOGIT_SCALE = 1 / 9
_BIAS_LR_SCALE = 8.0
"""Learning rate factor of the norms' biases: in a run of seconds they have far to go (Page, 2018)."""


class Stage(nn.Module):
    """Convolution, pooling, then more convolutions at half the size; from three in all, with a shortcut over these."""

    def __init__(self, inputs: int, outputs: int, convolutions: int) -> None:
        super().__init__()
        widths = [inputs] + [outputs] * convolutions
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1, bias=False) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(_norm(outputs) for _ in range(convolutions))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, height / 2, width / 2)."""
        (first, *others), (norm, *norms) = self.convolutions, self.norms
        x = F.gelu(norm(F.max_pool2d(first(x), 2)))
        before = x
        for number, (convolution, norm) in enumerate(zip(others, norms, strict=True)):
            x = norm(convolution(x))
            if number and number == len(others) - 1:
                x = x + before
            x = F.gelu(x)
        return x


class WhitenedNet(nn.Module):
    """Fixed whitening of 2x2 patches, three stages, the largest activation of each channel, a linear head."""

    def __init__(self, widths: Sequence[int], convolutions: int, classes: int, channels: int = 3) -> None:
        super().__init__()
        directions = channels * _PATCH**2
        self.whitening = nn.Conv2d(channels, 2 * directions, _PATCH)
        self.whitening.weight.requires_grad_(False)
        self.stages = nn.Sequential(*(Stage(a, b, convolutions) for a, b in pairwise([2 * directions, *widths])))
        self.head = nn.Linear(widths[-1], classes, bias=False)
        for module in self.stages.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.dirac_(module.weight[: module.in_channels])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, channels, height, width) -> logits (batch, classes)."""
        out = self.stages(F.gelu(self.whitening(x)))
        # Not amax: its gradient looks for values equal to the largest, and compiled bfloat16 may find none: 0 / 0.
        largest = out.flatten(2).max(dim=2).values
        return self.head(largest) * _LOGIT_SCALE  # type: ignore[no-any-return]

    @torch.no_grad()
    def whiten(self, images: torch.Tensor) -> None:
        """Set the first layer from the patches of normalised images (n, channels, height, width).

        Its outputs are the patches' principal components at equal variance, and their negatives, since the activation
        after it cuts off one half of each.
        """
        patches = images.unfold(2, _PATCH, 1).unfold(3, _PATCH, 1)
        flat = patches.permute(0, 2, 3, 1, 4, 5).reshape(-1, images.shape[1] * _PATCH**2).double()
        variances, directions = torch.linalg.eigh(flat.T @ flat / len(flat))
        filters = (directions / (variances + _LEAST_VARIANCE).sqrt()).T.reshape(-1, images.shape[1], _PATCH, _PATCH)
        self.whitening.weight.copy_(torch.cat([filters, -filters]))
        nn.init.zeros_(self.whitening.bias)  # type: ignore[arg-type]

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Convolutions and the head decay, and convolutions go to Muon; biases do neither, and learn faster."""
        trained = [weight for weight in self.parameters() if weight.requires_grad]
        convolutions = [weight for weight in trained if weight.ndim == 4]
        others = [weight for weight in trained if weight.ndim == 1]
        head = {"params": [self.head.weight], "muon": False}
        biases = {"params": others, "weight_decay": 0.0, "lr_scale": _BIAS_LR_SCALE}
        return [{"params": convolutions, "muon": True}, head, biases]


def _norm(width: int) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(width)
    norm.weight.requires_grad_(False)
    return norm
