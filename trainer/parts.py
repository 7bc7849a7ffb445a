"""A checkpoint that several ranks write at once: a folder with the rows of each rank and a manifest.

``step-00001234.pt/rows-0-of-2`` and so on hold each rank's part of every divided tensor; ``manifest`` holds the rest of
the state and where the rows belong. Reading gives the state that one process would have written, whatever the number of
ranks was. The folder gets its name once all of it is on the disk: see :mod:`trainer.saving`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mpstui.wire.checkpoints import MANIFEST, rows_name

from . import tensorfile

Place = list[str | int]
"""The keys and indices that lead to a value in a state."""


@dataclass(frozen=True, eq=False)
class Rows:
    """This rank's part of a tensor that is divided over the ranks by rows."""

    weight: nn.Parameter
    """The weight whose division it shares."""
    held: torch.Tensor

    @property
    def whole_shape(self) -> list[int]:
        """The shape of all rows together."""
        return list(self.weight.shape)


@dataclass(frozen=True)
class Split:
    """A state without its divided tensors, and this rank's rows of them."""

    common: dict[str, Any]
    divided: list[tuple[Place, list[int]]]
    """Where each tensor belongs, and its whole shape; the same on every rank."""
    rows: list[torch.Tensor]


def split(state: Mapping[str, Any]) -> Split:
    """Take the divided tensors out of a state; the rest stays as it is."""
    found = Split({}, [], [])

    def without(value: Any, path: Place) -> Any:
        if isinstance(value, Rows):
            found.divided.append((path, value.whole_shape))
            found.rows.append(value.held.detach().to("cpu", copy=True))  # a view would be saved with its whole storage
            return None
        if isinstance(value, Mapping):
            return {key: without(item, [*path, key]) for key, item in value.items()}
        if isinstance(value, list):
            return [without(item, [*path, index]) for index, item in enumerate(value)]
        return value

    found.common.update(without(state, []))
    return found


def write_rows(folder: Path, rank: int, of: int, save: str, found: Split) -> None:
    """Write this rank's part. Raises OSError.

    Args:
        save: identifies this save; every part has it.
    """
    part = {"save": save, "rows": found.rows, "rng": found.common["rng"]}
    tensorfile.write(folder / rows_name(rank, of), part)


def manifest(found: Split, of: int, save: str) -> dict[str, Any]:
    """Return what the leading rank writes in addition to the rows."""
    return {**found.common, "parts": {"save": save, "of": of, "divided": [list(one) for one in found.divided]}}


def is_folder(path: Path) -> bool:
    """Whether a path is such a checkpoint."""
    return (path / MANIFEST).is_file()


def joined(folder: Path) -> dict[str, Any]:
    """The whole state; ``rng_of_ranks`` in it has the states of the generators of every rank that wrote it.

    Raises:
        ValueError, OSError and others: it is incomplete, or not ours.
    """
    state = tensorfile.read(folder / MANIFEST)
    told = state.pop("parts")
    parts = [_part(folder / rows_name(rank, told["of"]), told) for rank in range(told["of"])]
    for number, (path, shape) in enumerate(told["divided"]):
        whole = torch.cat([held for part in parts if (held := part["rows"][number]).numel()] or [torch.empty(shape)])
        if list(whole.shape) != shape:
            raise ValueError(f"its {'.'.join(map(str, path))} has rows for {list(whole.shape)}, not {shape}")
        _put(state, path, whole)
    return {**state, "rng_of_ranks": [part["rng"] for part in parts]}


def _part(path: Path, told: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = tensorfile.read(path, mapped=True)
    if found["save"] != told["save"] or len(found["rows"]) != len(told["divided"]):
        raise ValueError(f"{path.name} is of another save")
    return found


def _put(state: Any, path: Sequence[str | int], value: torch.Tensor) -> None:
    *way, last = path
    for key in way:
        state = state[key]
    state[last] = value
