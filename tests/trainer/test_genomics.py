"""DNA: read as it is stored, the same from both strands, learnt where there is something to learn."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.trainer.building import points
from trainer import options, tasks
from trainer.__main__ import main
from trainer.control import Control
from trainer.data import genomes, sequences
from trainer.data.sequences import TOKENS
from trainer.errors import UsageError
from trainer.models.caduceus import Caduceus
from trainer.run import run
from trainer.tasks.genomics import Genomics, matthews

TINY = ("--width", "16", "--layers", "1", "--states", "4", "--batch-size", "32", "--accumulate", "1", "--device", "cpu")


def _parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    Genomics.add_arguments(parser)
    options.add_arguments(parser, Genomics.DEFAULTS)
    return parser.parse_args([*TINY, "--report-every", "1", *arguments])


def _train(*arguments: str, run_dir: Path) -> None:
    run("genomics", _parsed(*arguments), {"MPSTUI_RUN_DIR": str(run_dir)}, Control())


def _benchmark(folder: Path) -> Path:
    """A set of the Genomic Benchmarks layout: A-rich against C-rich sequences."""
    random = np.random.default_rng(0)
    for split, count in (("train", 20), ("test", 6)):
        for name, shares in (("negative", (0.7, 0.1, 0.1, 0.1)), ("positive", (0.1, 0.7, 0.1, 0.1))):
            for number in range(count):
                path = folder / split / name / f"{number}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(random.choice(list("ACGT"), 20 + number, p=shares)))
    return folder


def _model(*, shared: bool = True, norm: str = "rms") -> Caduceus:
    torch.manual_seed(0)
    return Caduceus(
        tokens=len(TOKENS), classes=3, width=8, layers=2, states=4, norm=norm, both_strands=shared,
        opposite=sequences.reverse_complement, reverse=sequences.reversed_in_place,
    )  # fmt: skip


def _some(count: int = 5, length: int = 24) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(length // 2, length + 1, (count,), generator=generator)
    tokens = torch.randint(3, len(TOKENS), (count, length), generator=generator)
    return torch.where(torch.arange(length) < lengths[:, None], tokens, 0), lengths


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_strands_are_equivariant_at_every_position_and_give_the_same_logits(norm: str) -> None:
    model, (tokens, lengths) = _model(norm=norm), _some()
    opposite = sequences.reverse_complement(tokens, lengths)
    assert not torch.equal(opposite, tokens)
    swapped = sequences.reversed_in_place(model.vectors(tokens, lengths), lengths).flip(2)
    inside = torch.arange(tokens.shape[1]) < lengths[:, None]
    assert torch.allclose(model.vectors(opposite, lengths)[inside], swapped[inside], atol=1e-5)
    assert torch.allclose(model(opposite, lengths), model(tokens, lengths), atol=1e-5)
    single = _model(shared=False)
    assert not torch.allclose(single(opposite, lengths), single(tokens, lengths), atol=1e-3)


def test_padding_has_no_influence() -> None:
    model, (tokens, lengths) = _model(), _some()
    longer = torch.nn.functional.pad(tokens, (0, 9))
    assert torch.allclose(model(longer, lengths), model(tokens, lengths), atol=1e-5)


def test_reverse_complement_of_the_alphabet() -> None:
    tokens = sequences.tokens_of("AACGTNtuR").long()[None]
    assert [TOKENS[token] for token in tokens[0]] == list("AACGTNTTN")
    found = sequences.reverse_complement(tokens, torch.tensor([7]))[0]
    assert [TOKENS[token] for token in found] == [*"ANACGTT", "A", "N"]
    assert torch.equal(sequences.reverse_complement(found[None], torch.tensor([7]))[0], tokens[0])


def test_long_sequences_keep_their_middle() -> None:
    parts = [sequences.tokens_of("AACCGGTT"), sequences.tokens_of("ACG")]
    found = sequences.gathered("x", ("a", "b"), parts, torch.tensor([0, 1]))
    tokens, lengths = found.take(torch.tensor([1, 0]), 4)
    assert [[TOKENS[token] for token in row] for row in tokens] == [["A", "C", "G", "PAD"], ["C", "C", "G", "G"]]
    assert lengths.tolist() == [3, 4]


def test_folds_share_nothing_and_cover_everything() -> None:
    whole = sequences.synthetic(0)[0].limited(103, 0)
    seen = []
    for fold in range(5):
        train, held_out = whole.folded(fold, 7)
        assert len(train) + len(held_out) == 103
        assert abs(held_out.labels.float().mean() - whole.labels.float().mean()) < 0.08
        seen += [tuple(held_out.take(torch.tensor([number]), 120)[0][0].tolist()) for number in range(len(held_out))]
    assert len(set(seen)) == 103
    assert not torch.equal(whole.folded(0, 8)[1].bases, whole.folded(0, 7)[1].bases)


@pytest.mark.parametrize(
    ("confusion", "expected"),
    [
        ([[5, 0], [0, 5]], 1.0),
        ([[0, 5], [5, 0]], -1.0),
        ([[4, 0], [6, 0]], 0.0),
        ([[90, 10], [20, 80]], (90 * 80 - 10 * 20) / (110 * 90 * 100 * 100) ** 0.5),
        ([[3, 0, 0], [0, 4, 0], [0, 0, 5]], 1.0),
    ],
)
def test_matthews_correlation(confusion: list[list[int]], expected: float) -> None:
    assert matthews(torch.tensor(confusion)) == pytest.approx(expected)


def test_reads_a_benchmark(tmp_path: Path) -> None:
    train, test = genomes.read_folder(_benchmark(tmp_path / "demo"))
    assert train.classes == ("negative", "positive")
    assert (len(train), len(test)) == (40, 12)
    assert train.labels.bincount().tolist() == [20, 20]
    text = (tmp_path / "demo" / "train" / "positive" / "0.txt").read_text()
    assert [TOKENS[token] for token in train.take(torch.tensor([20]), 20)[0][0]] == list(text)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no gzip at all", "Not a gzipped file"),
        (gzip.compress(b">chr1\nACGT\n")[:-9], "cannot be read"),
        (gzip.compress(b"")[:10] + b"\xff" * 40, "cannot be read"),
        (gzip.compress(b">chr1\n" + b"A" * 99), "line 2 has more than 64 characters"),
    ],
    ids=["no gzip", "cut", "noise", "a long line"],  # gzip writes the time into the bytes
)
def test_a_genome_that_does_not_unpack_is_one_sentence(
    tmp_path: Path, content: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(genomes, "LONGEST_LINE", 64)
    packed, bed = tmp_path / "g.fa.gz", tmp_path / "i.bed"
    packed.write_bytes(content)
    bed.write_text("chr1\t2\t6\tb\nchr1\t0\t3\ta\n")
    with pytest.raises(UsageError, match=why):
        genomes.read_intervals(packed, bed)


def test_reads_intervals_from_plain_and_gzipped_fasta(tmp_path: Path) -> None:
    plain, packed, bed = tmp_path / "g.fa", tmp_path / "g.fa.gz", tmp_path / "i.bed"
    plain.write_text(">chr1 first\nAACC\nGGTT\n>chrX\nzzz\n>chr2\nACGTACGT\n")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    bed.write_text("# intervals\nchr1\t2\t6\tb\nchr1\t0\t3\ta\t0\t-\nchr2\t4\t8\ta\n")
    for fasta in (plain, packed):
        found = genomes.read_intervals(fasta, bed)
        assert found.classes == ("a", "b")
        assert found.labels.tolist() == [1, 0, 0]
        assert "".join(TOKENS[token] for token in found.bases) == "CCGG" + "GTT" + "ACGT"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("chr1\t0\t4\n", "line 1: 3 columns, the fourth must name the class"),
        ("chr1\t4\t4\ta\n", "line 1: start 4 and end 4 are no interval"),
        ("chr1\tx\t4\ta\n", "line 1: invalid literal for int"),
        ("chr1\t0\t9\ta\n", "line 1: chr1 has 8 bases in it"),
        ("chr7\t0\t4\ta\n", "line 1: chr7 is not in it"),
        ("chr1\t0\t4\ta\n", "column 4 names 1 classes"),
        ("", "has no intervals"),
    ],
)
def test_what_is_wrong_with_intervals_is_said(tmp_path: Path, content: str, sentence: str) -> None:
    fasta, bed = tmp_path / "g.fa", tmp_path / "i.bed"
    fasta.write_text(">chr1\nAACCGGTT\n")
    bed.write_text(content)
    with pytest.raises(UsageError, match=sentence):
        genomes.read_intervals(fasta, bed)


def test_a_record_that_is_there_twice_is_named(tmp_path: Path) -> None:
    """Joined end to end, its second half would be cut by coordinates of the first."""
    fasta, bed = tmp_path / "g.fa", tmp_path / "i.bed"
    fasta.write_text(">chr1 one\nAACC\n>chr2\nAACC\n>chr1 again\nGGTT\n")
    bed.write_text("chr1\t0\t4\ta\nchr1\t4\t8\tb\n")
    with pytest.raises(UsageError, match=r"g\.fa line 5: the record chr1 is there twice; keep one of them"):
        genomes.read_intervals(fasta, bed)


def test_what_is_wrong_with_a_benchmark_is_said_with_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _benchmark(tmp_path / "demo")

    def refused(*arguments: str) -> str:
        assert main(["genomics", *TINY, "--out", str(tmp_path / "out"), *arguments]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        return lines[0]

    assert "no train/ there" in refused("--data", str(tmp_path))
    assert "did you mean one of demo" in refused("--data", str(tmp_path))
    assert "--fasta needs --bed" in refused("--fasta", "g.fa")
    (folder / "train" / "negative" / "3.txt").write_text("ACG7T")
    assert "3.txt has '7' at base 4, which is none of A C G T N; repair" in refused("--data", str(folder))
    (folder / "train" / "negative" / "3.txt").write_text("")
    assert "3.txt is empty" in refused("--data", str(folder))


def test_check_data_counts_and_names_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _benchmark(tmp_path / "demo")
    assert main(["genomics", "--data", str(folder), "--check-data"]) == 0
    assert "train negative: 20\n  train positive: 20\n  test negative: 6" in capsys.readouterr().out
    for number in (1, 2):
        (folder / "test" / "positive" / f"{number}.txt").write_text("?")
    assert main(["genomics", "--data", str(folder), "--check-data"]) == 2
    assert "2 problems found" in capsys.readouterr().out


def test_learns_motifs_and_nothing_from_shuffled_labels(tmp_path: Path) -> None:
    learning = ("--lr", "2e-2", "--batch-size", "16", "--norm", "layer")
    _train(*learning, "--limit", "512", "--epochs", "1", run_dir=tmp_path / "learnt")
    _train(*learning, "--limit", "256", "--epochs", "2", "--shuffle-labels", run_dir=tmp_path / "shuffled")
    assert points(tmp_path / "learnt", "val_accuracy")[-1][1] > 0.75
    assert points(tmp_path / "learnt", "val_mcc")[-1][1] > 0.5
    assert abs(points(tmp_path / "shuffled", "val_accuracy")[-1][1] - 0.5) < 0.1


@pytest.mark.parametrize("strands", [(), ("--rc-aug", "--conjoin", "--norm", "layer")], ids=["shared", "augmented"])
def test_stopped_inside_an_epoch_and_resumed_equals_uninterrupted(tmp_path: Path, strands: tuple[str, ...]) -> None:
    small = ("--data", str(_benchmark(tmp_path / "demo")), "--epochs", "2", "--batch-size", "8", *strands)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    _train(*small, run_dir=whole)
    _train(*small, "--stop-after", "7", run_dir=parts)
    _train(*small, "--resume", "latest", run_dir=parts)
    for name in ("loss", "val_loss", "val_mcc"):
        assert points(parts, name) == points(whole, name)


def test_conjoined_validation_does_not_depend_on_the_strand() -> None:
    task = Genomics(_parsed("--conjoin", "--limit", "8"))
    model, (tokens, lengths) = _model(shared=False), _some()
    opposite = sequences.reverse_complement(tokens, lengths)
    assert torch.allclose(task._logits(model, tokens, lengths), task._logits(model, opposite, lengths), atol=1e-5)


def test_augmentation_takes_either_strand_by_the_seed_alone() -> None:
    task, numbers = Genomics(_parsed("--rc-aug", "--limit", "64")), torch.arange(64)
    plain = Genomics(_parsed("--limit", "64")).batch(numbers, 0)
    first, again, other = task.batch(numbers, 1), task.batch(numbers, 1), task.batch(numbers, 2)
    assert torch.equal(first["tokens"], again["tokens"])
    assert not torch.equal(first["tokens"], other["tokens"])
    turned = (first["tokens"] != plain["tokens"]).any(dim=1)
    assert 16 < int(turned.sum()) < 48
    opposite = sequences.reverse_complement(plain["tokens"], plain["lengths"])
    assert torch.equal(first["tokens"][turned], opposite[turned])


def test_defaults() -> None:
    assert tasks.find("genomics").DEFAULTS.sizes("mps") == (64, 2)
