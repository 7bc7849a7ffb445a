"""``python -m trainer export CHECKPOINT FILE``: a checkpoint's weights as safetensors, for other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import save_file

from .errors import TrainingError
from .evaluate import MakeParser, restore


def export(path: Path, target: Path, arguments: Sequence[str], make_parser: MakeParser) -> str:
    """Write the weights of a checkpoint's model, whole or not at all; returns a sentence.

    The file's metadata holds task, step and signature (JSON), which is what building the model again needs.

    Raises:
        UsageError: the checkpoint does not load.
        TrainingError: the file cannot be written.
    """
    found = restore(path, arguments, make_parser, "export")
    weights = {name: tensor.contiguous().clone() for name, tensor in found.model.state_dict().items()}
    state = found.loaded.state
    metadata = {
        "format": "pt",
        "task": str(state["task"]),
        "step": str(state["progress"]["step"]),
        "signature": json.dumps(dict(state["signature"])),
    }
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        save_file(weights, temporary, metadata)
        temporary.replace(target)
    except OSError as error:
        raise TrainingError(f"{target} could not be written ({error}); name another file") from error
    finally:
        temporary.unlink(missing_ok=True)
    return f"{target}: {len(weights)} tensors, {sum(tensor.numel() for tensor in weights.values()):,} numbers"
