"""What ranks do for test_parts.py: ``-m tests.trainer.part_ranks FOLDER``.

One process loads torch and is forked into the ranks of each training in turn; each takes the checkpoint of the one
before it and saves it again at once, or a few steps later.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from unittest.mock import patch

import torch

from tests.trainer.forked_ranks import forked, prepare
from tests.trainer.sharded_ranks import Pair
from trainer import saving
from trainer.loop import Loop

WORDS = ("cifar", "--model", "tiny", "--width", "3", "--limit", "60", "--ema", "0.9", "--epochs", "9")
SIZES = ("--batch-size", "1", "--accumulate", "12")
"""Of the first training; the others keep what a step holds, which any number of ranks here can share."""
CHAIN = (
    ("alone", 1, None, 2),
    ("two", 2, "alone", 0),
    ("two-on", 2, "two", 3),
    ("four", 4, "two-on", 0),
    ("three", 3, "four", 0),
    ("one", 1, "three", 0),
    ("two-again", 2, "two-on", 0),
    ("gathered", 2, "two-on", 0),
)
"""Of each training: how many ranks, whose checkpoint they begin with, at which step they end and save (0: at once)."""
UNSEEN = "gathered"
"""In this one the second rank does not see the first one's folder."""


def checkpoint_of(folder: Path, name: str) -> Path:
    """The only one that it saved."""
    (found,) = (folder / name / "checkpoints").glob("step-*.pt")
    return found


def train(folder: Path, name: str, begun: str | None, steps: int) -> None:
    """What one rank does."""
    pair = Pair(folder)
    begin = ("--resume", str(checkpoint_of(folder, begun))) if begun else SIZES
    made = pair.job(name, *WORDS, *begin, "--shard", *(("--stop-after", str(steps)) if steps else ()))
    if steps:
        torch.rand(1 + pair.ranks.rank)  # so that the generators differ
        Loop(made).run()
    else:
        is_dir = Path.is_dir
        hidden = name == UNSEEN and pair.ranks.rank == 1
        with patch.object(Path, "is_dir", lambda path: not hidden and is_dir(path)):
            saving.save(made, best=name == "four")
    pair.group.close()


if __name__ == "__main__":
    prepare()
    place = Path(sys.argv[1])
    for name, ranks, begun, steps in CHAIN:
        forked(place / f"{name}.store", ranks, functools.partial(train, place, name, begun, steps))
