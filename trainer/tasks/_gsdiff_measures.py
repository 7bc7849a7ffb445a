"""Measures of the two stages of structural graph diffusion: losses of pairs, position errors, drawn plans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..data import plan_graph
from ..data.plan_tensors import in_reading_order, rearranged
from ..data.plans import Plan
from ..models import corner_diffusion as diffusion
from ..models.wall_prediction import PIXEL
from . import Batch

_PROBE_STEP = 150
"""A step at which positions are off by a third of their spread: too much to place a corner alone, but not its plan."""


def corner_measures(clean: torch.Tensor, sheet: list[Plan]) -> dict[str, float]:
    """Measures of drawn corners: their number per plan, and the shares within the sheet and aligned with others."""
    real = clean[..., -1] < 0
    within = (clean[..., :2].abs() <= 1 + PIXEL).all(dim=-1)
    return {
        "val_corners": float(real.sum(dim=1).float().mean()),
        "val_inside": float((within & real).sum() / real.sum().clamp_min(1)),
        "val_aligned": float(np.mean([plan_graph.aligned(plan) for plan in sheet])),
    }


def place_errors(model: nn.Module, made: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Summed squared position errors of real corners, denoised from some noise: in their plan, and among strangers.

    A stranger is another plan's corner in the same slot. A model that has learnt how the corners of a plan belong
    together does worse among strangers; any other does not.
    """
    clean, real = made["clean"], made["real"]
    step = torch.full((len(clean),), _PROBE_STEP, device=clean.device)
    errors = []
    for mixed_up in (False, True):
        target, noise, here = _among_strangers(clean, made["noise"], real) if mixed_up else (clean, made["noise"], real)
        noisy = diffusion.noised(target, noise, step)
        found = diffusion.cleaned(noisy, model(noisy, step), step)
        errors.append(((found - target)[..., :2].square().sum(-1) * here).sum())
    return errors[0], errors[1]


def _among_strangers(*plans: torch.Tensor) -> Sequence[torch.Tensor]:
    """Clean plans, their noise and where corners are, with corners exchanged between plans and sorted again.

    The reading order alone tells where a slot lies between others; exploiting that is not knowledge of plans.
    """
    clean, noise, real = (_rolled(tensor) for tensor in plans)
    order = in_reading_order(clean[..., :2], real)
    return [rearranged(tensor, order) for tensor in (clean, noise, real)]


def _rolled(tensor: torch.Tensor) -> torch.Tensor:
    """Take slot i of each plan from the plan i further on: corners keep their slots, but no two stay together."""
    count, slots = tensor.shape[:2]
    plan = (torch.arange(count, device=tensor.device)[:, None] + torch.arange(slots, device=tensor.device)) % count
    return tensor[plan, torch.arange(slots, device=tensor.device)]


def _pairs(real: torch.Tensor) -> torch.Tensor:
    """Each pair of real corners once: (batch, n, n) bool."""
    return (real[:, :, None] & real[:, None]).triu(diagonal=1)


def pair_loss(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Mean over plans of the mean over their pairs, so that it does not depend on how a batch is split."""
    pairs = _pairs(batch["real"]).float()
    each = F.binary_cross_entropy_with_logits(logits, batch["walls"].float(), reduction="none")
    return ((each * pairs).sum(dim=(1, 2)) / pairs.sum(dim=(1, 2)).clamp_min(1)).mean()


def counts(logits: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, ...]:
    """Counts: walls hit, walls predicted, true walls, pairs right, and pairs."""
    pairs = _pairs(batch["real"])
    said, true = (logits > 0) & pairs, batch["walls"] & pairs
    right = (said == true) & pairs
    return tuple(found.sum() for found in (said & true, said, true, right, pairs))
