"""Stage 1 of structural graph diffusion: all corners of a plan from noise, padding included.

Noise follows the cosine schedule (Nichol and Dhariwal, 2021) over 1,000 steps. The network predicts the velocity
(Salimans and Ho, 2022), bits are ±1 while they are noisy (Chen et al., 2023), and sampling may skip steps (Song et al.,
2021).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import nn

from .graph_attention import GraphLayer, on_half_the_heads, soft_mask, waves

STEPS = 1000
PLACE = slice(0, 2)
PADDING = -1
"""The channel for padding (1) or corner (-1)."""
_EMBEDDING_SPREAD = 0.02
_SAMPLED_POWER = 1.5
_OFFSET = 0.008
_LEAST_SIGNAL = 1e-4


def signal(step: torch.Tensor) -> torch.Tensor:
    """The plan's share of the variance after a step (0 to STEPS), in float32, same shape."""
    angle = (step.float() / STEPS + _OFFSET) / (1 + _OFFSET) * (math.pi / 2)
    start = math.cos(_OFFSET / (1 + _OFFSET) * math.pi / 2) ** 2
    return (angle.cos().square() / start).clamp(_LEAST_SIGNAL, 1 - 1e-6)


def drawn_steps(count: int, generator: torch.Generator) -> torch.Tensor:
    """Steps (count,) to train on, 1 to STEPS: the square of a uniform draw.

    Corners are aligned while positions are off by 2 to 20 pixels, in the first tenth of the steps. Uniform draws would
    spend a tenth of the time there, these spend a third.
    """
    return (torch.rand(count, generator=generator).square() * STEPS).ceil().clamp_min(1).long()


def noised(clean: torch.Tensor, noise: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """Plans (batch, corners, channels), each with the noise of its step (batch,)."""
    share = signal(step)[:, None, None]
    return share.sqrt() * clean + (1 - share).sqrt() * noise


def velocity(clean: torch.Tensor, noise: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """The velocity that the network should predict for :func:`noised` with the same arguments."""
    share = signal(step)[:, None, None]
    return share.sqrt() * noise - (1 - share).sqrt() * clean


def cleaned(noisy: torch.Tensor, velocity: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """The clean plans that a velocity implies."""
    share = signal(step)[:, None, None]
    return share.sqrt() * noisy - (1 - share).sqrt() * velocity


class CornerDenoiser(nn.Module):
    """A transformer over noisy corner slots, which hold the corners of a plan in reading order.

    Half the heads see every slot, since each may become a corner. The other half see a slot to the degree that its
    noisy padding channel makes a corner probable. Each slot has its own embedding: without an order any slot may become
    any corner, and while all is noise the best answer is the mean of all corners.

    Args:
        channels: x, y, one bit for each kind of room, padding.
        slots: the most corners of a plan.
    """

    def __init__(self, channels: int, width: int, layers: int, heads: int, slots: int) -> None:
        super().__init__()
        self.slots = slots
        self._width, self._heads = width, heads
        self.embed = nn.Linear(channels + waves(torch.zeros(2), 1, 2).numel(), width)
        self.place = nn.Parameter(torch.randn(slots, width) * _EMBEDDING_SPREAD)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.layers = nn.ModuleList(GraphLayer(width, heads, condition=width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, channels)
        # How often the task has validated this model. It numbers the drawings, so it must survive a restart.
        self.register_buffer("validations", torch.zeros((), dtype=torch.long))

    def forward(self, noisy: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """Velocities (batch, slots, channels) of noisy plans of that shape at steps (batch,)."""
        mask = on_half_the_heads(padding_mask(noisy, step), self._heads)
        moment = self.time(waves(step[:, None].float(), 4.0, 4.0 * STEPS, self._width // 2))
        tokens = self.embed(torch.cat([noisy, waves(noisy[..., PLACE], 0.02, 8.0)], dim=-1)) + self.place
        for layer in self.layers:
            tokens = layer(tokens, mask, moment)
        return self.out(self.norm(tokens)).float()  # type: ignore[no-any-return]


def padding_mask(noisy: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """The probability that each slot is a corner, as a mask (batch, 1, 1, corners).

    Bayes' rule for a value ±1 behind Gaussian noise with equal priors: log-odds 2 sqrt(a) x / (1 - a).
    """
    share = signal(step)[:, None]
    return soft_mask(-2 * share.sqrt() * noisy[..., PADDING] / (1 - share))[:, None, None]


def sampled(
    model: nn.Module, start: torch.Tensor, steps: int, noise: Callable[[], torch.Tensor]
) -> Iterator[torch.Tensor | None]:
    """Draw plans: from Gaussian noise of shape (batch, corners, channels) to clean ones, yielding None at each step.

    Args:
        steps: how many of the 1,000 to take, closer together where there is less noise.
        noise: makes further noise of the same shape, once a step (ancestral sampling).
    """
    noisy = start
    moments = (torch.linspace(1, 0, steps + 1, device=start.device).pow(_SAMPLED_POWER) * STEPS).round()
    for now, then in itertools.pairwise(moments):
        step = now.expand(len(start))
        clean = cleaned(noisy, model(noisy, step), step)
        noisy = _ancestral(noisy, clean.clamp(-1, 1), signal(now), signal(then), noise())
        yield None
    yield clean


def _ancestral(
    noisy: torch.Tensor, clean: torch.Tensor, now: torch.Tensor, then: torch.Tensor, noise: torch.Tensor
) -> torch.Tensor:
    """Draw the plan at signal ``then`` from the one at ``now`` (Song et al., equation 12, with the sigma of DDPM)."""
    direction = (noisy - now.sqrt() * clean) / (1 - now).sqrt()
    fresh = (1 - then) / (1 - now) * (1 - now / then)
    return then.sqrt() * clean + (1 - then - fresh).clamp_min(0).sqrt() * direction + fresh.clamp_min(0).sqrt() * noise
