"""Transformer layers over a plan's corners with masked attention: hard by padding, soft by probabilities."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

_COORDINATE_WAVES = 10
_IMPOSSIBLE = -30.0
"""Log-odds of the impossible; finite, since a row of infinities gives NaN."""


class MaskedAttention(nn.Module):
    """Multi-head attention with an additive mask for each head."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(batch, corners, width) -> the same; ``mask``: log-weights, broadcast to (batch, heads, corners, corners)."""
        batch, count, width = tokens.shape
        parts = self.project_in(tokens).view(batch, count, 3, self._heads, width // self._heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask.to(query.dtype))
        return self.project_out(mixed.transpose(1, 2).reshape(batch, count, width))  # type: ignore[no-any-return]


class GraphLayer(nn.Module):
    """Pre-norm attention and two-layer network; a condition may scale and shift their inputs.

    Args:
        condition: width of the condition; 0: none.
    """

    def __init__(self, width: int, heads: int, condition: int = 0) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = MaskedAttention(width, heads)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.modulation = nn.Linear(condition, 4 * width) if condition else None
        if self.modulation is not None:
            nn.init.zeros_(self.modulation.weight)
            nn.init.zeros_(self.modulation.bias)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        """(batch, corners, width) -> the same. ``condition``: (batch, width of the condition)."""
        scale, shift, second_scale, second_shift = self._changes(condition)
        tokens = tokens + self.attention(self.norms[0](tokens) * (1 + scale) + shift, mask)
        return tokens + self.network(self.norms[1](tokens) * (1 + second_scale) + second_shift)  # type: ignore[no-any-return]

    def _changes(self, condition: torch.Tensor | None) -> tuple[torch.Tensor | float, ...]:
        """Scale and shift for both norms."""
        if self.modulation is None:
            return 0.0, 0.0, 0.0, 0.0
        changes: torch.Tensor = self.modulation(condition)[:, None]
        return changes.chunk(4, dim=-1)


def waves(values: torch.Tensor, shortest: float, longest: float, count: int = _COORDINATE_WAVES) -> torch.Tensor:
    """Sines and cosines of values at wavelengths from ``shortest`` to ``longest``: (..., n) -> (..., n * 2 * count)."""
    lengths = torch.linspace(math.log(shortest), math.log(longest), count, device=values.device).exp()
    phases = values.float()[..., None] * (2 * math.pi / lengths)
    return torch.cat([phases.sin(), phases.cos()], dim=-1).flatten(-2)


def hard_mask(real: torch.Tensor) -> torch.Tensor:
    """A mask that hides padding: (batch, corners) bool -> (batch, 1, 1, corners)."""
    return torch.where(real, 0.0, _IMPOSSIBLE)[:, None, None]


def soft_mask(log_odds: torch.Tensor) -> torch.Tensor:
    """A soft mask: the logarithm of the probability that something is there."""
    return F.logsigmoid(log_odds.float()).clamp_min(_IMPOSSIBLE)


def on_half_the_heads(mask: torch.Tensor, heads: int) -> torch.Tensor:
    """A mask (batch, 1, rows, corners) for the second half of the heads; the first half see everything."""
    everything = torch.zeros_like(mask).expand(-1, heads // 2, -1, -1)
    return torch.cat([everything, mask.expand(-1, heads - heads // 2, -1, -1)], dim=1)
