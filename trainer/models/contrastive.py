"""The InfoNCE loss (van den Oord et al., 2018) with in-batch and extra negatives, and retrieval measures."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def info_nce(
    queries: torch.Tensor,
    payloads: torch.Tensor,
    ids: torch.Tensor,
    negatives: torch.Tensor,
    usable: torch.Tensor,
    temperature: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean cross-entropy of finding each query's own payload among the batch's payloads and its own negatives.

    A payload that equals the positive (same id) is never a negative, wherever it comes from.

    Args:
        queries, payloads: unit vectors, (batch, width).
        ids: int64 (batch,), equal for payloads that are the same vector.
        negatives: unit vectors, (batch, extra, width); ``extra`` may be 0.
        usable: bool (batch, extra).

    Returns:
        The loss, and the share of queries whose own payload scores highest.
    """
    queries, payloads, negatives = queries.float(), payloads.float(), negatives.float()
    scores = queries @ payloads.T
    own = torch.arange(len(ids), device=ids.device)
    equal = (ids[:, None] == ids[None]) & (own[:, None] != own[None])
    scores = scores.masked_fill(equal, float("-inf"))
    extra = torch.einsum("bw,bnw->bn", queries, negatives).masked_fill(~usable, float("-inf"))
    logits = torch.cat([scores, extra], dim=1) / temperature
    return F.cross_entropy(logits, own), (logits.detach().argmax(dim=1) == own).float().mean()


def ranks(queries: torch.Tensor, payloads: torch.Tensor, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """How many other payloads score at least as high as each query's own: 0 is best.

    Ties and NaN count against the query, so that towers that map everything to one point, or to NaN, find nothing.

    Args:
        queries: (queries, width).
        payloads: (pool, width).
        ids: int64 (pool,); payloads with the id of the query's own are not counted.
        positions: int64 (queries,): where in the pool each query's own payload is.
    """
    scores = queries @ payloads.T
    own = scores.gather(1, positions[:, None])
    others = ids[None] != ids[positions][:, None]
    return (~(scores < own) & others).sum(dim=1)
