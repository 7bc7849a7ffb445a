"""A step small enough to be measured in a short time on a slow device."""

from __future__ import annotations

import time
from dataclasses import replace

from .assemble import Request, assemble
from .job import Job

_FEWEST_SAMPLES = 4


def sized(wish: Request, longest_seconds: float) -> Request:
    """The same training with so few samples a step that one takes about ``longest_seconds``, never more than asked for.

    Says so in an event with ``samples_per_step`` when it is fewer than the training would have had.
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
    """Samples of a step that is about so long: doubled until twice as many would take longer."""
    usual, samples = job.feed.order.step_size, _FEWEST_SAMPLES
    while samples < usual and 2 * _step_seconds(job, samples) <= longest_seconds * 1.2:
        samples *= 2
    return min(samples, usual)


def _step_seconds(job: Job, samples: int) -> float:
    """How long a step of this size takes: the second one, as the first allocates and chooses kernels."""
    job.model.train()
    chosen, seconds = job.feed.order.epoch(1)[:samples], 0.0
    for number in (1, 2):
        batch = job.task.batch(chosen, number)
        began = time.perf_counter()
        job.stepper.step(batch, len(chosen), number)
        job.stepper.read()
        seconds = time.perf_counter() - began
    return seconds
