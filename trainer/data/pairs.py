"""Context sequences and the target vectors that follow them: read, checked, split by article, or generated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import UsageError
from ..order import mixed
from .mapped import Rows, Stored, open_npy, open_npz
from .nearmiss import NearMisses, read_near_misses

_CHUNK_ROWS = 8192
_FEWEST_ARTICLES = 5
_SPLIT_SEED = 0x5B117
"""The split depends only on the data, so that runs with other seeds are measured on the same rows."""


@dataclass(frozen=True)
class PairSet:
    """N pairs. A *row* is a pair's number in the file; it names the pair everywhere, before and after any shuffle."""

    name: str
    """The name shown to the user; for generated data it says "synthetic"."""
    contexts: Rows
    """(N, length, width)."""
    targets: Rows
    """(N, width)."""
    payloads: Rows
    """(N, width): the vectors for negatives; the targets unless another file is given."""
    articles: torch.Tensor
    """int64 (N,), from 0."""
    target_ids: torch.Tensor
    """int64 (N,): equal for equal target vectors."""
    payload_ids: torch.Tensor
    """int64 (N,): the same for ``payloads``; a payload equals a target when their numbers are equal."""
    near: NearMisses | None
    train_rows: torch.Tensor
    validation_rows: torch.Tensor
    target_rows: torch.Tensor
    """int64 (N,): the row whose target belongs to a row's context; the row itself, unless labels are shuffled."""
    notes: tuple[str, ...] = ()
    """Sentences for the user about how the data was read."""

    def with_shuffled_labels(self, seed: int) -> PairSet:
        """Training contexts with other rows' targets, from which nothing about validation rows can be learnt."""
        generator = torch.Generator().manual_seed(mixed(seed, 0x5AFF))
        target_rows = self.target_rows.clone()
        order = torch.randperm(len(self.train_rows), generator=generator)
        target_rows[self.train_rows] = self.train_rows[order]
        return replace(self, name=f"{self.name}, targets shuffled", target_rows=target_rows)

    def limited(self, train: int) -> PairSet:
        """The first ``train`` training rows, and as many validation rows at most."""
        rows, held_out = self.train_rows[:train], self.validation_rows[:train]
        return replace(self, name=f"{self.name}, first {train:,}", train_rows=rows, validation_rows=held_out)


def read(path: Path, *, cache: Path | None, near: Path | None, validation_share: float) -> PairSet:
    """Open an .npz file with ``context_sequences``, ``target_vectors`` and ``truth_keys``.

    Args:
        cache: .npy file of the vectors that negatives come from, a row each.
        near: JSON lines of mined near misses.
        validation_share: of the articles, held out whole.

    Raises:
        UsageError: a file, an array or a line cannot be used; says which, and what to do.
    """
    contexts, targets, keys, notes = _arrays(path)
    payloads = targets
    if cache:
        payloads = Rows(open_npy(cache, "--p-cache-npy"))
        if payloads.shape != targets.shape:
            raise UsageError(
                f"--p-cache-npy {cache}: its shape is {payloads.shape}, target_vectors of {path} has {targets.shape};"
                " give the cache that was made from these rows"
            )
    return assembled(
        f"{path.name}",
        contexts,
        targets,
        keys,
        payloads=payloads,
        near=read_near_misses(near, len(targets)) if near else None,
        validation_share=validation_share,
        notes=tuple(notes),
    )


def assembled(
    name: str,
    contexts: Rows,
    targets: Rows,
    keys: np.ndarray[Any, Any],
    *,
    payloads: Rows | None = None,
    near: NearMisses | None = None,
    validation_share: float = 0.1,
    notes: tuple[str, ...] = (),
) -> PairSet:
    """Number articles and equal targets, and hold articles out for validation."""
    articles = torch.from_numpy(np.unique(keys, return_inverse=True)[1].astype(np.int64).reshape(-1))
    train, validation, note = _split(articles, validation_share)
    target_ids = torch.from_numpy(_identities(targets))
    own = payloads is None or payloads is targets
    return PairSet(
        name=name,
        contexts=contexts,
        targets=targets,
        payloads=targets if payloads is None else payloads,
        articles=articles,
        target_ids=target_ids,
        payload_ids=target_ids if own or payloads is None else torch.from_numpy(_identities(payloads)),
        near=near,
        train_rows=train,
        validation_rows=validation,
        target_rows=torch.arange(len(articles)),
        notes=(*notes, *note),
    )


def synthetic(seed: int, *, articles: int = 150, rows: int = 30, length: int = 8, width: int = 32) -> PairSet:
    """Articles as noisy orbits: the next vector is a fixed rotation of the current one, seen through a projection.

    The next vector can be predicted from a context, but not from an article's mean. Each backbone can learn it; with
    shuffled targets it stays at chance. Equal seeds give equal vectors.
    """
    random = np.random.default_rng([seed, 7])
    latent = width // 2
    turn = np.linalg.qr(random.standard_normal((latent, latent)))[0]
    seen = random.standard_normal((latent, width)) / np.sqrt(latent)
    state = random.standard_normal((articles, latent))
    steps = []
    for _ in range(rows + length):
        steps.append(state)
        state = 0.95 * state @ turn + 0.3 * random.standard_normal((articles, latent))
    topic = 0.5 * random.standard_normal((articles, 1, width))
    path = np.stack(steps, axis=1) @ seen + topic
    path += 0.05 * random.standard_normal(path.shape)
    windows = np.lib.stride_tricks.sliding_window_view(path, length, axis=1)[:, :rows].swapaxes(2, 3)
    contexts = np.ascontiguousarray(windows.reshape(-1, length, width), dtype=np.float32)
    targets = np.ascontiguousarray(path[:, length:].reshape(-1, width), dtype=np.float32)
    keys = np.repeat(np.arange(articles), rows)
    return assembled(f"synthetic articles, seed {seed}", Rows(contexts), Rows(targets), keys)


def _arrays(path: Path) -> tuple[Rows, Rows, np.ndarray[Any, Any], list[str]]:
    """Contexts, targets, the article of each row, and notes."""
    members, notes = open_npz(path, "--train-npz"), list[str]()
    contexts = _rows(members, "context_sequences", path, 3, notes)
    targets = _rows(members, "target_vectors", path, 2, notes)
    keys = _key_column(members, path)
    if not (len(contexts) == len(targets) == len(keys)):
        raise UsageError(
            f"--train-npz {path}: context_sequences has {len(contexts):,} rows, target_vectors {len(targets):,} and"
            f" truth_keys {len(keys):,}; they must be the same rows"
        )
    if contexts.shape[2] != targets.shape[1]:
        raise UsageError(
            f"--train-npz {path}: context_sequences holds vectors of {contexts.shape[2]} numbers, target_vectors of"
            f" {targets.shape[1]}; both must have the same width"
        )
    return contexts, targets, keys, notes


def _rows(members: Mapping[str, Any], key: str, path: Path, dimensions: int, notes: list[str]) -> Rows:
    found = _member(members, key, path)
    if isinstance(found, Stored):
        rows = Rows(found)
    else:
        loaded = found()
        notes.append(
            f"{key} is compressed: {loaded.nbytes / 2**20:,.1f} MiB were loaded into memory (np.savez, without"
            " compression, would be mapped)"
        )
        rows = Rows(loaded)
    if len(rows.shape) != dimensions or 0 in rows.shape or rows.array.dtype.kind != "f":
        wanted = "[N, L, D]" if dimensions == 3 else "[N, D]"
        raise UsageError(
            f"--train-npz {path}: {key} is {rows.array.dtype} of shape {list(rows.shape)}, it must be floating point"
            f" of shape {wanted}"
        )
    return rows


def _key_column(members: Mapping[str, Any], path: Path) -> np.ndarray[Any, Any]:
    found = _member(members, "truth_keys", path)
    keys = np.asarray(found.open() if isinstance(found, Stored) else found())
    if keys.ndim not in {1, 2} or keys.size == 0:
        raise UsageError(
            f"--train-npz {path}: truth_keys has the shape {list(keys.shape)}, it must be [N, 1] or wider, the article"
            " id in column 0"
        )
    articles = keys if keys.ndim == 1 else keys[:, 0]
    if articles.dtype.kind == "f" and np.isnan(articles).any():
        row = int(np.isnan(articles).argmax())
        raise UsageError(f"--train-npz {path}: truth_keys has no article id in row {row}; give each row one")
    return articles


def _member(members: Mapping[str, Any], key: str, path: Path) -> Stored | Callable[[], np.ndarray[Any, Any]]:
    if key not in members:
        there = ", ".join(members) or "nothing"
        raise UsageError(f"--train-npz {path}: there is no array {key!r} in it, only {there}; save it under that name")
    found: Stored | Callable[[], np.ndarray[Any, Any]] = members[key]
    return found


def _split(articles: torch.Tensor, share: float) -> tuple[torch.Tensor, torch.Tensor, tuple[str, ...]]:
    """Training rows, validation rows, and a note if there are too few articles to hold any out whole."""
    generator = torch.Generator().manual_seed(_SPLIT_SEED)
    count = int(articles.max()) + 1
    if count >= _FEWEST_ARTICLES:
        held_out = torch.randperm(count, generator=generator)[: max(1, round(share * count))]
        apart, note = torch.isin(articles, held_out), tuple[str, ...]()
    else:
        apart = torch.zeros(len(articles), dtype=torch.bool)
        apart[torch.randperm(len(articles), generator=generator)[: max(1, round(share * len(articles)))]] = True
        note = (f"{count} articles are too few to hold some out: validation rows share articles with training rows",)
    return (~apart).nonzero().squeeze(1), apart.nonzero().squeeze(1), note


def _identities(rows: Rows) -> np.ndarray[Any, Any]:
    """A number for each row, equal for equal rows: a multilinear hash of their float32 words.

    Different rows share a number with a probability of about 2**-32 a pair at worst, which would cost one negative.
    """
    weights = np.random.default_rng(0xD0).integers(1 << 63, size=rows.shape[1], dtype=np.uint64) | np.uint64(1)
    found = np.empty(len(rows), np.uint64)
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = np.ascontiguousarray(rows.array[start : start + _CHUNK_ROWS], dtype=np.float32)
        found[start : start + len(chunk)] = chunk.view(np.uint32).astype(np.uint64) @ weights
    return found.view(np.int64)
