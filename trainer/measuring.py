"""What mpstui bench asks of a training: short enough steps, and batches that cost nothing to make."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from .assemble import Request, assemble
from .device import Device
from .job import Job
from .tasks import Batch, Task

_FEWEST_SAMPLES = 4


def fit_batch_size(wish: Request, longest_seconds: float) -> Request:
    """The same training with its step cut to as many samples as take about ``longest_seconds``; never enlarged.

    If these are fewer than the training would have had, an event with ``samples_per_step`` says so.
    """
    plain = replace(wish.options, workers=0, compile="off", precision="fp32")
    job = assemble(replace(wish, options=plain))
    usual, samples = job.feed.order.step_size, _affordable(job, longest_seconds)
    if samples >= usual:
        return wish
    samples = min(samples, job.stepper.micro_batch)
    text = f"steps of {samples} samples instead of {usual}, so that one takes about {longest_seconds:g} s here"
    wish.reporter.event("note", text, samples_per_step=samples)
    return replace(wish, options=replace(wish.options, batch_size=samples, accumulate=1))


def _affordable(job: Job, longest_seconds: float) -> int:
    """How many samples a step of about this length can have: doubled until twice as many would take longer."""
    usual, samples = job.feed.order.step_size, _FEWEST_SAMPLES
    while samples < usual and 2 * _step_seconds(job, samples) <= longest_seconds * 1.2:
        samples *= 2
    return min(samples, usual)


def _step_seconds(job: Job, samples: int) -> float:
    """How long a step of this size takes. The second one is timed, as the first allocates and chooses kernels."""
    job.model.train()
    chosen, seconds = job.feed.order.epoch(1)[:samples], 0.0
    for number in (1, 2):
        batch = job.task.batch(chosen, number)
        began = time.perf_counter()
        job.stepper.step(batch, len(chosen), number)
        job.stepper.read()
        seconds = time.perf_counter() - began
    return seconds


class CachedBatches:
    """A task whose batches come from a small store on the device; for measuring, not for training.

    Everything else is the task's own. The first batches of each size (such as the last one of an epoch) are made as
    usual.
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
        """The next stored batch, whichever samples are requested; the first ones of each size fill the store."""
        stored = self._store.setdefault(len(samples), [])
        if len(stored) < self._count:
            stored.append(self._put(self._task.batch(samples, seed)))
            return stored[-1]
        self._next += 1
        return stored[self._next % self._count]
