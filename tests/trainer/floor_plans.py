"""Plan files for tests, laid out as the public code lays them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trainer.data.plans import CORNERS, Plan
from trainer.data.synthetic_plans import generated

_LABEL_OF_ROOM = (0, 1, 11, 2, 3, 9, 13)


def record(plan: Plan) -> dict[str, Any]:
    """The dict of a plan, with the types that the public code stores and further keys that it has."""
    corners = np.zeros((CORNERS, 16))
    corners[:, :2] = plan.corners[:, :2]
    for room, label in enumerate(_LABEL_OF_ROOM):
        corners[:, 2 + label] = plan.corners[:, 2 + room]
    mask = plan.real.astype(np.uint8)
    return {
        "file_id": 7,
        "semantics": {(np.float64(0.5), np.float64(-0.5)): [0, 1]},
        "corner_list_np_normalized_padding_withsemantics": corners,
        "global_matrix_np_padding": mask[:, None] * mask,
        "padding_mask": mask[:, None],
        "edges": plan.walls.astype(np.uint8).reshape(-1, 1),
    }


def save(path: Path, content: Any) -> Path:
    """Write a dict as ``numpy.save`` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, content, allow_pickle=True)
    return path


def write_folder(folder: Path, train: int = 12, validation: int = 4, test: int = 2) -> Path:
    """A data set of generated plans."""
    for part, (split, count) in enumerate((("train", train), ("val", validation), ("test", test))):
        for number, plan in enumerate(generated(3, part, count)):
            save(folder / split / f"{number}.npy", record(plan))
    return folder
