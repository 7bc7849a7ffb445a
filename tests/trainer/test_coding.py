"""Coding and noncoding windows of a genome: by an annotation or by open reading frames, split by position."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.trainer.running import command, made
from trainer.data import annotation, coding, genomes
from trainer.data.coding import CODING, NONCODING, Window
from trainer.data.sequences import SequenceSet, reverse_complement, tokens_of
from trainer.errors import UsageError

STOPS = ("TAA", "TAG", "TGA")


def _opposite(text: str) -> str:
    return text[::-1].translate(str.maketrans("ACGT", "TGCA"))


def _frames_by_hand(genome: str, codons: int) -> tuple[list[bool], list[bool]]:
    """The definition, one base after the other."""
    coding_bases, open_bases = [False] * len(genome), [False] * len(genome)
    for reverse in (False, True):
        text = _opposite(genome) if reverse else genome
        for frame in range(3):
            cut = [text[at : at + 3] for at in range(frame, len(text) - 2, 3)]
            begin = 0
            for at, codon in enumerate([*cut, None]):
                if codon is not None and codon not in STOPS:
                    continue
                if at - begin >= codons:
                    start = next((n for n in range(begin, at) if cut[n] == "ATG"), at)
                    _set(open_bases, frame + 3 * begin, frame + 3 * at, reverse)
                    if codon and at - start >= codons:
                        _set(coding_bases, frame + 3 * start, frame + 3 * at + 3, reverse)
                begin = at + 1
    return coding_bases, [not (a or b) for a, b in zip(coding_bases, open_bases, strict=True)]


def _set(bases: list[bool], start: int, end: int, reverse: bool) -> None:
    for at in range(start, end):
        bases[len(bases) - 1 - at if reverse else at] = True


def test_reading_frames_are_those_of_the_definition_on_both_strands() -> None:
    random = np.random.default_rng(4)
    genome = "".join(random.choice(list("ACGT"), 1500))
    genome = genome[:700] + "NN" + genome[702:]
    found = coding.masks_of_frames(tokens_of(genome), 24)
    expected = _frames_by_hand(genome, 24)
    assert [mask.tolist() for mask in found] == list(expected)
    assert found[0].any()
    assert found[1].any()
    tokens = tokens_of(genome).long()[None]
    other = reverse_complement(tokens, torch.tensor([len(genome)]))[0].to(torch.uint8)
    assert all(np.array_equal(a, b[::-1]) for a, b in zip(found, coding.masks_of_frames(other, 24), strict=True))


def test_windows_lie_side_by_side_within_runs_and_hold_no_unknown_base() -> None:
    tokens = tokens_of("A" * 95 + "N" + "C" * 104)
    mask = np.arange(200) < 130
    found = coding.windows("r", tokens, (mask, ~mask), 20, 1)
    assert {window.label for window in found} == {CODING, NONCODING}
    for window in found:
        assert window.end - window.start == 20
        assert (window.end <= 130) == (window.label == CODING)
        assert window.end <= 95 or window.start > 95
    assert all(one.end <= other.start for one, other in itertools.pairwise(found))
    assert len(coding.balanced(found, 0)) == 2 * min(
        sum(window.label == label for window in found) for label in (CODING, NONCODING)
    )


GENBANK = """LOCUS       DEMO                 120 bp    DNA     linear   PHG 01-JAN-2000
VERSION     DEMO.2
FEATURES             Location/Qualifiers
     source          1..120
                     /organism="made up"
     gene            1..30
     CDS             complement(join(4..30,
                     41..50))
                     /note="2..3 is no
                     CDS 7..9"
     CDS             join(X1.1:1..9,<61..>72)
                     /codon_start=1
ORIGIN
{}
//
"""


def _genbank(bases: str) -> str:
    lines = (f"{at + 1:>9} {' '.join(bases[at + n : at + n + 10] for n in range(0, 60, 10))}" for at in (0, 60))
    return GENBANK.format("\n".join(lines))


def test_genbank_files_tell_bases_and_coding_regions(tmp_path: Path) -> None:
    bases = "".join(np.random.default_rng(0).choice(list("acgt"), 120))
    path = tmp_path / "demo.gbk.gz"
    path.write_bytes(gzip.compress(_genbank(bases).encode()))
    assert annotation.is_genbank(path)
    records, genes = annotation.read_genbank(path)
    assert torch.equal(records["DEMO.2"], tokens_of(bases))
    assert [(gene.record, gene.start, gene.end) for gene in genes] == [
        ("DEMO.2", 3, 30),
        ("DEMO.2", 40, 50),
        ("DEMO.2", 60, 72),
    ]
    cut = tmp_path / "cut.gb"
    cut.write_text(_genbank(bases).partition("//")[0])
    with pytest.raises(UsageError, match=r"cut\.gb ends without `//`: it is not whole"):
        annotation.read_genbank(cut)


def test_annotations_name_records_as_ncbi_titles_do_and_lie_within_them(tmp_path: Path) -> None:
    gff = tmp_path / "genes.gff3"
    rows = ["##gff-version 3", "NC_1.1\tx\tgene\t1\t40\t.\t+\t.\tID=g", "NC_1.1\tx\tCDS\t11\t40\t.\t-\t0\tID=c"]
    gff.write_text("\n".join([*rows, "##FASTA", ">NC_1.1", "ACGT"]) + "\n")
    genes = annotation.read_genes(gff)
    records = {"gi|1|ref|NC_1.1|": tokens_of("A" * 50)}
    found = annotation.by_record(genes, records, gff)
    assert [(gene.start, gene.end) for gene in found["gi|1|ref|NC_1.1|"]] == [(10, 40)]
    with pytest.raises(UsageError, match=r"NC_1\.1 has 30 bases, not 40"):
        annotation.by_record(genes, {"NC_1.1": tokens_of("A" * 30)}, gff)
    with pytest.raises(UsageError, match=r"NC_1\.1 is no record of this genome \(chr1\)"):
        annotation.by_record(genes, {"chr1": tokens_of("A" * 50)}, gff)
    bed = tmp_path / "genes.bed"
    bed.write_text("NC_1.1\t10\t40\n")
    assert annotation.read_genes(bed) == genes
    for text, why in (
        ("a\tb\tCDS\t9\t3\t.\t+\t0\t\n", "line 1 names no stretch of bases"),
        ("a\tb\tgene\t1\t3\n", "names no"),
    ):
        gff.write_text(text)
        with pytest.raises(UsageError, match=why):
            annotation.read_genes(gff)


def _made_up_genome() -> str:
    """Genes without stop codons between stretches full of them."""
    random = np.random.default_rng(7)
    codons = [a + b + c for a, b, c in itertools.product("ACGT", repeat=3) if a + b + c not in STOPS]
    parts = []
    for number in range(40):
        gene = "ATG" + "".join(random.choice(codons, 80)) + "TAA"
        spacer = "".join("TTAATTAATTAA" + "".join(random.choice(list("ACGT"), 8)) for _ in range(12))
        parts += [_opposite(gene) if number % 2 else gene, spacer]
    return "".join(parts)


def test_a_genome_becomes_two_files_that_are_split_by_position(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    genome = _made_up_genome()
    (tmp_path / "demo.fa").write_text(f">demo of a test\n{genome}\n")
    words = ("prepare", "genome", "--from", str(tmp_path / "demo.fa"), "--to", str(tmp_path / "to"), "--window", "60")
    assert command(*words, "--codons", "60") == 0
    told = capsys.readouterr().out
    assert "coding: in an open reading frame of 60 codons or more, noncoding: in none, in any of six frames" in told
    assert "train with `genomics --fasta" in told
    fasta, bed = tmp_path / "to" / "genome.fa", tmp_path / "to" / "coding.bed"
    assert torch.equal(genomes.read_records(fasta)["demo"], tokens_of(genome))
    rows = [line.split("\t") for line in bed.read_text().splitlines()]
    windows = [Window(name, int(start), int(end), label) for name, start, end, label in rows]
    places = {tokens_of(genome[one.start : one.end]).numpy().tobytes(): one for one in windows}
    assert len(places) == len(windows)
    seen: list[Window] = []
    for fold in range(5):
        train, held_out = ([places[part] for part in _sequences(some)] for some in _blocks(fasta, bed, fold))
        starts, ends = (np.array([(one.start, one.end) for one in some]).T for some in (train, held_out))
        apart = np.maximum(starts[0][:, None] - ends[1], ends[0] - starts[1][:, None])
        assert apart.min() >= 50
        assert len(train) + len(held_out) > 0.8 * len(windows)
        seen += held_out
    assert sorted(seen, key=lambda window: window.start) == windows
    task = made("genomics", "--fasta", str(fasta), "--bed", str(bed), "--block", "1000")
    assert "split by blocks of 1,000 bases" in task.data
    assert command(*words) == 2
    assert "genome.fa is there already" in capsys.readouterr().err


def _blocks(fasta: Path, bed: Path, fold: int) -> tuple[SequenceSet, SequenceSet]:
    return genomes.read_blocks(fasta, bed, 1000, fold, seed=3)


def _sequences(found: SequenceSet) -> list[bytes]:
    return [found.bases[found.starts[n] : found.starts[n + 1]].numpy().tobytes() for n in range(len(found))]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--window", "5000"), "has no noncoding window of 5000 bases"),
        (("--genes", "nowhere.gff"), "nowhere.gff cannot be read"),
    ],
)
def test_what_cannot_be_prepared_is_said(
    tmp_path: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "demo.fa").write_text(">demo\n" + "ATG" + "GCT" * 2000 + "TAA" + "\n")
    assert command("prepare", "genome", "--from", str(tmp_path / "demo.fa"), "--to", str(tmp_path / "to"), *words) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


def test_only_a_genome_is_split_by_position() -> None:
    with pytest.raises(UsageError, match="--block splits a genome by position; give --fasta and --bed"):
        made("genomics", "--block", "1000")
