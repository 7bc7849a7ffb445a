"""Stage 2 of structural graph diffusion: which corners of a plan are joined by walls."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .graph_attention import GraphLayer, hard_mask, on_half_the_heads, soft_mask, waves

PIXEL = 1 / 128
_PAIR_FEATURES = 7
_PAIR_WIDTH = 64


class WallPredictor(nn.Module):
    """A transformer over corners that scores every pair of them.

    Padding is hidden from all heads. Half-way through, the pairs are scored once; from there on half the heads attend
    along the walls that this first score predicts.

    Args:
        features: of a corner: x, y and one bit for each kind of room.
    """

    def __init__(self, features: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.embed = nn.Linear(features + waves(torch.zeros(2), 1, 2).numel(), width)
        self.pairs = nn.Sequential(nn.Linear(_PAIR_FEATURES, _PAIR_WIDTH), nn.GELU(), nn.Linear(_PAIR_WIDTH, heads))
        self.before = nn.ModuleList(GraphLayer(width, heads) for _ in range(layers // 2))
        self.after = nn.ModuleList(GraphLayer(width, heads) for _ in range(layers - layers // 2))
        self.first_score = PairScore(width)
        self.score = PairScore(width)
        # How often the task has validated this model. It numbers the drawings, so it must survive a restart.
        self.register_buffer("validations", torch.zeros((), dtype=torch.long))

    def forward(self, corners: torch.Tensor, real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of walls (batch, n, n), symmetric: the first score and the last. Meaningless for padding.

        Args:
            corners: (batch, n, features).
            real: (batch, n), False for padding.
        """
        features = pair_features(corners, real)
        mask = self.pairs(features).permute(0, 3, 1, 2) + hard_mask(real)
        tokens = self.embed(torch.cat([corners, waves(corners[..., :2], 0.02, 8.0)], dim=-1))
        for layer in self.before:
            tokens = layer(tokens, mask)
        first = self.first_score(tokens, features)
        mask = mask + on_half_the_heads(soft_mask(first)[:, None], self._heads)
        for layer in self.after:
            tokens = layer(tokens, mask)
        return first, self.score(tokens, features)


class PairScore(nn.Module):
    """A symmetric score for every pair, from its corners' vectors and its own features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.ends = nn.Linear(width, _PAIR_WIDTH)
        self.pair = nn.Linear(_PAIR_FEATURES, _PAIR_WIDTH)
        self.likeness = nn.Linear(width, _PAIR_WIDTH)
        self.out = nn.Linear(_PAIR_WIDTH, 1)

    def forward(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """(batch, n, width) and (batch, n, n, pair features) -> (batch, n, n), in float32."""
        tokens = self.norm(tokens)
        ends, likeness = self.ends(tokens), self.likeness(tokens)
        hidden = F.gelu(ends[:, :, None] + ends[:, None] + self.pair(features))
        alike = likeness @ likeness.mT / _PAIR_WIDTH**0.5
        return (self.out(hidden).squeeze(-1) + alike).float()  # type: ignore[no-any-return]


@torch.no_grad()
def pair_features(corners: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """What the positions of two corners say about a wall between them: (batch, n, n, 7), symmetric.

    Distances along x, along y and straight; alignment in each direction; common rooms; corners in between.
    """
    places, bits = corners[..., :2].float(), corners[..., 2:].float()
    apart = (places[:, :, None] - places[:, None]).abs()
    straight = apart.square().sum(-1).sqrt()
    # The detour over a third corner is nothing where that corner lies on the line.
    detour = straight[:, :, None] + straight[:, None] - straight[..., None]
    on_line = torch.exp(-detour / PIXEL) * real[:, None, None]
    between = torch.tanh(on_line.sum(-1) - 2)  # both ends lie on it
    common = (bits @ bits.mT)[..., None]
    aligned = torch.exp(-apart / (2 * PIXEL))
    return torch.cat([apart, straight[..., None], aligned, common, between[..., None]], dim=-1)
