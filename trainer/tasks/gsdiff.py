"""Structural graph diffusion for floor plans (after GSDiff): corners from noise, then walls between corners."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ..data import plans as files
from ..data import synthetic_plans
from ..data.plan_tensors import symmetric
from ..data.plans import Plans
from ..device import Device
from ..distributed import Ranks
from ..inspection import Inspection
from ..optimizers import with_weight_decay_on_matrices
from ..options import positive, whole
from ..order import mixed
from . import Batch, Defaults, Loss, Task
from ._gsdiff_stages import RULES, CornerStage, Drawings, Stage, WallStage, slots_of

_SYNTHETIC = (4000, 500)


class Gsdiff(Task):
    """Stage 1 denoises the corners of a plan, stage 2 predicts the walls between them."""

    HELP: ClassVar[str] = "two-stage structural graph diffusion of floor plans, from GSDiff files or synthetic plans"
    JUDGED: ClassVar[Mapping[str, Any]] = {"sample_every": 0}
    DEFAULTS: Defaults = Defaults(epochs=100, batch_size=64, on_device={"cuda": (256, 1)}, lr=3e-4, clip=1.0)

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Data, stage, model and drawings."""
        parser.add_argument(
            "--data", type=Path, metavar="DIR", help="folder with train/ and val/; without it: synthetic"
        )
        parser.add_argument(
            "--rules",
            choices=tuple(RULES),
            default="halved",
            help="generated plans: rectangles cut in two (default), or corridors with rooms, L-shaped and bevelled",
        )
        parser.add_argument(
            "--validate-on", choices=("val", "test"), default="val", help="which plans of the folder (default val)"
        )
        parser.add_argument(
            "--stage",
            type=int,
            choices=(1, 2),
            default=1,
            help="1: corners (default), 2: walls (4 samples a step, 8 on cuda)",
        )
        parser.add_argument(
            "--stage1-checkpoint",
            metavar="PATH",
            help="for stage 2: draw plans from corners of this stage 1 (a file, or the newest of a folder)",
        )
        parser.add_argument("--width", type=positive, default=256, metavar="N", help="of the model (default 256)")
        parser.add_argument("--layers", type=positive, default=12, metavar="N", help="of the model (default 12)")
        parser.add_argument("--heads", type=positive, default=8, metavar="N", help="of each layer (default 8)")
        parser.add_argument(
            "--slots",
            type=positive,
            metavar="N",
            help="most corners of a plan, stage 1 (default 53; generated: 16 or 32)",
        )
        parser.add_argument("--limit", type=positive, metavar="N", help="train on the first N plans only")
        parser.add_argument(
            "--sample-every", type=whole, default=5, metavar="N", help="draw plans at every Nth validation, 0: never"
        )
        parser.add_argument("--samples", type=positive, default=16, metavar="N", help="plans to draw (default 16)")
        parser.add_argument(
            "--sample-steps", type=positive, default=100, metavar="N", help="of the 1,000 denoising steps (default 100)"
        )
        parser.add_argument("--shuffle-labels", action="store_true", help="a control: nothing can be learnt from this")

    def __init__(self, args: argparse.Namespace) -> None:
        """List or generate the plans."""
        if args.stage == 2:  # as its authors train it: few plans a step, since each has many walls
            self.DEFAULTS = replace(self.DEFAULTS, batch_size=4, on_device={"cuda": (8, 1)})
        self._train, self._validation, name = _opened(args)
        self.train_size = min(len(self._train), args.limit or len(self._train))
        self.synthetic = args.data is None
        self.data = f"{name}: {self.train_size:,} training, {len(self._validation):,} validation plans"
        leads = Ranks.from_environment(os.environ).leads
        folder = _drawings_folder(args, os.environ)
        drawings = Drawings(folder, args.sample_every, args.samples, args.sample_steps, writes=leads)
        make = CornerStage if args.stage == 1 else WallStage
        self._stage: Stage = make(args, drawings, args.seed or 0)
        self.signature: Mapping[str, Any] = {
            "stage": args.stage, "width": args.width, "layers": args.layers, "heads": args.heads,
            **({"slots": slots_of(args)} if args.stage == 1 else {}),
        }  # fmt: skip

    @staticmethod
    def inspect(args: argparse.Namespace) -> Inspection:
        """Count the plans of each split and name the files that are not plans."""
        if args.data:
            return Inspection(str(args.data), *files.bad_files(args.data))
        train, validation, name = _opened(args)
        return Inspection(name, {"train plans": len(train), "val plans": len(validation)})

    def build_model(self) -> nn.Module:
        """The network of the stage."""
        return self._stage.build_model()

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Matrices decay, norms and biases do not."""
        return with_weight_decay_on_matrices(model)

    def to_device(self, device: Device) -> None:
        """Files are read as needed; only the other stage's model moves."""
        self._stage.to_device(device)

    def batch(self, samples: torch.Tensor, seed: int) -> Batch:
        """Plans, turned and mirrored, with the stage's own noise."""
        found = files.stacked(self._train, samples.tolist())
        corners, real, walls = (torch.from_numpy(array) for array in found)
        generator = torch.Generator().manual_seed(seed)
        return self._stage.batch(symmetric(corners, generator), real, walls, generator)

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """The stage's loss."""
        return self._stage.loss(model, batch)

    def evaluate(self, model: nn.Module, device: Device) -> Iterator[dict[str, float] | None]:
        """The stage's measures over every validation plan, and drawn plans now and then."""
        yield from self._stage.evaluate(model, device, self._validation)


def _opened(args: argparse.Namespace) -> tuple[Plans, Plans, str]:
    """Training and validation plans, and their name."""
    train: Plans
    validation: Plans
    if args.data:
        train, validation = files.open_folder(args.data, args.validate_on)
        name = str(args.data) + (", validated on test/" if args.validate_on == "test" else "")
    else:
        seed, count = args.seed or 0, min(args.limit or _SYNTHETIC[0], _SYNTHETIC[0])
        generated = RULES[args.rules].generated
        train, validation = generated(seed, 1, count), generated(seed, 2, min(count, _SYNTHETIC[1]))
        name = f"synthetic floor plans{', corridors' if args.rules == 'corridors' else ''}, seed {seed}"
    return (
        (_shuffled(train, args), validation, f"{name}, shuffled") if args.shuffle_labels else (train, validation, name)
    )


def _shuffled(plans: Plans, args: argparse.Namespace) -> Plans:
    """Shuffle the plans so that the stage can learn nothing from them; reads all of them."""
    random = np.random.default_rng(mixed(args.seed or 0, 0x5AFF))
    kept = tuple(plans[number] for number in range(len(plans)))
    if args.stage == 1:
        return synthetic_plans.with_corners_shuffled(kept, random)
    return tuple(synthetic_plans.with_walls_shuffled(plan, random) for plan in kept)


def _drawings_folder(args: argparse.Namespace, environ: Mapping[str, str]) -> Path:
    """Where drawings go: beside the checkpoints of a launched run, else below the checkpoint folder."""
    run = environ.get("MPSTUI_RUN_DIR")
    return Path(run) / "samples" if run and not args.out else (args.out or Path("checkpoints") / "gsdiff") / "samples"
