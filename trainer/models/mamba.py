"""Mamba layers (Gu and Dao, 2023, arXiv:2312.00752) in plain PyTorch: no Triton, no compiled extension, any device."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .selective_scan import selective_scan

_STEP_RANGE = (1e-3, 1e-1)


class MambaMixer(nn.Module):
    """Mixes a sequence causally: convolution, selective state space, gate. (batch, length, width) in and out.

    Args:
        width: of the sequence's vectors.
        states: state variables of each channel.
        expand: channels inside, as a multiple of ``width``.
        kernel: taps of the causal convolution.
        rank: of the projection to step sizes; default width / 16, rounded up.
    """

    UNTRACED = ("scan",)
    """Tracing would unroll chunks and levels into minutes of compiling; only the code around the scan is compiled."""

    scan = staticmethod(selective_scan)

    def __init__(self, width: int, *, states: int = 16, expand: int = 2, kernel: int = 4, rank: int | None = None):
        super().__init__()
        channels = expand * width
        self._split = (rank or -(-width // 16), states, states)
        self.in_projection = nn.Linear(width, 2 * channels, bias=False)
        self.convolution = nn.Conv1d(channels, channels, kernel, groups=channels, padding=kernel - 1)
        self.selection = nn.Linear(channels, sum(self._split), bias=False)
        self.step_projection = nn.Linear(self._split[0], channels)
        self.log_decay = nn.Parameter(torch.log(torch.arange(1.0, states + 1)).repeat(channels, 1))
        self.skip = nn.Parameter(torch.ones(channels))
        self.out_projection = nn.Linear(channels, width, bias=False)
        _initialise_steps(self.step_projection)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same; position t sees positions 0 to t."""
        x, gate = self.in_projection(sequence).chunk(2, dim=-1)
        x = F.silu(self.convolution(x.mT)[..., : sequence.shape[1]].mT)
        step, b, c = self.selection(x).split(self._split, dim=-1)
        delta = F.softplus(self.step_projection(step).float())
        y = self.scan(x, delta, -torch.exp(self.log_decay.float()), b, c)
        return self.out_projection((y + self.skip * x) * F.silu(gate))  # type: ignore[no-any-return]


class RMSNorm(nn.Module):
    """Scales each vector to a root mean square of 1 (Zhang and Sennrich, 2019), in float32 even under autocast.

    torch's own warns at every use under autocast, because its fused kernel does not support mixed types.
    """

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., width) -> the same."""
        exact = x.float()
        return (exact * torch.rsqrt(exact.square().mean(dim=-1, keepdim=True) + self._epsilon) * self.weight).to(
            x.dtype
        )


class MambaBlock(nn.Module):
    """x + mixer(norm(x)). (batch, length, width) in and out; arguments as :class:`MambaMixer`'s."""

    def __init__(self, width: int, *, states: int = 16, expand: int = 2, kernel: int = 4):
        super().__init__()
        self.norm = RMSNorm(width)
        self.mixer = MambaMixer(width, states=states, expand=expand, kernel=kernel)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same."""
        return sequence + self.mixer(self.norm(sequence))  # type: ignore[no-any-return]


def undecayed(name: str) -> bool:
    """True if the parameter must not decay: for decay rates and skips zero is not neutral."""
    return name.rpartition(".")[2] in {"log_decay", "skip"}


def parameter_groups(model: nn.Module) -> list[dict[str, Any]]:
    """The two optimizer groups of a model with Mamba layers in it: matrices decay and suit Muon, the rest does not."""
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    matrices = [weight for name, weight in named if weight.ndim >= 2 and not undecayed(name)]
    others = [weight for name, weight in named if weight.ndim < 2 or undecayed(name)]
    return [{"params": matrices, "muon": True}, {"params": others, "weight_decay": 0.0}]


@torch.no_grad()
def _initialise_steps(projection: nn.Linear) -> None:
    """Step sizes start log-uniform over _STEP_RANGE (section 3.6 of the paper): the bias is their inverse softplus."""
    bound = projection.in_features**-0.5
    nn.init.uniform_(projection.weight, -bound, bound)
    low, high = (math.log(edge) for edge in _STEP_RANGE)
    steps = torch.exp(torch.rand(projection.out_features) * (high - low) + low)
    projection.bias.copy_(steps + torch.log(-torch.expm1(-steps)))
