"""``python -m trainer export CHECKPOINT FILE``: a checkpoint's weights as safetensors, for other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from .errors import TrainingError
from .evaluate import MakeParser, find_checkpoint, restore


def export(path: Path, target: Path, arguments: Sequence[str], make_parser: MakeParser) -> str:
    """Write the weights that validation saw, whole or not at all; returns a sentence.

    The file's metadata holds task, step and signature (JSON), enough to build the model again. Neither the data nor the
    task is needed; ``arguments`` matter only for an old checkpoint, whose averaged weights have no names.

    Raises:
        UsageError: the checkpoint does not load.
        TrainingError: the file cannot be written.
    """
    state = find_checkpoint(path).state
    if names_its_average(state):
        weights = averaged(state)
    else:
        weights = restore(path, arguments, make_parser, "export").model.state_dict()
    metadata = {
        "format": "pt",
        "task": str(state["task"]),
        "step": str(state["progress"]["step"]),
        "signature": json.dumps(dict(state["signature"])),
    }
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        save_file({name: tensor.contiguous().clone() for name, tensor in weights.items()}, temporary, metadata)
        temporary.replace(target)
    except OSError as error:
        raise TrainingError(f"{target} could not be written ({error}); name another file") from error
    finally:
        temporary.unlink(missing_ok=True)
    return f"{target}: {len(weights)} tensors, {sum(tensor.numel() for tensor in weights.values()):,} numbers"


def names_its_average(state: Mapping[str, Any]) -> bool:
    """Whether the weights that validation saw are known without building the model (since 2026-11-22)."""
    return not state["average"] or "names" in state["average"]


def averaged(state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The weights of a checkpoint that names them, the averaged ones where there are any.

    They are copied into the existing tensors, because tied weights have two names and share memory.
    """
    weights: dict[str, torch.Tensor] = dict(state["model"])
    if state["average"]:
        for name, averaged in zip(state["average"]["names"], state["average"]["average"], strict=True):
            weights[name].copy_(averaged)
    return weights
