"""A DNA classifier after Caduceus (Schiff et al., 2024, arXiv:2403.03234): bidirectional Mamba over both strands."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from .mamba import MambaMixer

Reverse = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Reverses (batch, length, ...) within each sequence's own length."""
NORMS: dict[str, Callable[[int], nn.Module]] = {
    "rms": lambda width: nn.RMSNorm(width, eps=1e-5),
    "layer": nn.LayerNorm,
}


class BidirectionalBlock(nn.Module):
    """x + forwards(norm(x)) + backwards(norm(x)); both directions project with the same matrices, as in the paper."""

    def __init__(self, width: int, states: int, norm: str, reverse: Reverse) -> None:
        super().__init__()
        self._reverse = reverse
        self.norm = NORMS[norm](width)
        self.forwards = MambaMixer(width, states=states)
        self.backwards = MambaMixer(width, states=states)
        self.backwards.in_projection = self.forwards.in_projection
        self.backwards.out_projection = self.forwards.out_projection

    def forward(self, sequence: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same; padding at the end of a sequence has no influence."""
        normed = self.norm(sequence)
        backwards = self._reverse(self.backwards(self._reverse(normed, lengths)), lengths)
        return sequence + self.forwards(normed) + backwards  # type: ignore[no-any-return]


class Caduceus(nn.Module):
    """Classifies DNA.

    With ``both_strands`` parameters are shared between a sequence and its reverse complement (RCPS): the same layers
    read both, and each position has a vector for each strand. Swapping the strands of the input swaps these vectors and
    reverses their order, so the logits are the same for both strands.
    """

    def __init__(
        self,
        *,
        tokens: int,
        classes: int,
        width: int,
        layers: int,
        states: int,
        norm: str,
        both_strands: bool,
        opposite: Reverse,
        reverse: Reverse,
    ) -> None:
        super().__init__()
        self._both_strands = both_strands
        self._opposite, self._reverse = opposite, reverse
        self.embed = nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(BidirectionalBlock(width, states, norm, reverse) for _ in range(layers))
        self.norm = NORMS[norm](width)
        self.head = nn.Linear(width, classes)
        nn.init.normal_(self.embed.weight, std=0.5)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, length) with ``lengths`` (batch,) bases each -> logits (batch, classes)."""
        vectors = self.vectors(tokens, lengths)
        inside = (torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None])[:, :, None, None]
        pooled = (vectors * inside).sum(dim=1) / lengths[:, None, None]
        return self.head(pooled).mean(dim=1)  # type: ignore[no-any-return]

    def vectors(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """A vector for each position and strand: (batch, length, strands, width), both in the order of the input."""
        if not self._both_strands:
            return self._read(tokens, lengths)[:, :, None]
        strands = torch.cat([tokens, self._opposite(tokens, lengths)])
        own, other = self._read(strands, lengths.repeat(2)).chunk(2)
        return torch.stack([own, self._reverse(other, lengths)], dim=2)

    def _read(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        sequence = self.embed(tokens)
        for block in self.blocks:
            sequence = block(sequence, lengths)
        return self.norm(sequence)  # type: ignore[no-any-return]
