"""A few batches made once and trained on again and again: what a step costs when nothing has to be loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .device import Device
from .tasks import Batch, Task


class ReusedBatches:
    """A task whose batches come from a small store on the device; a measurement, not a training.

    Everything else is the task's own. A batch of another size than those in store (the last one of an epoch) is made
    as always.
    """

    def __init__(self, task: Task, count: int, device: Device) -> None:
        self._task = task
        self._count = count
        self._put: Callable[[Batch], Batch] = device.put
        self._store: dict[int, list[Batch]] = {}
        self._next = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    def batch(self, samples: torch.Tensor, seed: int) -> Batch:
        """The next batch in store, whatever samples were asked for; the first ones of a size fill the store."""
        stored = self._store.setdefault(len(samples), [])
        if len(stored) < self._count:
            stored.append(self._put(self._task.batch(samples, seed)))
            return stored[-1]
        self._next += 1
        return stored[self._next % self._count]
