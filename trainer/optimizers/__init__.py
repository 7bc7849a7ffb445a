"""Optimizers by name: torch's own where torch (2.6) has them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import SGD, Adam, AdamW, Optimizer

from .eager import without_compiler
from .lion import Lion
from .muon import Muon
from .radam import RAdam


@dataclass(frozen=True)
class Recipe:
    """An optimizer with values that are known to work."""

    lr: float
    """Peak learning rate for steps of ``REFERENCE_STEP_SIZE`` samples."""
    lr_exponent: float
    """How ``lr`` grows with the step size: 1 for SGD (Goyal et al., 2017), 1/2 if adaptive (Malladi et al., 2022)."""
    weight_decay: float
    make: type[Optimizer]
    settings: Mapping[str, Any]
    capturable: bool = False
    """Whether torch needs ``capturable`` to keep counters on the device, so that a step can be recorded."""


REFERENCE_STEP_SIZE = 128


RECIPES: dict[str, Recipe] = {
    "sgd": Recipe(0.1, 1.0, 5e-4, SGD, {"momentum": 0.9, "nesterov": True}),
    "adam": Recipe(1e-3, 0.5, 0.0, Adam, {}, capturable=True),
    "adamw": Recipe(1e-3, 0.5, 0.05, AdamW, {}, capturable=True),
    "radam": Recipe(1e-3, 0.5, 1e-4, RAdam, {}),
    "lion": Recipe(2e-4, 0.5, 0.2, Lion, {}),
    "muon": Recipe(0.02, 0.5, 0.01, Muon, {}),
}


def default_lr(name: str, step_size: int, reference: float | None = None) -> float:
    """The default peak learning rate of an optimizer for steps of ``step_size`` samples.

    Args:
        reference: a rate known to work for steps of ``REFERENCE_STEP_SIZE`` samples; None: the recipe's.
    """
    recipe = RECIPES[name]
    growth = max(1.0, step_size / REFERENCE_STEP_SIZE)
    return (recipe.lr if reference is None else reference) * math.pow(growth, recipe.lr_exponent)


def build(
    name: str,
    groups: Iterable[dict[str, Any]],
    *,
    lr: float,
    weight_decay: float | None,
    momentum: float | None = None,
    fused: bool,
    recorded: bool = False,
) -> Optimizer:
    """Make an optimizer over a task's parameter groups; a group's ``lr_scale`` multiplies its learning rate.

    Args:
        recorded: steps will be recorded on the device, so learning rates and counters are tensors there.
    """
    recipe = RECIPES[name]
    settings = {**recipe.settings, **({"fused": True} if fused else {})}
    if recorded and recipe.capturable:
        settings["capturable"] = True
    if momentum is not None:
        settings["momentum"] = momentum
    decay = recipe.weight_decay if weight_decay is None else weight_decay
    ready = [_ready(group, lr, recorded=recorded) for group in groups]
    return without_compiler(recipe.make)(ready, lr=lr, weight_decay=decay, **settings)


def set_learning_rate(optimizer: Optimizer, factor: float) -> float:
    """Set every group's learning rate to its peak times ``factor``; returns that of the first group."""
    for group in optimizer.param_groups:
        now = group["peak_lr"] * factor
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(now)
        else:
            group["lr"] = now
    return float(optimizer.param_groups[0]["peak_lr"] * factor)


def load_state(optimizer: Optimizer, state: Mapping[str, Any]) -> None:
    """Load moments from a checkpoint; hyperparameters and kernels stay those of this run and this device.

    A checkpoint from a GPU says ``fused``: elsewhere that would fail, or put step counters in the wrong place. Moments
    get the memory layout of their weight, which fused kernels rely on: convolutions are channels-last only on some
    devices.

    Raises:
        ValueError: the checkpoint's groups have other sizes.
    """
    current = optimizer.state_dict()["param_groups"]
    saved = state["param_groups"]
    if [len(group["params"]) for group in saved] != [len(group["params"]) for group in current]:
        raise ValueError("it was written by an optimizer with other parameter groups")
    groups = [{**mine, "params": theirs["params"]} for mine, theirs in zip(current, saved, strict=True)]
    optimizer.load_state_dict({"state": state["state"], "param_groups": groups})
    for weight, kept in optimizer.state.items():
        kept.update({name: _laid_out(value, weight) for name, value in kept.items()})


def with_weight_decay_on_matrices(model: torch.nn.Module) -> list[dict[str, Any]]:
    """The usual two groups: weights of two or more dimensions decay and suit Muon, biases and norms do not."""
    matrices = [weight for weight in model.parameters() if weight.requires_grad and weight.ndim >= 2]
    others = [weight for weight in model.parameters() if weight.requires_grad and weight.ndim < 2]
    return [{"params": matrices, "muon": True}, {"params": others, "weight_decay": 0.0}]


def _laid_out(value: Any, weight: torch.Tensor) -> Any:
    """A moment in the memory layout of its weight; anything else unchanged."""
    if not isinstance(value, torch.Tensor) or value.shape != weight.shape or value.stride() == weight.stride():
        return value
    return torch.empty_like(weight, dtype=value.dtype).copy_(value)


def _ready(group: dict[str, Any], peak: float, *, recorded: bool) -> dict[str, Any]:
    own = peak * float(group.get("lr_scale", 1.0))
    lr = torch.full((), own, device=group["params"][0].device) if recorded and group["params"] else own
    return {**group, "lr": lr, "peak_lr": own}
