"""Data in the formats that the tasks document, as other programs write them: made here, small, on disk."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np

from tests.trainer.floor_plans import write_folder

ROWS = 120


def pairs(folder: Path) -> list[str]:
    """An archive of contexts and targets, mined near misses, and a cache of payloads."""
    random = np.random.default_rng(0)
    targets = random.standard_normal((ROWS, 6)).astype(np.float16)
    np.savez(
        folder / "pairs.npz",
        context_sequences=random.standard_normal((ROWS, 4, 6)).astype(np.float32),
        target_vectors=targets,
        truth_keys=np.stack([np.arange(ROWS) // 5, np.arange(ROWS)], axis=1),
    )
    near = [{"q_index": row, "near_miss_indices": [(row + 7) % ROWS, (row + 11) % ROWS]} for row in range(0, ROWS, 2)]
    (folder / "near.jsonl").write_text("".join(json.dumps(line) + "\n" for line in near))
    np.save(folder / "cache.npy", targets)
    files = {"--train-npz": "pairs.npz", "--nearmiss-jsonl": "near.jsonl", "--p-cache-npy": "cache.npy"}
    return [word for flag, name in files.items() for word in (flag, str(folder / name))]


def candles(folder: Path) -> list[str]:
    """Two symbols as a spreadsheet exports them: odd headers, semicolons, the newest day first, American dates."""
    random = np.random.default_rng(0)
    days = np.datetime64("2021-01-04") + np.arange(420)
    prices = folder / "prices"
    prices.mkdir()
    for symbol in ("ABC", "XYZ"):
        close = 50 * np.exp(random.standard_normal(len(days)).cumsum() * 0.01)
        lines = ["DATE;Close/Last;Vol;OPEN;hIGH;low"]
        for day, price in reversed(list(zip(days, close, strict=True))):
            year, month, date = str(day).split("-")
            spread = price * 0.01
            numbers = (price, 1e6 + price, price - spread / 2, price + spread, price - spread)
            lines.append(";".join([f"{month}/{date}/{year}", *(f"{number:.4f}" for number in numbers)]))
        (prices / f"{symbol}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return ["--data", str(prices), "--cache-dir", str(folder / "cache")]


def plans(folder: Path) -> list[str]:
    """One object array a plan."""
    return ["--data", str(write_folder(folder / "plans", train=40, validation=8))]


def images(folder: Path) -> list[str]:
    """Pickles of protocol 2, with bytes for keys."""
    random = np.random.default_rng(0)
    batches = folder / "cifar-10-batches-py"
    batches.mkdir()
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        pixels = random.integers(0, 256, (20, 3072), dtype=np.uint8)
        record = {b"data": pixels, b"labels": random.integers(0, 10, 20).tolist(), b"filenames": [b"a.png"] * 20}
        (batches / name).write_bytes(pickle.dumps(record, protocol=2))
    return ["--data", str(folder)]


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
