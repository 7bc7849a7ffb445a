"""DNA from files: folders in the layout of Genomic Benchmarks, and FASTA with the intervals of a BED file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import torch

from ..errors import UsageError
from .sequences import FOLDS, BadSequence, SequenceSet, gathered, reverse_complement, tokens_of

_LAYOUT = "expected train/CLASS/*.txt and test/CLASS/*.txt with one sequence a file"
_BED_COLUMNS = 4
_GAP_SHARE = 20
"""The gap between training and validation is the block's length divided by this."""
LONGEST_LINE = 1 << 29
"""Characters allowed in a line of a text file: twice the longest human chromosome."""


@dataclass(frozen=True, slots=True)
class Interval:
    """One line of a BED file: bases ``start`` to ``end`` - 1 of a chromosome, counted from 0."""

    line: int
    chromosome: str
    start: int
    end: int
    label: str
    reverse: bool


def read_folder(data: Path) -> tuple[SequenceSet, SequenceSet]:
    """The training and test sequences of one benchmark.

    Raises:
        UsageError: the layout is different, or a file is not DNA; names it and the remedy.
    """
    found, problems = scan_folder(data)
    if problems:
        raise UsageError(f"{problems[0]}; --check-data lists everything that is wrong")
    return found["train"], found["test"]


def scan_folder(data: Path) -> tuple[dict[str, SequenceSet], tuple[str, ...]]:
    """Read as much of a benchmark as possible, with a sentence for each thing wrong with it."""
    classes = _classes(data / "train")
    problems = list(_wrong_layout(data, classes))
    sets = {}
    for split in ("train", "test"):
        parts, labels = [], []
        for label, name in enumerate(classes):
            for path in sorted((data / split / name).glob("[!.]*.txt")):
                try:
                    parts.append(tokens_of(path.read_text(encoding="ascii", errors="replace").strip()))
                    labels.append(label)
                except BadSequence as error:
                    problems.append(f"{path} {error}; repair or remove it")
        if parts:
            sets[split] = gathered(data.name, classes, parts, torch.tensor(labels))
        else:
            problems.append(f"--data {data}: no sequences in {split}/ ({_LAYOUT})")
    return sets, tuple(problems)


def read_intervals(fasta: Path, bed: Path) -> SequenceSet:
    """The sequences that a BED file cuts out of a FASTA file; its fourth column names the class.

    Raises:
        UsageError: a line or a record cannot be used; names file and line and the remedy.
    """
    found, problems = scan_intervals(fasta, bed)
    if problems or found is None:
        raise UsageError(f"{problems[0]}; --check-data lists everything that is wrong")
    return found


def read_blocks(fasta: Path, bed: Path, block: int, fold: int, seed: int) -> tuple[SequenceSet, SequenceSet]:
    """Like :func:`read_intervals`, but split: every fifth block of ``block`` bases, by seed, is for validation.

    A sequence belongs to the block in which its middle lies. Training sequences closer than a twentieth of a block to a
    validation sequence are left out, so that no two neighbours are on both sides.

    Raises:
        UsageError: see :func:`read_intervals`.
    """
    found = read_intervals(fasta, bed)
    intervals, _ = _intervals(bed)
    records = sorted({interval.chromosome for interval in intervals})
    record = np.array([records.index(interval.chromosome) for interval in intervals])
    start, end = (np.array([getattr(interval, edge) for interval in intervals]) for edge in ("start", "end"))
    blocks, block_of = np.unique(np.stack([record, (start + end) // 2 // block]), axis=1, return_inverse=True)
    held_out = np.random.default_rng([seed, 0xB10C]).permutation(blocks.shape[1])[fold::FOLDS]
    validates = np.isin(block_of, held_out)
    close = np.zeros(len(intervals), bool)
    for number in range(len(records)):
        here, judged = record == number, validates & (record == number)
        order = start[judged].argsort()
        reach = np.concatenate([[-block], np.maximum.accumulate(end[judged][order])])
        before = np.searchsorted(start[judged][order], end[here] + block // _GAP_SHARE)
        close[here] = reach[before] > start[here] - block // _GAP_SHARE
    train, validation = (torch.from_numpy(np.flatnonzero(some)) for some in (~validates & ~close, validates))
    return found.chosen(train), found.chosen(validation)


def scan_intervals(fasta: Path, bed: Path) -> tuple[SequenceSet | None, tuple[str, ...]]:
    """Read as much of FASTA and BED as possible, with a sentence for each thing wrong with them."""
    intervals, problems = _intervals(bed)
    genome = read_records(fasta, {interval.chromosome for interval in intervals})
    classes = tuple(sorted({interval.label for interval in intervals}))
    parts, labels = [], []
    for interval in intervals:
        sequence = genome.get(interval.chromosome)
        if sequence is None or interval.end > len(sequence):
            reach = "is not in it" if sequence is None else f"has {len(sequence):,} bases in it"
            problems.append(
                f"{bed} line {interval.line}: {interval.chromosome} {reach} ({fasta}); use the same assembly"
            )
            continue
        parts.append(_cut(sequence, interval))
        labels.append(classes.index(interval.label))
    if len(classes) < 2 and not problems:
        problems.append(f"{bed}: column 4 names {len(classes)} classes, two or more are needed; label the intervals")
    name = f"{bed.name} of {fasta.name}"
    return (gathered(name, classes, parts, torch.tensor(labels)) if parts else None), tuple(problems)


def _classes(train: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in train.glob("[!.]*") if path.is_dir()))


def _wrong_layout(data: Path, classes: tuple[str, ...]) -> Iterator[str]:
    if not (data / "train").is_dir():
        inside = sorted(path.parent.name for path in data.glob("*/train"))
        hint = f"; did you mean one of {', '.join(inside[:9])} in it?" if inside else ""
        yield f"--data {data}: no train/ there ({_LAYOUT}){hint}"
    elif len(classes) < 2:
        yield f"--data {data}: train/ has {len(classes)} classes, two or more are needed ({_LAYOUT})"
    others = _classes(data / "test")
    if classes and others and others != classes:
        yield f"--data {data}: train/ has the classes {', '.join(classes)}, test/ {', '.join(others)}; make them agree"


def _intervals(bed: Path) -> tuple[list[Interval], list[str]]:
    found, problems = [], []
    for number, text in numbered_lines(bed):
        if not text.strip() or text.startswith(("#", "track", "browser")):
            continue
        try:
            found.append(_interval(number, text.rstrip("\n").split("\t")))
        except ValueError as error:
            problems.append(f"{bed} line {number}: {error}; expected CHROMOSOME START END CLASS, separated by tabs")
    if not found and not problems:
        problems.append(f"{bed} has no intervals; expected CHROMOSOME START END CLASS, separated by tabs")
    return found, problems


def _interval(number: int, cells: list[str]) -> Interval:
    if len(cells) < _BED_COLUMNS:
        raise ValueError(f"{len(cells)} columns, the fourth must name the class")
    start, end = int(cells[1]), int(cells[2])
    if not 0 <= start < end:
        raise ValueError(f"start {start} and end {end} are no interval")
    return Interval(number, cells[0], start, end, cells[3], len(cells) > 5 and cells[5] == "-")


def read_records(fasta: Path, wanted: set[str] | None = None) -> dict[str, torch.Tensor]:
    """The bases (tokens) of the wanted records (None: all), by the first word of their titles.

    Raises:
        UsageError: it cannot be read, is not DNA, or has a record twice; names the line and the remedy.
    """
    found: dict[str, list[torch.Tensor]] = {}
    current: list[torch.Tensor] | None = None
    for number, text in numbered_lines(fasta):
        if text.startswith(">"):
            name = (text[1:].split() or [""])[0]
            if name in found:
                raise UsageError(f"{fasta} line {number}: the record {name} is there twice; keep one of them")
            current = found.setdefault(name, []) if wanted is None or name in wanted else None
        elif current is not None and text.strip():
            try:
                current.append(tokens_of(text.strip()))
            except BadSequence as error:
                raise UsageError(f"{fasta} line {number} {error}; repair the file") from error
    return {name: torch.cat(parts) for name, parts in found.items() if parts}


def _cut(sequence: torch.Tensor, interval: Interval) -> torch.Tensor:
    part = sequence[interval.start : interval.end]
    if not interval.reverse:
        return part.clone()
    return reverse_complement(part[None].long(), torch.tensor([len(part)]))[0].to(torch.uint8)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, gzipped or not.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        with _opened(path) as file:
            number = 0
            while text := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(text) > LONGEST_LINE:
                    raise UsageError(f"{path} line {number} has more than {LONGEST_LINE:,} characters; wrap it")
                yield number, text
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read ({error}); name a readable file") from error


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="ascii", errors="replace")
    return path.open(encoding="ascii", errors="replace")
