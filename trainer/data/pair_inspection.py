"""A check of every row in a set of pairs, once and in file order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from ..inspection import Inspection
from .mapped import Rows
from .pairs import PairSet

_CHUNK_BYTES = 64 << 20


def inspect_pairs(pairs: PairSet) -> Inspection:
    """Count rows, articles and near misses; name rows with NaN, infinity or a vector of length 0."""
    problems = [
        *_bad_rows(pairs.contexts, "context_sequences"),
        *_bad_rows(pairs.targets, "target_vectors"),
        *(_bad_rows(pairs.payloads, "the payload cache") if pairs.payloads is not pairs.targets else ()),
    ]
    counts = {
        "training rows": len(pairs.train_rows),
        "validation rows": len(pairs.validation_rows),
        "articles": int(pairs.articles.max()) + 1,
        "vectors of a context": pairs.contexts.shape[1],
        "numbers of a vector": pairs.contexts.shape[2],
        "repeated targets": len(pairs.target_ids) - len(torch.unique(pairs.target_ids)),
    }
    if pairs.near is not None:
        counts["queries with near misses"] = int((pairs.near.counts > 0).sum())
    name = "; ".join([pairs.name, *pairs.notes])
    return Inspection(name, counts, tuple(problems))


def _bad_rows(rows: Rows, key: str) -> Iterator[str]:
    flat = rows.array.reshape(len(rows), -1) if rows.array.flags.c_contiguous else rows.array
    step = max(1, _CHUNK_BYTES // max(1, rows.bytes // len(rows)))
    axes = tuple(range(1, flat.ndim))
    for start in range(0, len(rows), step):
        chunk = flat[start : start + step]
        sound = np.isfinite(chunk).all(axis=axes)
        for offset in np.flatnonzero(~sound):
            yield f"row {start + offset} of {key} holds NaN or infinity; leave it out or compute it again"
        for offset in np.flatnonzero(sound & (chunk == 0).all(axis=axes)):
            yield f"row {start + offset} of {key} is zero throughout, it has no direction; leave it out"
