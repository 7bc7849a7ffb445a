"""Floor plans, one array a plan; both stages."""

from __future__ import annotations

from pathlib import Path

from tests.trainer.floor_plans import write_folder

from . import Case

_SMALL = (
    *("--width", "16", "--layers", "1", "--heads", "2", "--batch-size", "8"),
    *("--accumulate", "1", "--sample-every", "0"),
)
SYNTHETIC = ("--limit", "24", "--layers", "1", "--width", "32", "--batch-size", "4", "--accumulate", "1")


def plans(folder: Path) -> list[str]:
    """One object array a plan."""
    return ["--data", str(write_folder(folder / "plans", train=40, validation=8))]


CASES = {stage: Case(("--stage", stage, *_SMALL), plans, files="plans/train") for stage in ("1", "2")}
