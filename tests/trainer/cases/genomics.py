"""Sequences: a folder a class, and a genome with intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from . import Case

_SMALL = ("--width", "16", "--layers", "1", "--states", "4")
SYNTHETIC = ("--width", "16", "--layers", "1", "--batch-size", "4", "--accumulate", "1")


def benchmark(folder: Path) -> list[str]:
    """A folder a class, a sequence a file."""
    random = np.random.default_rng(0)
    for split, count in (("train", 50), ("test", 10)):
        for name, shares in (("negative", (0.7, 0.1, 0.1, 0.1)), ("positive", (0.1, 0.7, 0.1, 0.1))):
            place = folder / "set" / split / name
            place.mkdir(parents=True)
            for number in range(count):
                (place / f"{number}.txt").write_text("".join(random.choice(list("ACGT"), 24, p=shares)) + "\n")
    return ["--data", str(folder / "set")]


def intervals(folder: Path) -> list[str]:
    """A genome in lines of 60 bases, soft-masked, and intervals with classes and strands."""
    random = np.random.default_rng(0)
    genome = "".join(random.choice(list("ACGTacgtN"), 6000))
    lines = [genome[start : start + 60] for start in range(0, len(genome), 60)]
    (folder / "genome.fa").write_text(">chr1 of a test\n" + "\n".join(lines) + "\n")
    rows = [f"chr1\t{40 * n}\t{40 * n + 30}\t{'ab'[n % 2]}\t0\t{'+-'[n % 3 % 2]}" for n in range(120)]
    (folder / "intervals.bed").write_text("track name=test\n" + "\n".join(rows) + "\n")
    return ["--fasta", str(folder / "genome.fa"), "--bed", str(folder / "intervals.bed")]


CASES = {
    "": Case((*_SMALL, "--batch-size", "8", "--accumulate", "2"), benchmark, files="set/train/positive"),
    "bed": Case((*_SMALL, "--batch-size", "16", "--conjoin", "--rc-aug"), intervals),
}
