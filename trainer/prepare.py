"""``python -m trainer prepare SET --from ... --to DIR``: your own data, in the layout a task reads.

``rplan``: floor plans that may not be passed on. ``genome``: see :mod:`prepare_genome`.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from . import prepare_genome
from .data import rplan
from .data.plans import SPLITS, BadPlan
from .errors import TrainingError, UsageError
from .fetch import Meter
from .options import whole

_LARGEST_SHARE = 10
"""At most one plan in this many is kept for validation, and as many for testing."""
_NAMED = 5
_WORTH_PROCESSES = 200
"""Fewer pictures are converted in one process; each takes a tenth of a second."""


def main(arguments: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """Make a data set; returns the sentences that say what was made and how to train on it.

    Raises:
        UsageError: the source cannot be used, or the data set is there already.
        TrainingError: there is nothing in it to train on, or a file could not be written.
    """
    sets = parser.add_subparsers(dest="set", required=True, metavar="SET")
    plans = sets.add_parser("rplan", help="floor plans for gsdiff, made of RPLAN's PNG files")
    plans.add_argument("--from", dest="source", type=Path, required=True, metavar="DIR", help="folder of PNG files")
    plans.add_argument(
        "--to", type=Path, required=True, metavar="DIR", help="folder in which train/, val/ and test/ are made"
    )
    plans.add_argument(
        "--held-out",
        type=whole,
        default=3000,
        metavar="N",
        help="plans in val/, and as many in test/ (default 3000, a tenth at most)",
    )
    plans.add_argument("--seed", type=whole, default=0, metavar="N", help="decides which ones (default 0)")
    windows = sets.add_parser("genome", help="coding and noncoding windows for genomics, made of a genome")
    prepare_genome.add_arguments(windows)
    asked = parser.parse_args(arguments)
    return _prepare_rplan(asked) if asked.set == "rplan" else prepare_genome.prepare(asked)


def _prepare_rplan(asked: argparse.Namespace) -> str:
    """Turn RPLAN's pictures into plans."""
    pictures = sorted(asked.source.glob("[!.]*.png"), key=lambda path: (len(path.stem), path.stem))
    if not pictures:
        raise UsageError(f"--from {asked.source}: there are no .png files in it; name RPLAN's floorplan_dataset")
    there = [split for split in SPLITS if next((asked.to / split).glob("*.npy"), None)]
    if there:
        raise UsageError(f"--to {asked.to}: {there[0]}/ has plans already; name a new folder")
    random.Random(asked.seed).shuffle(pictures)
    held_out = min(asked.held_out, max(len(pictures) // _LARGEST_SHARE, len(pictures) // 3 and 1))
    why: Counter[str] = Counter()
    made: Counter[str] = Counter()
    meter = Meter(0, len(pictures), sys.stderr, unit=("plans", 1))
    try:
        for split in SPLITS:
            (asked.to / split).mkdir(parents=True, exist_ok=True)
        # Assigned beforehand, so that a picture that is not a plan does not move others to another split.
        splits = ["val"] * held_out + ["test"] * held_out + ["train"] * (len(pictures) - 2 * held_out)
        targets = [asked.to / split / f"{one.stem}.npy" for split, one in zip(splits, pictures, strict=True)]
        for number, (split, reason) in enumerate(zip(splits, _converted(pictures, targets), strict=True), start=1):
            made.update([] if reason else [split])
            why.update([reason] if reason else [])
            meter.show(number)
    except OSError as error:
        raise TrainingError(f"--to {asked.to}: a plan could not be written ({error.strerror})") from error
    meter.end()
    counts = ", ".join(f"{made[split]:,} in {split}/" for split in SPLITS)
    left_out = "".join(f"\n{count:,} left out: {reason}" for reason, count in why.most_common(_NAMED))
    if not made:
        raise TrainingError(f"none of the {len(pictures):,} pictures is a plan{left_out}")
    return f"{asked.to}: {counts}: train with `gsdiff --data {asked.to}`{left_out}"


def _converted(pictures: Sequence[Path], targets: Sequence[Path]) -> Iterator[str]:
    """Convert pictures, in parallel if there are many; yield for each why it is not a plan, or an empty text."""
    if len(pictures) < _WORTH_PROCESSES:
        yield from map(_convert, pictures, targets)
        return
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        yield from pool.map(_convert, pictures, targets, chunksize=16)


def _convert(picture: Path, target: Path) -> str:
    try:
        plan = rplan.plan_of(rplan.read_labels(picture))
    except BadPlan as error:
        return str(error)
    np.save(target, np.array(plan, dtype=object), allow_pickle=True)
    return ""
