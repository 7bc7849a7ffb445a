"""The learning rate as a pure function of the step."""

from __future__ import annotations

import math
from dataclasses import dataclass

_MOST_WARMUP = 0.2


@dataclass(frozen=True)
class Schedule:
    """Linear warm-up, then half a cosine (Loshchilov and Hutter, 2017) or a line down to 0, or constant."""

    kind: str
    total_steps: int
    warmup_steps: int

    @classmethod
    def of(cls, kind: str, *, epochs: int, steps_per_epoch: int, warmup_epochs: float) -> Schedule:
        """A schedule over whole epochs; warm-up takes at most a fifth of a short run."""
        total = epochs * steps_per_epoch
        return cls(kind, total, min(round(warmup_epochs * steps_per_epoch), int(total * _MOST_WARMUP)))

    def factor(self, step: int) -> float:
        """The factor, 0 to 1, of the peak learning rate in the step that follows ``step`` finished ones."""
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        if self.kind == "constant":
            return 1.0
        progress = min(1.0, (step - self.warmup_steps) / max(1, self.total_steps - self.warmup_steps))
        return 1.0 - progress if self.kind == "linear" else 0.5 * (1 + math.cos(math.pi * progress))
