"""An exponential moving average of the weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn


class WeightAverage:
    """Averaged copies of a model's parameters; buffers (batch statistics) are taken as they are."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        self._live: list[torch.Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._average = [parameter.detach().clone() for parameter in self._live]
        self._updates = 0

    @torch.no_grad()
    def update(self) -> None:
        """Move the average towards the weights; faster in the beginning, so that the random start is forgotten."""
        self._updates += 1
        decay = min(self._decay, (1 + self._updates) / (10 + self._updates))
        torch._foreach_lerp_(self._average, self._live, 1 - decay)

    @contextlib.contextmanager
    def swapped_in(self) -> Iterator[None]:
        """The model has the averaged weights inside this context."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state_dict(self) -> dict[str, Any]:
        """What resuming needs."""
        return {"average": self._average, "updates": self._updates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back :meth:`state_dict`."""
        for mine, saved in zip(self._average, state["average"], strict=True):
            mine.copy_(saved)
        self._updates = int(state["updates"])

    @torch.no_grad()
    def _swap(self) -> None:
        for live, average in zip(self._live, self._average, strict=True):
            held = live.clone()
            live.copy_(average)
            average.copy_(held)
