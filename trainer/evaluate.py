"""``python -m trainer evaluate CHECKPOINT [options]``: how good a checkpoint is on the task's validation data."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from . import checkpoint, device, options, rng, tasks
from .checkpoint import Loaded
from .errors import UsageError
from .network import resolve_precision
from .tasks import Task

MakeParser = Callable[[str, str], argparse.ArgumentParser]
"""Takes a program name for usage lines, and a description."""


@dataclass(frozen=True)
class Restored:
    """A task with the model of a checkpoint."""

    loaded: Loaded
    task: Task
    model: nn.Module
    args: argparse.Namespace


def restore(path: Path, arguments: Sequence[str], make_parser: MakeParser, name: str) -> Restored:
    """Build a checkpoint's task and model, with the averaged weights if it has them.

    Model options that the checkpoint knows (those of its signature) need not be given again; the location of the data
    must be.

    Raises:
        UsageError: the checkpoint does not load, or is of another model than the options ask for.
    """
    loaded = find_checkpoint(path)
    kind, signature = str(loaded.state["task"]), dict(loaded.state["signature"])
    args = _parsed(kind, arguments, signature, make_parser(f"{name} {kind}", f"{name} a checkpoint of {kind}"))
    args.out = args.out or loaded.path.parent  # the task writes next to the checkpoint
    args.seed = int(loaded.state["order"]["seed"]) if args.seed is None else args.seed
    rng.seed_everything(args.seed)
    task = tasks.find(kind)(args)
    trained_on = loaded.state.get("data")  # checkpoints from before 2026-11-22 do not say
    if task.synthetic and trained_on and not trained_on["synthetic"]:
        raise UsageError(f"{path} was trained on {trained_on['name']}; say where that data is, as when it was trained")
    if dict(task.signature) != signature:
        raise UsageError(f"{path} is a checkpoint of another model ({signature}); give the options it was trained with")
    model = task.build_model()
    _load_weights(model, loaded.state)
    return Restored(loaded, task, model, args)


def evaluate(path: Path, arguments: Sequence[str], make_parser: MakeParser) -> str:
    """Validate a checkpoint on the task's validation data; one line of JSON.

    Raises:
        UsageError: as :func:`restore`.
    """
    found = restore(path, arguments, make_parser, "evaluate")
    chosen, _ = device.choose(found.args.device)
    model = chosen.place(found.model).eval()
    found.task.to_device(chosen)
    metrics: dict[str, float] = {}
    with torch.no_grad(), resolve_precision(found.args.precision, chosen).autocast():
        for reading in found.task.evaluate(model, chosen):
            metrics = reading or metrics
    step = found.loaded.state["progress"]["step"]
    return json.dumps({"checkpoint": str(found.loaded.path), "step": step, "data": found.task.data, **metrics})


def find_checkpoint(path: Path) -> Loaded:
    """Load a checkpoint, or the newest of a folder."""
    try:
        found = checkpoint.find(
            str(path.absolute()), path, checkpoint.incomplete, lambda text: print(text, file=sys.stderr)
        )
    except UsageError as error:
        reason = str(error).partition(";")[0].removeprefix("--resume ").replace(str(path.absolute()), str(path))
        raise UsageError(f"{reason}; name a checkpoint, or a folder of them") from error
    assert found is not None  # an absolute path is not `latest`
    return Loaded(path if checkpoint.is_checkpoint(path) else path / found.path.name, found.state)


def _parsed(
    kind: str, arguments: Sequence[str], signature: Mapping[str, Any], parser: argparse.ArgumentParser
) -> argparse.Namespace:
    task = tasks.find(kind)
    task.add_arguments(parser)
    options.add_arguments(parser, task.DEFAULTS)
    known = {action.dest for action in parser._actions}
    parser.set_defaults(**task.JUDGED, **{name: value for name, value in signature.items() if name in known})
    return parser.parse_args(list(arguments))


def _load_weights(model: nn.Module, state: Mapping[str, Any]) -> None:
    """Load the weights that validation saw: the averaged ones if there are any."""
    model.load_state_dict(state["model"])
    if state["average"]:
        live = (weight for weight in model.parameters() if weight.requires_grad)
        for weight, kept in zip(live, state["average"]["average"], strict=True):
            weight.data.copy_(kept)
