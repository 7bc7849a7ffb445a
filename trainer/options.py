"""The options that every task shares."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path

from . import device
from .errors import UsageError
from .network import PRECISIONS
from .tasks import Defaults

OPTIMIZERS = ("sgd", "adam", "adamw", "radam", "lion", "muon")
_WITH_MOMENTUM = ("sgd", "muon")
DEFAULT_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the loop is asked to do. ``None`` in batch_size, accumulate and seed: the checkpoint's, else the default."""

    epochs: int
    batch_size: int | None
    """Samples of one micro-batch on one process."""
    accumulate: int | None
    """Micro-batches of one optimizer step."""
    drop_last: bool | None
    """Leave out a smaller last step of an epoch; None: what the task does."""
    seed: int | None
    optimizer: str
    lr: float | None
    weight_decay: float | None
    momentum: float | None
    warmup_epochs: float
    schedule: str
    clip: float
    """Largest gradient norm; 0: no clipping."""
    ema: float
    """Decay of the averaged weights; 0: none."""
    device: str
    precision: str
    compile: str
    replay: str
    deterministic: bool
    """Use only algorithms that give the same result every time."""
    shard: bool
    """Divide weights, gradients and optimizer state over the processes."""
    matmul_precision: str
    workers: int
    memory_fraction: float | None
    empty_cache_every: int
    report_every: int
    """Steps between two reports; 0: about one a second."""
    eval_every: int
    """Epochs between two validations."""
    save_every: int
    """Epochs between two checkpoints; 0: only at the end and when asked."""
    save_steps: int
    """Steps between two checkpoints, besides those; 0: none."""
    keep: int
    out: Path | None
    resume: str | None
    init_from: Path | None
    stop_after: int
    """End as if stopped after this many steps; 0: never."""


def add_arguments(parser: argparse.ArgumentParser, defaults: Defaults) -> None:
    """Declare the shared options with a task's defaults."""
    _add_training(parser.add_argument_group("training"), defaults)
    _add_optimizer(parser.add_argument_group("optimizer"), defaults)
    _add_device(parser.add_argument_group("device"))
    _add_output(parser.add_argument_group("reports and checkpoints"))


def from_namespace(args: argparse.Namespace) -> Options:
    """The shared options from a parsed command line.

    Raises:
        UsageError: values that cannot go together.
    """
    if args.keep < 1:
        raise UsageError("--keep must be at least 1: the newest checkpoint is what a restart needs")
    if args.momentum is not None and args.optimizer not in _WITH_MOMENTUM:
        raise UsageError(f"--momentum is for sgd and muon; {args.optimizer} has none: leave it out")
    if args.shard and args.optimizer == "muon":
        raise UsageError("--shard divides every weight matrix by rows, muon needs whole ones; use another --optimizer")
    return Options(**{item.name: getattr(args, item.name) for item in fields(Options)})


def _add_training(group: argparse._ArgumentGroup, defaults: Defaults) -> None:
    group.add_argument("--epochs", type=positive, default=defaults.epochs, metavar="N")
    group.add_argument(
        "--batch-size", type=positive, metavar="N", help=f"samples a micro-batch ({_usual(defaults, 0)})"
    )
    group.add_argument(
        "--accumulate", type=positive, metavar="K", help=f"micro-batches an optimizer step ({_usual(defaults, 1)})"
    )
    group.add_argument(
        "--drop-last",
        action=argparse.BooleanOptionalAction,
        help=f"leave out a smaller last step of an epoch (default: {'yes' if defaults.drop_last else 'no'})",
    )
    group.add_argument("--seed", type=whole, metavar="N", help=f"default {DEFAULT_SEED}")
    group.add_argument("--workers", type=whole, default=0, metavar="N", help="data loading processes (default 0)")
    group.add_argument(
        "--stop-after", type=whole, default=0, metavar="STEPS", help="save and end after this many steps"
    )


def _usual(defaults: Defaults, place: int) -> str:
    """The default of the batch size (place 0) or the accumulation (1) in words, for every device."""
    others = "".join(f", {device} {sizes[place]}" for device, sizes in defaults.on_device.items())
    return f"default {defaults.sizes('')[place]}{others}"


def _add_optimizer(group: argparse._ArgumentGroup, defaults: Defaults) -> None:
    group.add_argument("--optimizer", choices=OPTIMIZERS, default=defaults.optimizer)
    own = f"{defaults.lr:g} with {defaults.optimizer}, else " if defaults.lr else ""
    group.add_argument("--lr", type=positive_number, help=f"peak learning rate (default: {own}the optimizer's)")
    group.add_argument("--weight-decay", type=number, metavar="X", help="default: the optimizer's")
    group.add_argument("--momentum", type=fraction, metavar="X", help="of sgd or muon; default: the optimizer's")
    group.add_argument("--warmup-epochs", type=number, default=defaults.warmup_epochs, metavar="X")
    group.add_argument("--schedule", choices=("cosine", "linear", "constant"), default="cosine")
    group.add_argument(
        "--clip", type=number, default=defaults.clip, metavar="NORM", help="largest gradient norm, 0: off"
    )
    group.add_argument("--ema", type=fraction, default=0.0, metavar="DECAY", help="average the weights, e.g. 0.999")


def _add_device(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--device", choices=device.NAMES, default="auto")
    group.add_argument("--precision", choices=PRECISIONS, default="auto")
    group.add_argument("--compile", choices=("auto", "on", "off"), default="auto")
    group.add_argument(
        "--replay",
        choices=("auto", "off"),
        default="auto",
        help="record a step's kernels and issue them as one (CUDA, not fp16); the numbers stay the same",
    )
    group.add_argument(
        "--deterministic",
        action="store_true",
        help="only algorithms that give the same result every time; an operation that has none ends the training",
    )
    group.add_argument(
        "--shard", action="store_true", help="divide weights and optimizer state over torchrun's processes (FSDP2)"
    )
    group.add_argument("--matmul-precision", choices=("highest", "high", "medium"), default="high")
    group.add_argument(
        "--memory-fraction", type=positive_number, metavar="X", help="cap on the device's recommended memory, e.g. 0.8"
    )
    group.add_argument(
        "--empty-cache-every", type=whole, default=0, metavar="STEPS", help="return cached memory, 0: never"
    )


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--report-every", type=whole, default=0, metavar="STEPS", help="0: about once a second (default)"
    )
    group.add_argument("--eval-every", type=positive, default=1, metavar="EPOCHS")
    group.add_argument(
        "--save-every", type=whole, default=1, metavar="EPOCHS", help="0: at the end, a new best, and when asked"
    )
    group.add_argument("--save-steps", type=whole, default=0, metavar="STEPS", help="checkpoints inside an epoch too")
    group.add_argument("--keep", type=whole, default=3, metavar="K", help="newest checkpoints to keep (best.pt stays)")
    group.add_argument(
        "--out", type=Path, metavar="DIR", help="checkpoint folder (default: that of the run, else ./checkpoints/TASK)"
    )
    group.add_argument(
        "--init-from", type=Path, metavar="FILE", help="begin with the weights in a file, of this or another program"
    )
    group.add_argument("--resume", metavar="PATH", help="a checkpoint, a folder of them, or `latest` (in --out)")


def positive(text: str) -> int:
    """An integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def whole(text: str) -> int:
    """An integer of at least 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return value


def number(text: str) -> float:
    """A finite number of at least 0."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 0")
    return value


def positive_number(text: str) -> float:
    """A finite number above 0."""
    if number(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return float(text)


def fraction(text: str) -> float:
    """A number from 0 to below 1."""
    if number(text) >= 1:
        raise argparse.ArgumentTypeError(f"{text} is not below 1")
    return float(text)
