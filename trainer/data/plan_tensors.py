"""Floor plans as the tensors that go into and come out of the models."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .plans import CORNERS, FEATURES, PIXELS, Plan, Plans, stacked

CHANNELS = FEATURES + 1
"""Channels of a plan in diffusion: x, y, ±1 for each kind of room, ±1 for padding."""
_CHUNK = 128
_ROW = 4 / PIXELS
_FURTHER_THAN_ANY_ROW = 4.0
"""Positions run from -1 to 1: further down counts more than further right."""
_LENGTH_STEP = 8
Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def chunks(plans: Plans) -> Iterator[Tensors]:
    """All plans in order, in batches: corners, real, walls."""
    for start in range(0, len(plans), _CHUNK):
        corners, real, walls = stacked(plans, range(start, min(start + _CHUNK, len(plans))))
        yield torch.from_numpy(corners), torch.from_numpy(real), torch.from_numpy(walls)


def symmetric(corners: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Randomly mirror and turn every plan's corners: eight symmetries, none of which changes its walls."""
    count = len(corners)
    mirrored = 1.0 - 2.0 * torch.randint(0, 2, (count, 1, 2), generator=generator)
    places = corners[..., :2] * mirrored
    turned = torch.randint(0, 2, (count, 1, 1), generator=generator, dtype=torch.bool)
    places = torch.where(turned, places.flip(-1), places)
    return torch.cat([places, corners[..., 2:]], dim=-1)


def in_reading_order(corners: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """The source of each slot that puts corners row by row and from left to right, then the padding.

    Corners of one row may differ by a few pixels. Returns (batch, slots), for :func:`rearranged`.
    """
    rows = (corners[..., 1] / _ROW).round()
    places = rows * _FURTHER_THAN_ANY_ROW + corners[..., 0]
    return places.masked_fill(~real, float("inf")).argsort(dim=1, stable=True)


def rearranged(slots: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Slots (batch, slots) or (batch, slots, channels) in another order."""
    index = order if slots.ndim == order.ndim else order[..., None].expand(-1, -1, slots.shape[-1])
    return slots.gather(1, index)


def trimmed(corners: torch.Tensor, real: torch.Tensor, walls: torch.Tensor) -> Tensors:
    """Drop trailing slots that no plan uses; the few possible lengths keep the number of kernels small."""
    used = int(real.any(dim=0).nonzero().max()) + 1
    length = min(CORNERS, -(-used // _LENGTH_STEP) * _LENGTH_STEP)
    return corners[:, :length], real[:, :length], walls[:, :length, :length]


def channels_of(corners: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Corners (batch, CORNERS, FEATURES) in the form for diffusion (batch, CORNERS, CHANNELS)."""
    padding = torch.where(real, -1.0, 1.0)[..., None]
    return torch.cat([corners[..., :2], corners[..., 2:] * 2 - 1, padding], dim=-1)


def with_all_slots(clean: torch.Tensor) -> torch.Tensor:
    """A result with fewer slots as (batch, CORNERS, CHANNELS): the others are padding."""
    whole = torch.full((len(clean), CORNERS, CHANNELS), -1.0)
    whole[..., :2], whole[..., -1] = 0.0, 1.0
    whole[:, : clean.shape[1]] = clean
    return whole


def corners_of(clean: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Corners and real from a denoised plan: positions within [-1, 1], bits and padding decided."""
    real = clean[..., -1] < 0
    corners = torch.cat([clean[..., :2].clamp(-1, 1), (clean[..., 2:-1] > 0).float()], dim=-1)
    return corners * real[..., None], real


def plans_of(clean: torch.Tensor, walls: torch.Tensor) -> list[Plan]:
    """Plans from denoised corners and whether each pair has a wall, on the CPU."""
    corners, real = corners_of(clean)
    apart = ~torch.eye(CORNERS, dtype=torch.bool)
    joined = walls.bool() & real[:, :, None] & real[:, None] & apart
    return [
        Plan(places.numpy(), here.numpy(), pairs.numpy())
        for places, here, pairs in zip(corners, real, joined, strict=True)
    ]
