"""A transformer over technical indicators that predicts which of them count, how much, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SELECTED = 0.5
"""Only indicators with a higher probability take part."""
_LEAST_SHARE = 0.01
"""If almost nothing is selected the shares sum to less than 1; otherwise their gradients would be unbounded."""


@dataclass(frozen=True)
class Judgement:
    """The model's output for a sample."""

    selection: torch.Tensor
    """Probability that an indicator counts, (batch, indicators)."""
    weight: torch.Tensor
    """Shares in the outcome, (batch, indicators): 0 if not selected; the others sum to 1."""
    outlook: torch.Tensor
    """Predicted return over the horizon in training standard deviations, (batch,)."""
    direction: torch.Tensor
    """Log-odds that it is positive, (batch,)."""


class IndicatorTransformer(nn.Module):
    """One token for each indicator, one for the market. The encoder sees all of them and selects and weights. An
    indicator's vote comes from its own values and the market's state, so that what is selected is what decides. (A vote
    from an encoded token could speak for any other indicator.)

    Args:
        indicators: how many there are.
        window: values of each, the newest last.
        context: features of the market's state.
        symbols: how many there are.
        width, layers, heads: of the encoder; 256, 6 and 8 make about 5 million parameters.
    """

    def __init__(
        self,
        *,
        indicators: int,
        window: int,
        context: int,
        symbols: int,
        width: int,
        layers: int,
        heads: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.indicator = nn.Embedding(indicators, width)
        self.position = nn.Parameter(torch.empty(indicators, width))
        self.symbol = nn.Embedding(symbols, width)
        self.values = nn.Linear(window, width)
        self.market = nn.Sequential(
            nn.Linear(context, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)
        )
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=dropout, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.selector = nn.Linear(width, 2)
        self.voter = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 2))
        for embedding in (self.indicator.weight, self.position, self.symbol.weight):
            nn.init.normal_(embedding, std=0.02)

    def forward(self, values: torch.Tensor, context: torch.Tensor, symbols: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Scaled values (batch, indicators, window), context (batch, 10), symbols int64 (batch,).

        Returns:
            The fields of :class:`Judgement`, in order.
        """
        tokens = self.values(values) + self.indicator.weight + self.position
        market = self.market(context) + self.symbol(symbols)
        encoded = self.encoder(torch.cat([market[:, None], tokens], dim=1))[:, 1:]
        chosen, importance = self.selector(encoded).float().unbind(-1)
        votes = self.voter(tokens + market[:, None]).float()
        selection = torch.sigmoid(chosen)
        # A hard choice forward, the probability's gradient backward (straight-through: Bengio et al., 2013). A soft
        # gate would not select: the votes would grow as the gates shrink.
        gate = (selection > SELECTED).float() + selection - selection.detach()
        weight = torch.softmax(importance, dim=1) * gate
        weight = weight / weight.sum(dim=1, keepdim=True).clamp(min=_LEAST_SHARE)
        outlook, direction = (weight[..., None] * votes).sum(dim=1).unbind(-1)
        return selection, weight, outlook, direction
