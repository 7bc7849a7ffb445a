"""Batches in the order of the epoch, made here or in worker processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from .distributed import Ranks
from .errors import UsageError
from .order import SampleOrder, mixed
from .tasks import Batch, Task

Key = tuple[torch.Tensor, int]


class Feed:
    """The batches of this process: for each optimizer step, this rank's share of the samples."""

    def __init__(self, task: Task, order: SampleOrder, ranks: Ranks, workers: int) -> None:
        self.order = order
        self._task = task
        self._ranks = ranks
        self._keys = _Keys()
        self._loader = _loader(task, self._keys, workers) if workers else None

    def epoch(self, epoch: int, first_step: int = 0) -> Iterator[tuple[Batch, int]]:
        """Batches of an epoch from ``first_step`` on, each with the number of samples of the whole step."""
        order = self.order.epoch(epoch)
        sizes = [len(self.order.step(order, step)) for step in range(first_step, self.order.steps_per_epoch)]
        keys = (self._key(order, epoch, step) for step in range(first_step, self.order.steps_per_epoch))
        if self._loader is None:
            yield from ((self._task.batch(*key), size) for key, size in zip(keys, sizes, strict=True))
            return
        self._keys.current = list(keys)
        for made, size in zip(self._loader, sizes, strict=True):
            if isinstance(made, _Refused):
                raise UsageError(made.sentence)
            yield made, size

    def _key(self, order: torch.Tensor, epoch: int, step: int) -> Key:
        share = self._ranks.share(self.order.step(order, step))
        # The lowest bit alternates between epochs, for what happens to a sample every other epoch.
        return share, mixed(self.order.seed, epoch, step, self._ranks.rank) & ~1 | epoch & 1


class _Keys(Sampler[Key]):
    """Hands workers what to make next; refilled every epoch, so that the workers persist."""

    def __init__(self) -> None:
        self.current: list[Key] = []

    def __iter__(self) -> Iterator[Key]:
        return iter(self.current)

    def __len__(self) -> int:
        return len(self.current)


@dataclass(frozen=True)
class _Refused:
    """A worker's complaint about unusable data; if it were raised there, torch would add a page of traceback."""

    sentence: str


class _Made(Dataset["Batch | _Refused"]):
    """A data set whose index is the key of a whole batch."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __getitem__(self, key: Key) -> Batch | _Refused:
        try:
            return self._task.batch(*key)
        except UsageError as error:
            return _Refused(str(error))


def _loader(task: Task, keys: _Keys, workers: int) -> DataLoader[Any]:
    # A fork after Metal or CUDA was used can crash or hang, so every platform spawns, as macOS does anyway.
    return DataLoader(
        _Made(task),
        batch_size=None,
        sampler=keys,
        num_workers=workers,
        persistent_workers=True,
        multiprocessing_context="spawn",
        worker_init_fn=_leave_signals_to_the_parent,
    )


def _leave_signals_to_the_parent(worker: int) -> None:
    """Ignore stop signals, which reach the whole process group: if a worker died, the last checkpoint would be lost."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
