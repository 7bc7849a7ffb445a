"""Two towers that map to the unit sphere: one reads a context sequence, the other a payload vector."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from .mamba import MambaBlock

_HEAD_WIDTH = 64


class GruBackbone(nn.Module):
    """Stacked gated recurrent units. (batch, length, width) in and out."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.units = nn.GRU(width, width, layers, batch_first=True)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same."""
        states: torch.Tensor = self.units(sequence)[0]
        return states


class TransformerBackbone(nn.Module):
    """Pre-norm encoder layers with learnt positions. (batch, length, width) in and out.

    Args:
        length: of the sequences.
    """

    def __init__(self, width: int, layers: int, length: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        heads = next(count for count in range(max(1, width // _HEAD_WIDTH), 0, -1) if width % count == 0)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same."""
        encoded: torch.Tensor = self.encoder(sequence + self.positions)
        return encoded


BACKBONES: dict[str, Callable[[int, int, int], nn.Module]] = {
    "mamba": lambda width, layers, length: nn.Sequential(*(MambaBlock(width) for _ in range(layers))),
    "gru": lambda width, layers, length: GruBackbone(width, layers),
    "transformer": TransformerBackbone,
}
"""Built from width, layers and sequence length; all map (batch, length, width) to the same shape."""


class TwoTower(nn.Module):
    """Encodes contexts and payloads as unit vectors; their dot product is the score.

    Args:
        inputs: width of the vectors in contexts and payloads.
        length: vectors in a context.
        embedding: width of both towers' outputs.
    """

    def __init__(self, inputs: int, length: int, *, backbone: str, width: int, layers: int, embedding: int) -> None:
        super().__init__()
        self.entrance = nn.Sequential(nn.Linear(inputs, width), nn.LayerNorm(width))
        self.backbone = BACKBONES[backbone](width, layers, length)
        self.exit = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, embedding))
        self.payload = nn.Sequential(
            nn.Linear(inputs, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, embedding)
        )

    def forward(self, contexts: torch.Tensor, payloads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Contexts (batch, length, inputs) and payloads (n, inputs) -> (batch, embedding) and (n, embedding)."""
        states = self.backbone(self.entrance(contexts))
        # At its last position a causal backbone has read everything; attention gathers there what it needs.
        queries = self.exit(states[:, -1])
        return F.normalize(queries.float(), dim=-1), F.normalize(self.payload(payloads).float(), dim=-1)
