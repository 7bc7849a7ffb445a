"""Two towers: an archive of pairs, mined near misses and a cache of payloads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from . import Case

ROWS = 120
SYNTHETIC = ("--batch-size", "8")


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


CASES = {
    "": Case(
        (
            *("--width", "16", "--layers", "1", "--embedding", "8", "--batch-size", "16"),
            *("--same-article-k", "2", "--nearmiss-k", "1", "--empty-cache-every", "2"),
        ),
        pairs,
    )
}
