"""Labelled DNA sequences in memory, one byte a base, and operations on whole batches of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from ..order import mixed

TOKENS = ("PAD", "MASK", "SEP", "A", "C", "G", "T", "N")
PAD, N = TOKENS.index("PAD"), TOKENS.index("N")
_A, _T = TOKENS.index("A"), TOKENS.index("T")
FOLDS = 5
_UNCERTAIN = "RYSWKMBDHVN"
"""IUPAC codes for more than one base (Cornish-Bowden, 1985); all are read as N."""
_SYNTHETIC_LENGTH = (40, 72)
_MOTIFS = ("TGACTCAG", "CACGTTGC")
_MUTATED = 0.05


class BadSequence(ValueError):
    """Text is not DNA; the message says why in a few words."""


@dataclass(frozen=True)
class SequenceSet:
    """Sequences end to end, and the class of each."""

    name: str
    """The name shown to the user; for generated data it says "synthetic"."""
    classes: tuple[str, ...]
    bases: torch.Tensor
    """Tokens of all sequences, uint8."""
    starts: torch.Tensor
    """Where each begins, and the end of the last: int64, shape (n + 1,)."""
    labels: torch.Tensor
    """int64, shape (n,)."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> torch.Tensor:
        """Bases of each sequence: int64, shape (n,)."""
        return self.starts[1:] - self.starts[:-1]

    def take(self, numbers: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens (n, length), padded at the end or cut to their middle, and how many of each are bases."""
        whole = self.lengths[numbers]
        kept = whole.clamp_max(length)
        places = torch.arange(length)
        index = (self.starts[numbers] + (whole - kept) // 2)[:, None] + places
        inside = places < kept[:, None]
        found = self.bases[torch.where(inside, index, 0)].long()
        return torch.where(inside, found, PAD), kept

    def chosen(self, numbers: torch.Tensor) -> SequenceSet:
        """Some of the sequences, in the order given."""
        parts = [self.bases[self.starts[number] : self.starts[number + 1]] for number in numbers.tolist()]
        return gathered(self.name, self.classes, parts, self.labels[numbers])

    def limited(self, most: int, seed: int) -> SequenceSet:
        """At most this many of the sequences, drawn at random."""
        if most >= len(self):
            return self
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(mixed(seed, 0x117)))
        return self.chosen(order[:most])

    def with_shuffled_labels(self, seed: int) -> SequenceSet:
        """Labels that say nothing about their sequences."""
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(mixed(seed, 0x5AFF)))
        return replace(self, name=f"{self.name}, labels shuffled", labels=self.labels[order])

    def folded(self, fold: int, seed: int) -> tuple[SequenceSet, SequenceSet]:
        """Four fifths to train on and fold ``fold`` (0 to 4) to validate on; classes are distributed evenly."""
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(mixed(seed, 0xF01D)))
        dealt = order[self.labels[order].argsort(stable=True)]
        held_out = torch.arange(len(self)) % FOLDS == fold
        return self.chosen(dealt[~held_out].sort().values), self.chosen(dealt[held_out].sort().values)


def gathered(name: str, classes: tuple[str, ...], parts: Sequence[torch.Tensor], labels: torch.Tensor) -> SequenceSet:
    """A set from the tokens of each sequence."""
    lengths = torch.tensor([0, *(len(part) for part in parts)])
    return SequenceSet(name, classes, torch.cat(list(parts)), lengths.cumsum(0), labels)


def tokens_of(text: str) -> torch.Tensor:
    """DNA as tokens, uint8, in upper or lower case; U is read as T, codes for several bases as N.

    Raises:
        BadSequence: it is empty, or contains something else.
    """
    found = _TOKEN_OF_BYTE[np.frombuffer(text.encode("latin-1", "replace"), np.uint8)]
    if not len(found):
        raise BadSequence("is empty")
    strange = np.flatnonzero(found == PAD)
    if len(strange):
        raise BadSequence(f"has {text[strange[0]]!r} at base {strange[0] + 1}, which is none of A C G T N")
    return torch.from_numpy(found)


def reverse_complement(tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The other strand of each sequence, (batch, length); padding stays at the end."""
    return complement(reversed_in_place(tokens, lengths))


def complement(tokens: torch.Tensor) -> torch.Tensor:
    """The token of each complementary base; specials and N stay as they are.

    Computed, not looked up: a table would have to come from the CPU, and a step that waits for that cannot be recorded.
    """
    return torch.where((tokens >= _A) & (tokens <= _T), _A + _T - tokens, tokens)


def reversed_in_place(values: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Values (batch, length, ...) reversed within each sequence's own length; the rest stays."""
    places = torch.arange(values.shape[1], device=values.device)
    index = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    return values.gather(1, index.view(*index.shape, *[1] * (values.ndim - 2)).expand_as(values))


@functools.lru_cache(maxsize=2)
def synthetic(seed: int, *, train: int = 3000, validation: int = 600) -> tuple[SequenceSet, SequenceSet]:
    """Random sequences with one of two motifs, sometimes mutated, anywhere on either strand; the motif is the class.

    Counting bases tells little: over both strands the second motif has one G or C more than the first.
    """
    return _drawn(np.random.default_rng([seed, 1]), train, seed), _drawn(
        np.random.default_rng([seed, 2]), validation, seed
    )


def _drawn(random: np.random.Generator, count: int, seed: int) -> SequenceSet:
    bases = [TOKENS.index(base) for base in "ACGT"]
    labels = random.integers(0, len(_MOTIFS), count)
    parts = []
    for label in labels:
        sequence = random.choice(bases, random.integers(*_SYNTHETIC_LENGTH)).astype(np.uint8)
        motif = tokens_of(_MOTIFS[label]).numpy()
        motif = np.where(random.random(len(motif)) < _MUTATED, random.choice(bases, len(motif)), motif)
        at = random.integers(0, len(sequence) - len(motif))
        sequence[at : at + len(motif)] = motif
        part = torch.from_numpy(sequence)
        parts.append(complement(part.flip(0)) if random.random() < 0.5 else part)
    name = f"synthetic sequences with planted motifs, seed {seed}"
    return gathered(name, _MOTIFS, parts, torch.from_numpy(labels.astype(np.int64)))


def _bytes_to_tokens(pairs: Iterable[tuple[str, int]]) -> npt.NDArray[np.uint8]:
    table = np.full(256, PAD, np.uint8)
    for base, token in pairs:
        table[[ord(base), ord(base.lower())]] = token
    return table


_TOKEN_OF_BYTE = _bytes_to_tokens(
    [*((base, TOKENS.index(base)) for base in "ACGT"), ("U", TOKENS.index("T")), *((code, N) for code in _UNCERTAIN)]
)
