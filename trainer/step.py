"""One optimizer step: micro-batches, loss scaling, clipping, and what to do when the device runs out of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.optim import Optimizer

from .device import Device, is_out_of_memory
from .distributed import Ranks, unsynchronised
from .guard import clip_gradients, gradient_norm, gradients_of, guard_for
from .network import Network
from .precision import Precision
from .sharding import Layout
from .tasks import Batch, Task

_LONGEST_FAILURE = 160


@dataclass(frozen=True)
class Reading:
    """What a read-back found: means over the samples since the last one."""

    samples: int
    means: dict[str, float] = field(default_factory=dict)
    first_bad_step: int = -1


class Stepper:
    """Turns batches into weight updates; holds its sums on the device until somebody asks (:meth:`read`)."""

    def __init__(
        self,
        task: Task,
        network: Network,
        layout: Layout,
        optimizer: Optimizer,
        device: Device,
        precision: Precision,
        *,
        micro_batch: int,
        clip: float,
        ranks: Ranks,
        notify: Callable[..., None],
    ) -> None:
        self.micro_batch = micro_batch
        self.scaler = precision.scaler()
        self._task = task
        self._network = network
        self._layout = layout
        self._optimizer = optimizer
        self._device = device
        self.precision = precision
        self._clip = clip
        self._ranks = ranks
        self._notify = notify
        self._parameters = [weight for group in optimizer.param_groups for weight in group["params"]]
        self._guard = guard_for(optimizer, device.torch, loss_scaling=self.scaler.is_enabled())
        self._sums: dict[str, torch.Tensor] = {}
        self._samples = 0
        self._norm: torch.Tensor | None = None

    def step(self, batch: Batch, total: int, number: int) -> None:
        """Update the weights once.

        Args:
            batch: this rank's samples of the step; every tensor has them in its first dimension.
            total: samples of the step over all ranks.
            number: of this step, from 1, for the guard.

        Raises:
            RuntimeError: out of memory with a single sample, or anything the model itself raises.
        """
        while (failure := self._try(batch, total, number)) is not None:
            self._recover(failure)

    def read(self) -> Reading:
        """Wait for the device and return the means since the last call; the only read-back there is."""
        names = list(self._sums)
        if not names:
            return Reading(0)
        values = [self._sums[name] / self._samples for name in names]
        norm = gradient_norm(gradients_of(self._parameters)) if self._norm is None else self._norm
        *means, grad_norm, bad = torch.stack([*values, norm, self._guard.first_bad()]).tolist()
        found = dict(zip(names, means, strict=True))
        if bad >= 0:  # the gradients of that step may be gone
            reading = Reading(self._samples, found, first_bad_step=int(bad))
        else:
            reading = Reading(self._samples, {**found, "grad_norm": grad_norm})
        self._sums, self._samples = {}, 0
        return reading

    def _try(self, batch: Batch, total: int, number: int) -> str | None:
        """One attempt; a failure that can be survived comes back as its text, free of the frames that hold memory."""
        self._clear_gradients(batch)
        try:
            sums, samples = self._backward(batch, total)
            self._update(sums["loss"], number)
        except (RuntimeError, MemoryError) as error:
            if not self._survivable(error):
                raise
            return _in_short(error)
        for name, value in sums.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value
        self._samples += samples
        return None

    def _clear_gradients(self, batch: Batch) -> None:
        """Forget those of the step before. Of several replayed passes each overwrites what the one before gave: there
        the gradients they add up to are kept in memory of our own."""
        self._optimizer.zero_grad(set_to_none=True)
        if self._network.replayed and _samples(batch) > self.micro_batch:
            for weight in self._parameters:
                weight.grad = torch.zeros_like(weight)

    def _backward(self, batch: Batch, total: int) -> tuple[dict[str, torch.Tensor], int]:
        samples = _samples(batch)
        weight = self._ranks.weight(total)
        sums: dict[str, torch.Tensor] = {}
        for start in range(0, samples, self.micro_batch):
            stop = min(start + self.micro_batch, samples)
            if stop < samples:
                with unsynchronised(self._network):
                    self._micro(self._part(batch, start), stop - start, weight, sums)
            else:
                self._micro(self._part(batch, start), stop - start, weight, sums)
        if self._layout.divided and self._passes(samples) < self._passes(self._ranks.largest_share(total)):
            # The others call the divided model once more and wait for this rank: its first samples again, for nothing.
            self._micro(self._part(batch, 0), 0, weight, sums)
        return sums, samples

    def _part(self, batch: Batch, start: int) -> Batch:
        """The micro-batch that begins with this sample, on the device."""
        return self._device.put({name: tensor[start : start + self.micro_batch] for name, tensor in batch.items()})

    def _passes(self, samples: int) -> int:
        return -(-samples // self.micro_batch)

    def _micro(self, part: Batch, count: int, weight: float, sums: dict[str, torch.Tensor]) -> None:
        with self.precision.autocast():
            loss = self._task.loss(self._network, part)
        share = count * weight
        self.scaler.scale(loss.value if share == 1.0 else loss.value * share).backward()  # type: ignore[no-untyped-call]
        for name, value in {"loss": loss.value, **loss.metrics}.items():
            addend = value.detach().float() * count
            sums[name] = sums[name] + addend if name in sums else addend

    def _update(self, loss: torch.Tensor, number: int) -> None:
        self._layout.take_gradients()
        gradients = gradients_of(self._parameters)
        if self.scaler.is_enabled():
            self._layout.spread_overflow(gradients)
            self.scaler.unscale_(self._optimizer)
        loss, self._norm = self._layout.judged(loss, gradients)
        self._guard.watch(loss, gradients, number, self._norm)
        if self._clip:
            self._norm = clip_gradients(gradients, self._clip, self._norm)
        self._guard.protect(self._optimizer, gradients)
        self.scaler.step(self._optimizer)
        self.scaler.update()

    def _survivable(self, error: BaseException) -> bool:
        if self._ranks.world_size > 1:
            return False  # the other ranks already wait inside a collective for this one
        return self._network.compiled or (is_out_of_memory(error) and self.micro_batch > 1)

    def _recover(self, failure: str) -> None:
        if self._network.compiled and ("out of memory" not in failure or self.micro_batch == 1):
            self._network.run_eagerly()
            self._notify("note", f"compiling failed ({failure}): training without it", unmet="compile")
            return
        self._optimizer.zero_grad(set_to_none=True)
        self._device.empty_cache()
        halved = self.micro_batch // 2
        self._notify(
            "note",
            f"out of memory: micro-batches of {halved} instead of {self.micro_batch} from here on, with twice the"
            f" accumulation, so that a step keeps its samples",
        )
        self.micro_batch = halved


def _samples(batch: Batch) -> int:
    return len(next(iter(batch.values())))


def _in_short(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:_LONGEST_FAILURE]
