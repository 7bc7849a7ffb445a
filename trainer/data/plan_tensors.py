"""Floor plans as the tensors that the models take and give."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .plans import CORNERS, FEATURES, Plan, Plans, stacked

CHANNELS = FEATURES + 1
"""Of a plan that is denoised: x, y, ±1 for each kind of room, ±1 for padding."""
_CHUNK = 128
_LENGTH_STEP = 8
Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def chunks(plans: Plans) -> Iterator[Tensors]:
    """All plans in order, some at a time: corners, real, walls."""
    for start in range(0, len(plans), _CHUNK):
        corners, real, walls = stacked(plans, range(start, min(start + _CHUNK, len(plans))))
        yield torch.from_numpy(corners), torch.from_numpy(real), torch.from_numpy(walls)


def symmetric(corners: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Corners of every plan mirrored and turned at random: eight symmetries, none of which changes a plan's walls.

    Slots need no shuffling: the models treat all of them alike.
    """
    count = len(corners)
    mirrored = 1.0 - 2.0 * torch.randint(0, 2, (count, 1, 2), generator=generator)
    places = corners[..., :2] * mirrored
    turned = torch.randint(0, 2, (count, 1, 1), generator=generator, dtype=torch.bool)
    places = torch.where(turned, places.flip(-1), places)
    return torch.cat([places, corners[..., 2:]], dim=-1)


def trimmed(corners: torch.Tensor, real: torch.Tensor, walls: torch.Tensor) -> Tensors:
    """Without the last slots that no plan uses; few different lengths, so that few kernels have to be made."""
    used = int(real.any(dim=0).nonzero().max()) + 1
    length = min(CORNERS, -(-used // _LENGTH_STEP) * _LENGTH_STEP)
    return corners[:, :length], real[:, :length], walls[:, :length, :length]


def channels_of(corners: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Corners (batch, CORNERS, FEATURES) as what is denoised (batch, CORNERS, CHANNELS)."""
    padding = torch.where(real, -1.0, 1.0)[..., None]
    return torch.cat([corners[..., :2], corners[..., 2:] * 2 - 1, padding], dim=-1)


def corners_of(clean: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Corners and real out of what was denoised: places within [-1, 1], bits and padding decided."""
    real = clean[..., -1] < 0
    corners = torch.cat([clean[..., :2].clamp(-1, 1), (clean[..., 2:-1] > 0).float()], dim=-1)
    return corners * real[..., None], real


def plans_of(clean: torch.Tensor, walls: torch.Tensor) -> list[Plan]:
    """Plans out of what was denoised and a wall or none for each pair, on the CPU."""
    corners, real = corners_of(clean)
    apart = ~torch.eye(CORNERS, dtype=torch.bool)
    joined = walls.bool() & real[:, :, None] & real[:, None] & apart
    return [
        Plan(places.numpy(), here.numpy(), pairs.numpy())
        for places, here, pairs in zip(corners, real, joined, strict=True)
    ]
