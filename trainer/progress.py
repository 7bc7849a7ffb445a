"""How far a training has come. Part of every checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .step import Reading


@dataclass
class Progress:
    """The epoch is the one being trained, from 1; steps are those finished."""

    epoch: int = 1
    epoch_step: int = 0
    step: int = 0
    samples: int = 0
    """Samples behind ``sums``: those that this epoch has reported so far."""
    sums: dict[str, float] = field(default_factory=dict)
    best: float | None = None
    best_step: int | None = None

    def add(self, reading: Reading) -> None:
        """Count a reading into the epoch's means."""
        self.samples += reading.samples
        for name, mean in reading.means.items():
            self.sums[name] = self.sums.get(name, 0.0) + mean * reading.samples

    def epoch_means(self) -> dict[str, float]:
        """Means over the epoch so far."""
        return {name: total / self.samples for name, total in self.sums.items()} if self.samples else {}

    def next_epoch(self) -> None:
        """Go to the beginning of the next epoch."""
        self.epoch, self.epoch_step, self.samples, self.sums = self.epoch + 1, 0, 0, {}

    def improves(self, value: float, *, higher_is_better: bool) -> bool:
        """Whether ``value`` is a new best, which is then remembered; NaN never is."""
        if value != value:
            return False
        if self.best is not None and not (value > self.best if higher_is_better else value < self.best):
            return False
        self.best, self.best_step = value, self.step
        return True

    def forget_best(self, value: float | None, step: int | None) -> None:
        """Go back to the best that is on disk: the newest one could not be written."""
        self.best, self.best_step = value, step

    def state_dict(self) -> dict[str, Any]:
        """Plain containers for a checkpoint."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Progress:
        """Read :meth:`state_dict`."""
        return cls(**state)
