"""Hard negatives of a batch: other rows of the same article and mined near misses, without a loop over rows."""

from __future__ import annotations

import torch

from .pairs import PairSet


class NegativeSampler:
    """Draws training rows whose payloads are wrong for a target, never the target itself or an equal one."""

    def __init__(self, pairs: PairSet, *, same_article: int, near: int) -> None:
        self._pairs = pairs
        self._same_article = same_article
        self._near = near if pairs.near is not None else 0
        rows = pairs.train_rows
        articles = pairs.articles[rows]
        self._ordered = rows[torch.argsort(articles, stable=True)]
        self._counts = torch.bincount(articles, minlength=int(pairs.articles.max()) + 1)
        self._starts = torch.cumsum(self._counts, 0) - self._counts
        self._places = torch.zeros(len(pairs.articles), dtype=torch.int64)
        self._places[self._ordered] = torch.arange(len(self._ordered)) - self._starts[pairs.articles[self._ordered]]
        self._trained = torch.zeros(len(pairs.articles), dtype=torch.bool)
        self._trained[rows] = True

    @property
    def count(self) -> int:
        """Negatives drawn for each target."""
        return self._same_article + self._near

    def draw(self, rows: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Negatives of the targets of these training rows.

        Returns:
            Rows of the payloads, int64 (len(rows), count), and which of them to use, bool of the same shape: an article
            may have fewer other rows, and a near miss may be an equal vector or held out.
        """
        drawn = [self._same_article_rows(rows, generator), self._near_rows(rows, generator)]
        found = torch.cat([negatives for negatives, _ in drawn], dim=1)
        there = torch.cat([usable for _, usable in drawn], dim=1)
        return found, there & self._trained[found] & self._differs(rows, found)

    def _differs(self, rows: torch.Tensor, negatives: torch.Tensor) -> torch.Tensor:
        pairs = self._pairs
        own = pairs.target_ids[rows][:, None]
        same = (negatives == rows[:, None]) | (pairs.target_ids[negatives] == own)
        return ~(same | (pairs.payload_ids[negatives] == own))

    def _same_article_rows(self, rows: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        articles = self._pairs.articles[rows]
        others = (self._counts[articles] - 1).clamp(min=0)[:, None]
        turn, there = _turns(others, self._same_article, generator)
        places = (self._places[rows][:, None] + 1 + turn) % (others + 1)
        return self._ordered[self._starts[articles][:, None] + places], there

    def _near_rows(self, rows: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        near = self._pairs.near
        if near is None or not len(near.rows) or not self._near:
            return rows[:, None].expand(-1, self._near), torch.zeros(len(rows), self._near, dtype=torch.bool)
        turn, there = _turns(near.counts[rows][:, None], self._near, generator)
        places = (near.starts[rows][:, None] + turn).clamp(max=len(near.rows) - 1)
        return near.rows[places], there


def _turns(available: torch.Tensor, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """``count`` different numbers below each of ``available`` (n, 1), and which of them exist."""
    start = (torch.rand(available.shape, generator=generator) * available).long()
    steps = torch.arange(count)
    return (start + steps) % available.clamp(min=1), steps < available
