"""The two stages of structural graph diffusion: their batches, losses and measures."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from .. import checkpoint
from ..data import corridor_plans, plan_drawing, plan_graph, synthetic_plans
from ..data.plan_tensors import (
    CHANNELS,
    channels_of,
    chunks,
    corners_of,
    in_reading_order,
    plans_of,
    rearranged,
    trimmed,
    with_all_slots,
)
from ..data.plans import CORNERS, FEATURES, Plan, Plans, stacked
from ..device import Device
from ..errors import UsageError
from ..models import corner_diffusion as diffusion
from ..models.corner_diffusion import CornerDenoiser
from ..models.wall_prediction import PIXEL, WallPredictor
from ..order import mixed
from . import Batch, Loss
from ._gsdiff_measures import corner_measures, counts, pair_loss, place_errors

RULES = {"halved": synthetic_plans, "corridors": corridor_plans}
"""The generators of plans, by their name in --rules."""
_PADDING_WEIGHT = 0.1
"""The weight of predictions about padding, relative to those about a corner."""
_FIRST_GUESS_WEIGHT = 0.5
_JITTER_PIXELS = 1.0
_FLIPPED_BITS = 0.01
Steps = Iterator[dict[str, float] | None]
Measures = Generator[None, None, dict[str, float]]
"""Yields None now and then; returns the measures at the end."""


@dataclass(frozen=True)
class Drawings:
    """When and where plans are drawn."""

    folder: Path
    every: int
    """Validations between two sheets; 0: none."""
    count: int
    steps: int
    writes: bool = True
    """Whether this process draws; if all ranks validate together, the others only sample with it."""

    def due(self, validations: int) -> bool:
        """Whether the validation with this number (from 1) draws."""
        return self.every > 0 and validations % self.every == 0

    def write(self, plans: list[Plan], validations: int, title: str) -> None:
        """Draw a sheet; on a full disk only the drawing is lost."""
        if not self.writes:
            return
        try:
            written = plan_drawing.write(plans, self.folder / f"plans-{validations:04d}", title)
        except OSError as error:
            print(f"note: the plans could not be drawn ({error}); the training goes on", flush=True)
            return
        print(f"drew {len(plans)} plans: {written[0]}", flush=True)


class Stage(Protocol):
    """What the task leaves to its stage."""

    def build_model(self) -> nn.Module: ...
    def to_device(self, device: Device) -> None: ...
    def batch(
        self, corners: torch.Tensor, real: torch.Tensor, walls: torch.Tensor, generator: torch.Generator
    ) -> Batch: ...
    def loss(self, model: nn.Module, batch: Batch) -> Loss: ...
    def evaluate(self, model: nn.Module, device: Device, plans: Plans) -> Steps: ...


class CornerStage:
    """Stage 1: corners from noise."""

    def __init__(self, args: argparse.Namespace, drawings: Drawings, seed: int) -> None:
        if args.stage1_checkpoint:
            raise UsageError("--stage1-checkpoint is for --stage 2; leave it out of stage 1")
        self._slots = slots_of(args)
        self._shape = (args.width, args.layers, args.heads, self._slots)
        self._drawings = drawings
        self._seed = seed

    def build_model(self) -> nn.Module:
        """The denoiser."""
        return CornerDenoiser(CHANNELS, *self._shape)

    def to_device(self, device: Device) -> None:
        """Nothing moves."""

    def batch(
        self, corners: torch.Tensor, real: torch.Tensor, walls: torch.Tensor, generator: torch.Generator
    ) -> Batch:
        """Clean plans in reading order, noise, and a step for each plan."""
        steps = diffusion.drawn_steps(len(corners), generator)
        order = in_reading_order(corners[..., :2], real)
        if len(real) and int(real.sum(dim=1).max()) > self._slots:
            raise UsageError(f"a plan has more than {self._slots} corners; use --slots {CORNERS} and train again")
        order = order[:, : self._slots]
        real = rearranged(real, order)
        clean = channels_of(rearranged(corners, order), real)
        return {"clean": clean, "real": real, "step": steps, "noise": torch.randn(clean.shape, generator=generator)}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Squared error of the velocity: positions, kinds of rooms and padding count equally."""
        clean, noise, step = batch["clean"], batch["noise"], batch["step"]
        said = model(diffusion.noised(clean, noise, step), step)
        errors = (said - diffusion.velocity(clean, noise, step)).square()
        weights = batch["real"].float().clamp_min(_PADDING_WEIGHT)
        weights = (weights / weights.sum(dim=1, keepdim=True))[..., None]
        place = (errors[..., :2] * weights).sum(dim=1).mean()
        kind = (errors[..., 2:-1] * weights).sum(dim=1).mean()
        padding = errors[..., -1].mean()
        return Loss((place + kind + padding) / 3, {"place_loss": place, "kind_loss": kind, "padding_loss": padding})

    def evaluate(self, model: nn.Module, device: Device, plans: Plans) -> Steps:
        """Loss, position error at one noise level, the share that the rest of the plan removes; drawn corners."""
        totals = torch.zeros(4, device=device.torch)
        for number, (corners, real, walls) in enumerate(chunks(plans)):
            generator = torch.Generator().manual_seed(mixed(self._seed, 0xE7A1, number))
            made = device.put(self.batch(corners, real, walls, generator))
            loss = self.loss(model, made).value * len(corners)
            intact, alone = place_errors(model, made)
            totals += torch.stack([loss, intact, alone, made["real"].sum()])
            yield None
        loss_sum, intact_sum, alone_sum, counted = totals.tolist()
        found = {
            "val_loss": loss_sum / len(plans),
            "val_place_error": (intact_sum / counted / 2) ** 0.5 / PIXEL,
            "val_structure": 1 - intact_sum / alone_sum,
        }
        yield found | (yield from self._drawn(model, device))

    def _drawn(self, model: nn.Module, device: Device) -> Measures:
        """Draw a sheet when one is due, and measure it."""
        number = _counted(model)
        if not self._drawings.due(number):
            return {}
        clean = yield from drawn_corners(model, self._slots, device, self._drawings, mixed(self._seed, number))
        sheet = plans_of(clean, torch.zeros(len(clean), CORNERS, CORNERS))
        self._drawings.write(sheet, number, f"stage 1, validation {number}: corners")
        return corner_measures(clean, sheet)


class WallStage:
    """Stage 2: walls between corners."""

    def __init__(self, args: argparse.Namespace, drawings: Drawings, seed: int) -> None:
        self._shape = (args.width, args.layers, args.heads)
        self._drawings = drawings
        self._seed = seed
        found = _stage1(args.stage1_checkpoint) if args.stage1_checkpoint else None
        self._corner_model: nn.Module | None = found
        self._corner_slots = found.slots if found else 0

    def __getstate__(self) -> dict[str, Any]:
        """The state for loader processes: they draw nothing, and a model on MPS cannot be passed to them."""
        return {**self.__dict__, "_corner_model": None}

    def build_model(self) -> nn.Module:
        """The predictor."""
        return WallPredictor(FEATURES, *self._shape)

    def to_device(self, device: Device) -> None:
        """Move the model of stage 1, which draws the corners."""
        if self._corner_model is not None:
            self._corner_model = device.place(self._corner_model)

    def batch(
        self, corners: torch.Tensor, real: torch.Tensor, walls: torch.Tensor, generator: torch.Generator
    ) -> Batch:
        """Corners as stage 1 would draw them (a pixel off, sometimes with a wrong kind of room), and their walls."""
        corners, real, walls = trimmed(corners, real, walls)
        jitter = torch.randn(*corners.shape[:2], 2, generator=generator).clamp(-3, 3) * (_JITTER_PIXELS * PIXEL)
        flips = torch.rand(*corners.shape[:2], FEATURES - 2, generator=generator) < _FLIPPED_BITS
        bits = torch.where(flips, 1 - corners[..., 2:], corners[..., 2:])
        moved = torch.cat([corners[..., :2] + jitter, bits], dim=-1) * real[..., None]
        return {"corners": moved, "real": real, "walls": walls}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Cross-entropy over pairs of corners, of the last score and, with less weight, of the first."""
        first, last = model(batch["corners"], batch["real"])
        value, guess = (pair_loss(logits, batch) for logits in (last, first))
        return Loss((value + _FIRST_GUESS_WEIGHT * guess) / (1 + _FIRST_GUESS_WEIGHT), {"wall_loss": value})

    def evaluate(self, model: nn.Module, device: Device, plans: Plans) -> Steps:
        """Loss, F1 and accuracy of the walls between the true corners; soundness of drawn plans."""
        totals = torch.zeros(6, device=device.torch)
        for found in chunks(plans):
            made = device.put(dict(zip(("corners", "real", "walls"), trimmed(*found), strict=True)))
            logits = model(made["corners"], made["real"])[1]
            totals += torch.stack([pair_loss(logits, made) * len(logits), *counts(logits, made)])
            yield None
        loss, hits, said, true, right, pairs = totals.tolist()
        measured = {
            "val_loss": loss / len(plans),
            "val_wall_f1": 2 * hits / max(1.0, said + true),
            "val_wall_accuracy": right / max(1.0, pairs),
        }
        yield measured | (yield from self._drawn(model, device, plans))

    def _drawn(self, model: nn.Module, device: Device, plans: Plans) -> Measures:
        """Draw a sheet when one is due, and measure it."""
        number = _counted(model)
        if not self._drawings.due(number):
            return {}
        if self._corner_model is None:
            places, here, _ = stacked(plans, range(min(self._drawings.count, len(plans))))
            clean, source = channels_of(torch.from_numpy(places), torch.from_numpy(here)), "validation plans"
        else:
            seed = mixed(self._seed, number)
            steps = drawn_corners(self._corner_model, self._corner_slots, device, self._drawings, seed)
            clean, source = (yield from steps), "stage 1"
        corners, real = corners_of(clean)
        logits = model(*device.put((corners, real)))[1].cpu()
        sheet = plans_of(clean, logits > 0)
        self._drawings.write(sheet, number, f"stage 2, validation {number}: walls between corners of {source}")
        return corner_measures(clean, sheet) | {f"val_{n}": x for n, x in plan_graph.measures(sheet).items()}


def slots_of(args: argparse.Namespace) -> int:
    """Slots of stage 1: as many as requested, else the most corners that a plan of this data may have."""
    return args.slots or (CORNERS if args.data else RULES[args.rules].MOST_CORNERS)


def drawn_corners(
    model: nn.Module, slots: int, device: Device, drawings: Drawings, seed: int
) -> Generator[None, None, torch.Tensor]:
    """Sample corners by stage 1's model, yielding at every step; returns (count, CORNERS, CHANNELS) on the CPU."""
    generator = torch.Generator().manual_seed(seed)

    def noise() -> torch.Tensor:
        return device.put(torch.randn(drawings.count, slots, CHANNELS, generator=generator))

    found = noise()
    for clean in diffusion.sampled(model, found, drawings.steps, noise):
        found = found if clean is None else clean
        yield None
    return with_all_slots(found.float().cpu())


def _counted(model: nn.Module) -> int:
    """The number of this validation over all restarts, from 1."""
    counter = model.get_buffer("validations")
    counter += 1
    return int(counter)


def _stage1(asked: str) -> CornerDenoiser:
    """The model of a stage 1 checkpoint, with averaged weights if it has them."""

    def misfit(state: Mapping[str, Any]) -> str | None:
        if reason := checkpoint.incomplete(state):
            return reason
        fits = state["task"] == "gsdiff" and state["signature"].get("stage") == 1
        return None if fits else "it is not of gsdiff --stage 1"

    try:
        loaded = checkpoint.find(str(Path(asked)), Path(asked), misfit, lambda text: print(text, flush=True))
    except UsageError as error:
        reason = str(error).partition(";")[0]
        raise UsageError(f"--stage1-checkpoint: {reason}; name a checkpoint of a gsdiff --stage 1 run") from error
    if loaded is None:
        raise UsageError(f"--stage1-checkpoint {asked}: no checkpoint there; name one of a gsdiff --stage 1 run")
    signature = loaded.state["signature"]
    model = CornerDenoiser(CHANNELS, *(signature[name] for name in ("width", "layers", "heads", "slots")))
    model.load_state_dict(loaded.state["model"])
    if loaded.state["average"]:
        with torch.no_grad():
            for live, averaged in zip(model.parameters(), loaded.state["average"]["average"], strict=True):
                live.copy_(averaged)
    return model.eval().requires_grad_(requires_grad=False)
