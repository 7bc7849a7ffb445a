"""One optimizer step: micro-batches, loss scaling, the NaN guard, clipping, the update, out-of-memory recovery."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch.optim import Optimizer

from .device import Device, is_out_of_memory
from .distributed import Ranks
from .gradients import clip_gradients, gradient_norm, gradients_of, guard_for
from .network import Network, Precision
from .replay import RecordingFailed, Replay
from .tasks import Batch, Task

if TYPE_CHECKING:
    from .sharding import Layout

_LONGEST_FAILURE = 160


@dataclass(frozen=True)
class Reading:
    """Results read back from the device: means over the samples since the previous reading."""

    samples: int
    means: dict[str, float] = field(default_factory=dict)
    first_bad_step: int = -1


@dataclass(frozen=True)
class _Failure:
    """A failed step that can be retried in another way."""

    text: str
    out_of_memory: bool
    recording: bool


class Stepper:
    """Turns batches into weight updates; its sums stay on the device until they are read back (:meth:`read`)."""

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
        whole_step: int,
        clip: float,
        ranks: Ranks,
        notify: Callable[..., None],
        replayed: bool = False,
    ) -> None:
        """Set up the steps of a training.

        Args:
            whole_step: samples of a full step over all ranks; an epoch's smaller last step runs uncompiled.
            replayed: record the steps and launch each as one graph; only for a device that can.
        """
        self.micro_batch = micro_batch
        self._whole_step = whole_step
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
        self._replay = Replay(self._work, self._parameters, device) if replayed else None

    @property
    def replayed(self) -> bool:
        """Whether steps are recorded and launched as one graph."""
        return self._replay is not None

    def close(self) -> None:
        """Drop all recordings. Must be called before the process group is closed."""
        if self._replay is not None:
            self._replay.forget()

    def step(self, batch: Batch, total: int, number: int) -> None:
        """Update the weights once.

        Args:
            batch: this rank's samples of the step; every tensor has them in its first dimension.
            total: samples of the step over all ranks.
            number: this step's number, counted from 1, for the guard.

        Raises:
            RuntimeError: out of memory with a single sample, or anything the model itself raises.
        """
        while (failure := self._try(batch, total, number)) is not None:
            self._recover(failure)

    def read(self) -> Reading:
        """Wait for the device and return the means since the last call.

        Nothing else reads a number back. A GPU works through a queue of kernels: each ``.item()`` would wait until the
        queue is empty, and then the GPU would idle until we launch more. So sums and flags stay on the device between
        reports.
        """
        names = list(self._sums)
        if not self._samples:
            return Reading(0)
        values = [self._sums[name] / self._samples for name in names]
        norm = gradient_norm(gradients_of(self._parameters)) if self._norm is None else self._norm
        *means, grad_norm, bad = torch.stack([*values, norm, self._guard.first_bad()]).tolist()
        found = dict(zip(names, means, strict=True))
        if bad >= 0:  # the gradients of that step may be gone
            reading = Reading(self._samples, found, first_bad_step=int(bad))
        else:
            reading = Reading(self._samples, {**found, "grad_norm": grad_norm})
        for total in self._sums.values():  # in place: recorded steps add to these same tensors
            total.zero_()
        self._samples = 0
        return reading

    def _try(self, batch: Batch, total: int, number: int) -> _Failure | None:
        """Attempt the step once; return a recoverable failure instead of raising it.

        The exception's traceback keeps every activation of the failed pass alive. Returning frees them for the next
        attempt.
        """
        self._guard.begin(number)
        replay = self._replay
        try:
            if replay:
                replay.step(batch, total, self.micro_batch)
            else:
                self._work(batch, total)
        except (RuntimeError, MemoryError) as error:
            recording = isinstance(error, RecordingFailed)
            is_memory = error.out_of_memory if isinstance(error, RecordingFailed) else is_out_of_memory(error)
            if is_memory and replay and replay.holds_memory:
                recording = True  # the graphs may hold the memory that is missing
            survivable = self._network.compiled or (is_memory and self.micro_batch > 1) or recording
            # With several ranks, the others are already waiting for this one in a collective, so a failed step must not
            # be retried. A step that merely could not be recorded can be retried eagerly: NCCL's collectives match
            # however they are launched.
            alone = self._ranks.world_size == 1
            if not survivable or not (alone or isinstance(error, RecordingFailed)):
                raise
            first_line = str(error).strip().partition("\n")[0]
            text = first_line if isinstance(error, RecordingFailed) else f"{type(error).__name__}: {first_line}"
            return _Failure(text[:_LONGEST_FAILURE], is_memory, recording)
        self._samples += _samples(batch)
        return None

    def _work(self, batch: Batch, total: int) -> None:
        """Everything the device does in a step. Results are written in place: a replay writes to the same tensors."""
        # Drop the gradients of the previous step. None instead of zeros: the backward pass then writes, not adds.
        self._optimizer.zero_grad(set_to_none=True)
        with contextlib.ExitStack() as stack:
            if total < self._whole_step:  # an epoch's last one: preparing for its size costs more than it saves
                stack.enter_context(self._network.uncompiled())
                stack.enter_context(self._device.rarely())
            sums = self._backward(batch, total)
        norm = self._update(sums["loss"])
        if norm is not None:
            self._norm = norm.clone() if self._norm is None else self._norm.copy_(norm)
        for name, value in sums.items():
            if name not in self._sums:
                self._sums[name] = torch.zeros_like(value)
            self._sums[name].add_(value)

    def _backward(self, batch: Batch, total: int) -> dict[str, torch.Tensor]:
        """Run the forward and backward passes, one micro-batch after another; gradients accumulate."""
        samples = _samples(batch)
        weight = self._ranks.weight(total)
        sums: dict[str, torch.Tensor] = {}
        for start in range(0, samples, self.micro_batch):
            count = min(self.micro_batch, samples - start)
            self._micro(self._part(batch, start), count, weight, sums)
        if self._layout.divided and self._passes(samples) < self._passes(self._ranks.largest_share(total)):
            # The other ranks call the divided model once more and wait for this one, so it runs its first samples again
            # with weight 0.
            self._micro(self._part(batch, 0), 0, weight, sums)
        return sums

    def _part(self, batch: Batch, start: int) -> Batch:
        """The micro-batch that starts at this sample, on the device."""
        return self._device.put({name: tensor[start : start + self.micro_batch] for name, tensor in batch.items()})

    def _passes(self, samples: int) -> int:
        return -(-samples // self.micro_batch)

    def _micro(self, part: Batch, count: int, weight: float, sums: dict[str, torch.Tensor]) -> None:
        # Autocast runs matrix products in bf16 or fp16 and keeps sums and softmax in fp32.
        with self.precision.autocast():
            loss = self._task.loss(self._network, part)
        # The loss is a mean over this micro-batch; weighted by its share, the gradients add up to those of the step's
        # mean.
        share = count * weight
        # fp16 underflows below 6e-8: the scaler multiplies the loss, and so all gradients, out of that range.
        self.scaler.scale(loss.value if share == 1.0 else loss.value * share).backward()  # type: ignore[no-untyped-call]
        for name, value in {"loss": loss.value, **loss.metrics}.items():
            addend = value.detach().float() * count
            sums[name] = sums[name] + addend if name in sums else addend

    def _update(self, loss: torch.Tensor) -> torch.Tensor | None:
        """Update the weights without waiting for the device; return the gradient norm if it was computed."""
        self._layout.take_gradients()
        gradients = gradients_of(self._parameters)
        if self.scaler.is_enabled():
            self._layout.spread_overflow(gradients)
            self.scaler.unscale_(self._optimizer)  # before clipping, which needs the true gradients
        # Raise the guard's flag if the loss or a gradient is NaN or infinite; `read` sees it at the next report.
        loss, norm = self._layout.judged(loss, gradients)
        self._guard.watch(loss, gradients, norm)
        # Clip the gradient: a rare huge one must not throw the weights far off.
        if self._clip:
            norm = clip_gradients(gradients, self._clip, norm)
        # Protect the weights from a non-finite step, then step the optimizer (the scaler skips a step that overflowed).
        self._guard.protect(self._optimizer, gradients)
        self.scaler.step(self._optimizer)
        self.scaler.update()
        return norm

    def _recover(self, failure: _Failure) -> None:
        if failure.recording:
            self.close()
            self._replay = None
            self._optimizer.zero_grad(set_to_none=True)
            self._device.empty_cache()
            self._notify("note", f"steps are not replayed ({failure.text}): launching each kernel", unmet="replay")
            return
        if self._network.compiled and (not failure.out_of_memory or self.micro_batch == 1):
            self._network.run_eagerly()
            self._notify("note", f"compiling failed ({failure.text}): training without it", unmet="compile")
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
