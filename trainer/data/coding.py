"""Coding and noncoding windows of a genome, by an annotation or by its open reading frames.

A window is read on the genome's first strand, whichever strand its gene is on, and begins anywhere in a codon, so that
neither strand nor phase gives away its class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from .annotation import Coding
from .sequences import TOKENS

CODING, NONCODING = "coding", "noncoding"
_FIRST = TOKENS.index("A")
_BASES = 4
_STOPS = ("TAA", "TAG", "TGA")
_START = "ATG"
Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Window:
    """Bases ``start`` to ``end`` - 1 of a record and their class."""

    record: str
    start: int
    end: int
    label: str


def masks_of_genes(length: int, genes: Iterable[Coding]) -> tuple[Mask, Mask]:
    """Which bases of a record lie in a coding region, and which in none."""
    coding = np.zeros(length, bool)
    for gene in genes:
        coding[gene.start : gene.end] = True
    return coding, ~coding


def masks_of_frames(tokens: torch.Tensor, codons: int) -> tuple[Mask, Mask]:
    """Which bases lie in a reading frame of at least this many codons, and which cannot lie in one.

    Reading frames run from a start codon (ATG) to the next stop codon. The second mask's bases touch no stretch of that
    length without a stop codon, in any of the six frames, with or without a start codon. Other bases are in neither.
    """
    coding, open_anywhere = np.zeros(len(tokens), bool), np.zeros(len(tokens), bool)
    for reverse in (False, True):
        strand = _codes(tokens)[::-1] if reverse else _codes(tokens)
        strand = np.where(strand < _BASES, _BASES - 1 - strand, _BASES) if reverse else strand
        in_frames, in_stretches = np.zeros(len(tokens), bool), np.zeros(len(tokens), bool)
        for frame in range(3):
            _mark(strand[frame:], codons, in_frames[frame:], in_stretches[frame:])
        coding |= in_frames[::-1] if reverse else in_frames
        open_anywhere |= in_stretches[::-1] if reverse else in_stretches
    return coding, ~(coding | open_anywhere)


def _mark(strand: Numbers, codons: int, in_frames: Mask, in_stretches: Mask) -> None:
    """In one of the six frames, mark the long reading frames and the long stretches without a stop codon."""
    count = len(strand) // 3
    a, b, c = strand[: 3 * count].reshape(count, 3).T
    known = (a < _BASES) & (b < _BASES) & (c < _BASES)
    codon = np.where(known, (a * _BASES + b) * _BASES + c, -1)
    ends = np.flatnonzero(np.isin(codon, [_codon(name) for name in _STOPS]))
    begins = np.concatenate([[0], ends + 1])
    starts = np.concatenate([np.flatnonzero(codon == _codon(_START)), [count]])
    first_start = starts[np.searchsorted(starts, begins)]
    for begin, start, end in zip(begins.tolist(), first_start.tolist(), [*ends.tolist(), count], strict=True):
        if end - begin >= codons:
            in_stretches[3 * begin : 3 * end] = True
            if end < count and end - start >= codons:
                in_frames[3 * start : 3 * end + 3] = True


def windows(record: str, tokens: torch.Tensor, masks: tuple[Mask, Mask], size: int, seed: int) -> list[Window]:
    """Adjacent windows in every run of bases of one class; those with an unknown base are left out."""
    random = np.random.default_rng([seed, len(tokens)])
    unknown = np.concatenate([[0], np.cumsum(_codes(tokens) >= _BASES)])
    found = []
    for label, mask in zip((CODING, NONCODING), masks, strict=True):
        edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
        for begin, end in edges.reshape(-1, 2).tolist():
            count, rest = divmod(end - begin, size)
            begin += int(random.integers(0, rest + 1)) if count else 0
            places = range(begin, begin + count * size, size)
            found += [Window(record, at, at + size, label) for at in places if unknown[at] == unknown[at + size]]
    return sorted(found, key=lambda window: window.start)


def balanced(found: list[Window], seed: int) -> list[Window]:
    """Equally many windows of both classes: those of the commoner one are drawn at random."""
    random = np.random.default_rng([seed, 0xBA])
    groups = [[number for number, window in enumerate(found) if window.label == label] for label in (CODING, NONCODING)]
    fewest = min(len(group) for group in groups)
    kept = np.sort(np.concatenate([random.permutation(np.array(group, int))[:fewest] for group in groups]))
    return [found[number] for number in kept.tolist()]


def _codes(tokens: torch.Tensor) -> Numbers:
    """A, C, G, T as 0 to 3, everything else 4: the base opposite a code is 3 minus it."""
    return (tokens.numpy().astype(np.int64) - _FIRST).clip(0, _BASES)


def _codon(name: str) -> int:
    a, b, c = (TOKENS.index(base) - _FIRST for base in name)
    return (a * _BASES + b) * _BASES + c
