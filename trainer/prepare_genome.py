"""``prepare genome``: coding and noncoding windows of a genome, as FASTA and BED files for the task `genomics`."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from .data import annotation, coding, genomes
from .data.annotation import Coding
from .data.coding import Window
from .data.sequences import TOKENS
from .errors import TrainingError, UsageError
from .options import positive, whole

_FASTA, _BED = "genome.fa", "coding.bed"
_LETTERS = np.frombuffer("".join(name if len(name) == 1 else "N" for name in TOKENS).encode(), np.uint8)
_LINE = 80


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for the sources, the labelling rule, and the size of windows."""
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        required=True,
        nargs="+",
        metavar="FILE",
        help="FASTA or GenBank, gzipped or not",
    )
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help=f"folder for {_FASTA} and {_BED}")
    parser.add_argument(
        "--genes", type=Path, nargs="+", metavar="FILE", help="where proteins are coded: GFF3, GTF or BED"
    )
    parser.add_argument(
        "--codons",
        type=positive,
        default=100,
        metavar="N",
        help="without an annotation: coding is an open reading frame of N codons or more (default 100)",
    )
    parser.add_argument("--window", type=positive, default=120, metavar="BASES", help="of each sequence (default 120)")
    parser.add_argument("--unbalanced", action="store_true", help="keep all windows of the commoner class")
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="where windows begin, which are kept (default 0)"
    )


def prepare(asked: argparse.Namespace) -> str:
    """Write both files; returns the sentences that say what was made, by which rule, and how to train on it.

    Raises:
        UsageError: a source cannot be read, or a class has no window.
        TrainingError: a file could not be written.
    """
    there = [name for name in (_FASTA, _BED) if (asked.to / name).exists()]
    if there:
        raise UsageError(f"--to {asked.to}: {there[0]} is there already; name a new folder")
    records, genes = _sources(asked)
    found: list[Window] = []
    for name, tokens in records.items():
        masks = (
            coding.masks_of_frames(tokens, asked.codons)
            if genes is None
            else coding.masks_of_genes(len(tokens), genes[name])
        )
        found += coding.windows(name, tokens, masks, asked.window, asked.seed)
    kept = found if asked.unbalanced else coding.balanced(found, asked.seed)
    counts, all_counts = (Counter(window.label for window in some) for some in (kept, found))
    if len(counts) < 2:
        missing = coding.NONCODING if all_counts[coding.CODING] else coding.CODING
        raise UsageError(f"{asked.source[0]} has no {missing} window of {asked.window} bases; name a smaller --window")
    try:
        asked.to.mkdir(parents=True, exist_ok=True)
        _write_fasta(asked.to / _FASTA, records)
        rows = (f"{one.record}\t{one.start}\t{one.end}\t{one.label}\n" for one in kept)
        (asked.to / _BED).write_text("".join(rows), encoding="ascii")
    except OSError as error:
        raise TrainingError(f"--to {asked.to}: it could not be written ({error.strerror})") from error
    bases = sum(len(tokens) for tokens in records.values())
    rule = (
        f"coding: in an open reading frame of {asked.codons} codons or more, noncoding: in none, in any of six frames"
        if genes is None
        else "coding: in a coding region of the annotation, noncoding: in none"
    )
    told = ", ".join(
        f"{counts[label]:,} of {all_counts[label]:,} {label}" for label in (coding.CODING, coding.NONCODING)
    )
    block = max(asked.window, min(50_000, bases // 50))
    return (
        f"{asked.to}: windows of {asked.window} bases from {bases:,}: {told}\n{rule}\n"
        f"train with `genomics --fasta {asked.to / _FASTA} --bed {asked.to / _BED} --block {block}`"
    )


def _sources(asked: argparse.Namespace) -> tuple[dict[str, torch.Tensor], dict[str, list[Coding]] | None]:
    """Every record's bases, and its coding regions if there is an annotation."""
    records: dict[str, torch.Tensor] = {}
    genes: list[Coding] = []
    for path in asked.source:
        if annotation.is_genbank(path):
            more, told = annotation.read_genbank(path)
            genes += told
        else:
            more = genomes.read_records(path)
        if not more:
            raise UsageError(f"--from {path} has no sequence; give a FASTA or a GenBank file")
        if twice := records.keys() & more.keys():
            raise UsageError(f"--from {path}: the record {min(twice)} is in another file too; name each genome once")
        records |= more
    for path in asked.genes or ():
        genes += annotation.read_genes(path)
    if not genes:
        return records, None
    return records, annotation.by_record(genes, records, (asked.genes or asked.source)[0])


def _write_fasta(path: Path, records: dict[str, torch.Tensor]) -> None:
    with path.open("wb") as file:
        for name, tokens in records.items():
            file.write(f">{name}\n".encode())
            letters = _LETTERS[tokens.numpy()].tobytes()
            for start in range(0, len(letters), _LINE):
                file.write(letters[start : start + _LINE] + b"\n")
