"""The recordings and what a person reads from them (``recordings/expected.json``); None means "says nothing"."""

from __future__ import annotations

import json
import math
from pathlib import Path

from mpstui.core.formats.points import ParsedLog

FOLDER = Path(__file__).parent / "recordings"
EXPECTED: dict[str, dict[str, float | None]] = json.loads((FOLDER / "expected.json").read_text())
NAMES = sorted(EXPECTED)


def values(found: ParsedLog) -> dict[str, float | None]:
    """A summary in the terms of ``expected.json``."""
    loss = found.train_loss
    return {
        "epoch": found.epoch,
        "epochs": found.epochs,
        "step": found.step,
        "steps": found.steps,
        "first": loss.first if loss else None,
        "last": loss.last if loss else None,
        "count": loss.count if loss else 0,
        "lr": found.learning_rate,
    }


def same(a: float | None, b: float | None) -> bool:
    """Equal to one part in a million; NaN equals NaN."""
    if a is None or b is None:
        return a is b
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-6)
