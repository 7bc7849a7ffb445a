"""Floor plans as graphs of corners and walls, stored as the public GSDiff code stores them: one ``.npy`` dict a plan.

The layout is that of github.com/SizheHu/GSDiff (``rplang-v3-withsemantics``): coordinates are (pixel - 128) / 128 of a
256-pixel image, and each corner counts, for each of 14 room labels, the rooms it belongs to.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from .restricted_pickle import load_restricted

CORNERS = 53
"""Slots of a plan; those without a corner are padding."""
ROOMS = ("living room", "bedroom", "storage", "kitchen", "bathroom", "balcony", "outside")
FEATURES = 2 + len(ROOMS)
"""x, y and one bit for each kind of room."""
PIXELS = 128
"""Pixels per unit of a coordinate."""
SPLITS = ("train", "val", "test")
SHAPES = {
    "corner_list_np_normalized_padding_withsemantics": (CORNERS, 16),
    "global_matrix_np_padding": (CORNERS, CORNERS),
    "padding_mask": (CORNERS, 1),
    "edges": (CORNERS * CORNERS, 1),
}
_LABELS_OF_ROOM = ((0, 4, 10), (1, 5, 6, 7, 8), (11, 12), (2,), (3,), (9,), (13,))
"""The labels, out of 14, that make each of ROOMS, in the same order."""
_FURTHEST = 1.05
_FEWEST_CORNERS = 3
Floats = npt.NDArray[np.float32]
Bits = npt.NDArray[np.bool_]


class BadPlan(ValueError):
    """A file is not a plan; the message says why in a few words."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One floor plan."""

    corners: Floats
    """(CORNERS, FEATURES): x and y in [-1, 1], then a 0 or 1 for each of ROOMS; zeros in padding."""
    real: Bits
    """(CORNERS,): where there is a corner."""
    walls: Bits
    """(CORNERS, CORNERS): symmetric, nothing on the diagonal."""


class Plans(Protocol):
    """Numbered plans."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Plan: ...


class PlanFiles:
    """The plans of one folder. A file is read when first needed; 2.3 kB of it are then kept."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("[!.]*.npy"), key=lambda path: (len(path.stem), path.stem))
        self._kept: dict[int, tuple[Floats, Bits, npt.NDArray[np.uint8]]] = {}

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> Plan:
        """The plan of a file.

        Raises:
            UsageError: it is not a plan; names the file and the remedy.
        """
        if number not in self._kept:
            plan = self._read(self.paths[number])
            self._kept[number] = (plan.corners, plan.real, np.packbits(plan.walls))
        corners, real, packed = self._kept[number]
        walls = np.unpackbits(packed, count=CORNERS * CORNERS).reshape(CORNERS, CORNERS).astype(bool)
        return Plan(corners, real, walls)

    def _read(self, path: Path) -> Plan:
        try:
            return read_plan(path)
        except BadPlan as error:
            raise UsageError(f"{path}: {error}; remove or repair the file, --check-data lists every bad one") from error


def open_folder(data: Path, judged: str = "val") -> tuple[PlanFiles, PlanFiles]:
    """A folder's training plans and those of the split to validate on; only names are read.

    Raises:
        UsageError: there are none; names what is missing and the remedy.
    """
    found = {split: PlanFiles(data / split) for split in SPLITS}
    for split in ("train", judged):
        if not len(found[split]):
            raise UsageError(
                f"--data {data}: no .npy files in {split}/ (expected the folders train/, val/ and test/ with one file a"
                f" plan, as GSDiff stores them); name such a folder, or leave --data out to train on synthetic plans"
            )
    return found["train"], found[judged]


def bad_files(data: Path) -> tuple[dict[str, int], tuple[str, ...]]:
    """Read every plan of a folder: the number in each split, and a sentence for each file that is not a plan."""
    found = {split: PlanFiles(data / split).paths for split in SPLITS}
    problems = [
        f"--data {data}: {split}/ has no .npy files; put plans there" for split in SPLITS[:2] if not found[split]
    ]
    counts = {f"{split} plans": 0 for split in SPLITS}
    for split, path in ((split, path) for split, paths in found.items() for path in paths):
        try:
            read_plan(path)
            counts[f"{split} plans"] += 1
        except BadPlan as error:
            problems.append(f"{path}: {error}; remove or repair it")
    return counts, tuple(problems)


def read_plan(path: Path) -> Plan:
    """Read one plan without letting its pickle run code.

    Raises:
        BadPlan: it cannot be read, or a key is missing or wrong.
    """
    try:
        record = _unpacked(path.read_bytes())
    except Exception as error:  # a hostile or broken pickle can raise anything
        raise BadPlan(f"cannot be read ({error})") from error
    if not isinstance(record, Mapping):
        raise BadPlan(f"holds a {type(record).__name__} instead of a dict with the keys {', '.join(SHAPES)}")
    return plan_of_record(record)


def plan_of_record(record: Mapping[Any, Any]) -> Plan:
    """The plan that a dict of these keys and shapes describes.

    Raises:
        BadPlan: a key is missing or wrong.
    """
    return _plan({name: _array(record, name) for name in SHAPES})


def stacked(plans: Plans, numbers: Sequence[int]) -> tuple[Floats, Bits, Bits]:
    """Corners (n, CORNERS, FEATURES), real (n, CORNERS) and walls (n, CORNERS, CORNERS) of these plans."""
    found = [plans[number] for number in numbers]
    return (
        np.stack([plan.corners for plan in found]),
        np.stack([plan.real for plan in found]),
        np.stack([plan.walls for plan in found]),
    )


def rooms_of_labels(counts: npt.NDArray[Any]) -> Floats:
    """Counts of the 14 labels, shape (n, 14), as bits of ROOMS, shape (n, 7)."""
    return np.stack([counts[:, labels].sum(axis=1) > 0 for labels in _LABELS_OF_ROOM], axis=1).astype(np.float32)


def _unpacked(content: bytes) -> Any:
    """The object that ``numpy.save`` wrote."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if not dtype.hasobject:
        raise ValueError(f"a plain array of type {dtype} and shape {shape}")
    array = load_restricted(file.read())
    return array.item()


def _array(record: Mapping[Any, Any], name: str) -> npt.NDArray[Any]:
    value = record.get(name)
    if value is None:
        raise BadPlan(f"the key {name} is missing")
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "buif":
        raise BadPlan(f"{name} is not an array of numbers")
    if value.shape != SHAPES[name]:
        raise BadPlan(f"{name} has the shape {list(value.shape)} instead of {list(SHAPES[name])}")
    if not np.isfinite(value).all():
        raise BadPlan(f"{name} holds NaN or infinity")
    return np.asarray(value)


def _plan(arrays: Mapping[str, npt.NDArray[Any]]) -> Plan:
    corners, matrix, mask, edges = arrays.values()
    real = _bits(mask, "padding_mask").reshape(CORNERS)
    if real.sum() < _FEWEST_CORNERS:
        raise BadPlan(f"padding_mask leaves {real.sum()} corners, a plan needs {_FEWEST_CORNERS}")
    together = _bits(matrix, "global_matrix_np_padding") & real & real[:, None]
    joined = _bits(edges, "edges").reshape(CORNERS, CORNERS)
    if (joined & ~(real & real[:, None])).any():
        raise BadPlan("edges join a corner that padding_mask calls padding")
    walls = (joined | joined.T) & (together | together.T)
    np.fill_diagonal(walls, val=False)
    return Plan(_features(corners, real), real, walls)


def _features(stored: npt.NDArray[Any], real: Bits) -> Floats:
    furthest = np.abs(stored[real, :2]).max()
    if furthest > _FURTHEST:
        raise BadPlan(f"coordinates reach {furthest:.4g}, they must be (pixel - 128) / 128, within [-1, 1]")
    places = np.clip(stored[:, :2], -1, 1).astype(np.float32)
    return np.concatenate([places, rooms_of_labels(stored[:, 2:])], axis=1) * real[:, None].astype(np.float32)


def _bits(values: npt.NDArray[Any], name: str) -> Bits:
    if not np.isin(values, (0, 1)).all():
        raise BadPlan(f"{name} holds other values than 0 and 1")
    return values.astype(bool)
