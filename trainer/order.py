"""Which samples make which step: a pure function of seed, epoch and step, so that nothing has to be stored."""

from __future__ import annotations

from dataclasses import dataclass

import torch

_MIX = 0x9E3779B97F4A7C15  # 2**64 / golden ratio (Knuth's multiplicative hash), spreads neighbouring numbers
_MASK = (1 << 63) - 1


@dataclass(frozen=True)
class SampleOrder:
    """Every epoch visits every sample once, in its own order; the last step may be smaller, or left out."""

    size: int
    """Samples of the training set."""
    step_size: int
    """Samples of one optimizer step, over all micro-batches and processes."""
    seed: int
    drop_last: bool = False
    """Leave out a smaller last step, unless it is the only one."""

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps of one epoch."""
        whole = self.size // self.step_size
        return whole if self.drop_last and whole else -(-self.size // self.step_size)

    @property
    def whole_step(self) -> int:
        """Samples of every step but the last, smaller one."""
        return min(self.step_size, self.size)

    def epoch(self, epoch: int) -> torch.Tensor:
        """Sample numbers of an epoch in order: int64, shape (size,)."""
        generator = torch.Generator().manual_seed(mixed(self.seed, epoch))
        return torch.randperm(self.size, generator=generator)

    def step(self, order: torch.Tensor, epoch_step: int) -> torch.Tensor:
        """The samples of the step after ``epoch_step`` steps of an epoch."""
        return order[epoch_step * self.step_size : (epoch_step + 1) * self.step_size]


def mixed(*numbers: int) -> int:
    """One seed from several numbers; neighbouring numbers give unrelated seeds."""
    value = 0
    for number in numbers:
        value = ((value ^ number) * _MIX + 0x7F4A7C15) & _MASK
        value ^= value >> 29
    return value
