"""Where a genome codes for proteins: GFF3, GTF and BED files, and GenBank files, which also have the bases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ..errors import UsageError
from .genomes import numbered_lines
from .sequences import BadSequence, tokens_of

_GENBANK_SUFFIXES = (".gb", ".gbk", ".gbff", ".genbank")
_RANGE = re.compile(r"(\d+)(?:\.\.>?(\d+))?")
_ELSEWHERE = re.compile(r"[\w.]+:[<>\d.]+")
"""A part of a location that lies in another record: that record's name and a colon come first."""


@dataclass(frozen=True, slots=True)
class Coding:
    """Bases ``start`` to ``end`` - 1 of a record, from 0, that code for a protein, on either strand."""

    record: str
    start: int
    end: int


@dataclass
class _Record:
    """What has been read of one record of a GenBank file."""

    name: str = ""
    locations: list[str] = field(default_factory=list)
    """The locations of its coding regions, as written in the file."""
    bases: list[str] = field(default_factory=list)
    begins: int = 0
    """The line of the file at which its bases begin."""


def is_genbank(path: Path) -> bool:
    """True if a file has the name of a GenBank file."""
    return Path(path.name.removesuffix(".gz")).suffix in _GENBANK_SUFFIXES


def read_genes(path: Path) -> list[Coding]:
    """The CDS lines of a GFF3 or GTF file, or every line of a BED file (a name that ends in ``.bed`` or ``.bed.gz``).

    Raises:
        UsageError: a line cannot be used, or none has a coding region; names file and line and the remedy.
    """
    bed = path.name.removesuffix(".gz").endswith(".bed")
    first, last, expected = (1, 2, "CHROMOSOME START END") if bed else (3, 4, "the nine columns of GFF3")
    found = []
    for number, text in numbered_lines(path):
        if text.startswith("##FASTA"):
            break
        cells = text.rstrip("\r\n").split("\t")
        if not text.strip() or text.startswith(("#", "track", "browser")) or (not bed and cells[2:3] != ["CDS"]):
            continue
        numbers = [int(cell) if cell.isdecimal() else 0 for cell in cells[first : last + 1]]
        start, end = (numbers[0] - (not bed), numbers[1]) if len(numbers) == 2 else (0, 0)
        if not 0 <= start < end:
            raise UsageError(f"{path} line {number} names no stretch of bases; expected {expected}, separated by tabs")
        found.append(Coding(cells[0], start, end))
    if not found:
        raise UsageError(f"{path} names no coding region; give GFF3 or GTF with lines of the type CDS, or a .bed file")
    return found


def read_genbank(path: Path) -> tuple[dict[str, torch.Tensor], list[Coding]]:
    """The bases (tokens) of every record of a GenBank file, by its name, and its CDS features.

    Raises:
        UsageError: it is incomplete, has no bases or no coding region; names file and line and the remedy.
    """
    sequences: dict[str, torch.Tensor] = {}
    genes: list[Coding] = []
    for record in _records(path):
        try:
            sequences[record.name] = tokens_of("".join(record.bases))
        except BadSequence as error:
            where = f"{path} line {record.begins}: the sequence of {record.name}"
            raise UsageError(f"{where} {error}; take a file that has the bases too") from error
        for location in record.locations:
            parts = _RANGE.finditer(_ELSEWHERE.sub("", location))
            genes += [Coding(record.name, int(part[1]) - 1, int(part[2] or part[1])) for part in parts]
    if not genes:
        raise UsageError(f"{path} has no CDS feature; give --genes a GFF3 or BED file, or take an annotated record")
    return sequences, genes


def _records(path: Path) -> Iterator[_Record]:
    record, section, in_location = _Record(), "", False
    for number, text in numbered_lines(path):
        word, key, content = text[:12].strip(), text[5:21].strip(), text[21:].strip()
        if text.startswith("//"):
            yield record
            record, section = _Record(), ""
        elif not text.startswith(" ") and word:
            section = word.split()[0]
            record.begins = number
            if section in ("LOCUS", "VERSION"):  # annotations name a record by its version, if it has one
                record.name = (text[12:].split() or [record.name])[0]
        elif section == "ORIGIN":
            record.bases += text.split()[1:]
        elif section == "FEATURES":
            goes_on = in_location and not key and not content.startswith("/")
            in_location = key == "CDS" or goes_on
            if goes_on:
                record.locations[-1] += content
            elif in_location:
                record.locations.append(content)
    if section:
        raise UsageError(f"{path} ends without `//`: it is not whole; take it again")


def by_record(genes: list[Coding], records: Mapping[str, torch.Tensor], source: Path) -> dict[str, list[Coding]]:
    """Coding regions by the record of the genome in which they lie.

    NCBI has long written titles such as ``gi|9626243|ref|NC_001416.1|``, where annotations say ``NC_001416.1``.

    Raises:
        UsageError: a region lies in no record, or beyond its end; names both and the remedy.
    """
    names = {part: name for name in records for part in (*name.split("|"), name) if part}
    found: dict[str, list[Coding]] = {name: [] for name in records}
    for gene in genes:
        name = names.get(gene.record)
        if name is None or gene.end > len(records[name]):
            reach = "is no record" if name is None else f"has {len(records[name]):,} bases, not {gene.end:,},"
            known = ", ".join(list(records)[:3])
            raise UsageError(f"{source}: {gene.record} {reach} of this genome ({known}); use the same assembly")
        found[name].append(gene)
    return found
