"""An exponential moving average of the weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from .sharding import Layout


class WeightAverage:
    """Averaged copies of a rank's part of a model's weights; buffers (batch statistics) are not averaged."""

    def __init__(self, layout: Layout, decay: float) -> None:
        self._decay = decay
        self._layout = layout
        self._average = [weight.detach().clone() for weight in layout.weights()]
        self._updates = 0

    @torch.no_grad()
    def update(self) -> None:
        """Move the average towards the weights; faster at the beginning, so that it forgets the random start."""
        self._updates += 1
        decay = min(self._decay, (1 + self._updates) / (10 + self._updates))
        torch._foreach_lerp_(self._average, self._layout.weights(), 1 - decay)

    @contextlib.contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Give the model the averaged weights inside this context."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state_dict(self) -> dict[str, Any]:
        """What resuming needs."""
        return {
            "average": self._layout.saved(self._average),
            "names": self._layout.weight_names,
            "updates": self._updates,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load :meth:`state_dict`."""
        for mine, saved in zip(self._average, self._layout.parts(state["average"]), strict=True):
            mine.copy_(saved)
        self._updates = int(state["updates"])

    @torch.no_grad()
    def _swap(self) -> None:
        for live, average in zip(self._layout.weights(), self._average, strict=True):
            held = live.clone()
            live.copy_(average)
            average.copy_(held)
