"""Images in the pickles that CIFAR is distributed as."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from . import Case

SYNTHETIC = ("--model", "tiny", "--width", "4", "--batch-size", "8")


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


CASES = {
    "": Case(
        (
            *("--model", "tiny", "--width", "4", "--batch-size", "16", "--optimizer", "muon"),
            *("--label-noise", "0.2", "--label-smoothing", "0.1", "--ema", "0.9"),
        ),
        images,
    )
}
