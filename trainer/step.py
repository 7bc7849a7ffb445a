"""One optimizer step: micro-batches, loss scaling, the guard against NaN, clipping, the update, and out of memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import torch
from torch.optim import Optimizer

from .device import Device, is_out_of_memory
from .distributed import Ranks, unsynchronised
from .network import Network, Precision
from .tasks import Batch, Task

if TYPE_CHECKING:
    from .sharding import Layout

_LONGEST_FAILURE = 160


@dataclass(frozen=True)
class Reading:
    """What a read-back found: means over the samples since the last one."""

    samples: int
    means: dict[str, float] = field(default_factory=dict)
    first_bad_step: int = -1


@dataclass(frozen=True)
class _Failure:
    """A failed attempt that can be survived."""

    text: str
    out_of_memory: bool


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
        """Wait for the device and return the means since the last call.

        The only place that reads a number back. A GPU works through a queue of kernels; each ``.item()`` would wait
        until the queue is empty, and then the GPU waits for us. So sums and flags stay on the device between reports.
        """
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

    def _try(self, batch: Batch, total: int, number: int) -> _Failure | None:
        """One attempt; a failure that can be survived is returned, not raised.

        The exception's frames hold every activation of the failed pass. They are freed when this function returns, so
        that the next attempt finds the memory.
        """
        # Forget the gradients of the step before. None instead of zeros: the backward pass then writes, not adds.
        self._optimizer.zero_grad(set_to_none=True)
        if self._network.replayed and _samples(batch) > self.micro_batch:
            # Each replayed pass overwrites what the one before gave: add up in memory of our own.
            for weight in self._parameters:
                weight.grad = torch.zeros_like(weight)
        try:
            sums, samples = self._backward(batch, total)
            self._update(sums["loss"], number)
        except (RuntimeError, MemoryError) as error:
            is_memory = is_out_of_memory(error)
            # Of several ranks the others already wait for this one inside a collective operation.
            if self._ranks.world_size > 1 or not (self._network.compiled or (is_memory and self.micro_batch > 1)):
                raise
            first_line = str(error).strip().partition("\n")[0]
            return _Failure(f"{type(error).__name__}: {first_line}"[:_LONGEST_FAILURE], is_memory)
        for name, value in sums.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value
        self._samples += samples
        return None

    def _backward(self, batch: Batch, total: int) -> tuple[dict[str, torch.Tensor], int]:
        """Forward and backward passes, one micro-batch after the other; their gradients add up."""
        samples = _samples(batch)
        weight = self._ranks.weight(total)
        sums: dict[str, torch.Tensor] = {}
        for start in range(0, samples, self.micro_batch):
            stop = min(start + self.micro_batch, samples)
            # Ranks exchange gradients once a step: only the last micro-batch synchronises.
            with unsynchronised(self._network) if stop < samples else contextlib.nullcontext():
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
        # Autocast runs matrix products in bf16 or fp16 and keeps sums and softmax in fp32.
        with self.precision.autocast():
            loss = self._task.loss(self._network, part)
        # The loss is a mean over this micro-batch; weighted by its share, gradients add up to the mean of the step.
        share = count * weight
        # fp16 has no number below 6e-8: the scaler multiplies the loss, and with it all gradients, out of that range.
        self.scaler.scale(loss.value if share == 1.0 else loss.value * share).backward()  # type: ignore[no-untyped-call]
        for name, value in {"loss": loss.value, **loss.metrics}.items():
            addend = value.detach().float() * count
            sums[name] = sums[name] + addend if name in sums else addend

    def _update(self, loss: torch.Tensor, number: int) -> None:
        """From gradients to new weights, with nothing that waits for the device."""
        self._layout.take_gradients()
        gradients = gradients_of(self._parameters)
        if self.scaler.is_enabled():
            self._layout.spread_overflow(gradients)
            self.scaler.unscale_(self._optimizer)  # before clipping, which is about true sizes
        # Raise the guard's flag where the loss or a gradient is NaN or infinite; `read` sees it with the next report.
        loss, self._norm = self._layout.judged(loss, gradients)
        self._guard.watch(loss, gradients, number, self._norm)
        # Clip the gradient: a rare huge one must not throw the weights far away.
        if self._clip:
            self._norm = clip_gradients(gradients, self._clip, self._norm)
        # Keep the weights from a non-finite step, then step the optimizer (the scaler skips a step that overflowed).
        self._guard.protect(self._optimizer, gradients)
        self.scaler.step(self._optimizer)
        self.scaler.update()

    def _recover(self, failure: _Failure) -> None:
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


Gradients = list[torch.Tensor]


class FiniteGuard(Protocol):
    """A flag on the device that the first non-finite step raises, for good; from then on the weights stand still.

    To ask at every step whether the loss is finite would wait for the device at every step. The flag is read late, with
    the next report; the weights are safe until then, since the device itself skips the updates.
    """

    def watch(self, loss: torch.Tensor, gradients: Gradients, step: int, norm: torch.Tensor | None = None) -> None:
        """Take in the loss (a scalar) and the gradients of a step, or instead of these their norm where it is known."""

    def protect(self, optimizer: Optimizer, gradients: Gradients) -> None:
        """Call between :meth:`watch` and the optimizer's step."""

    def first_bad(self) -> torch.Tensor:
        """The first step that was not finite, below 0 for none so far: a float scalar on the device."""


class KernelGuard:
    """For fused optimizers: one kernel looks at all gradients, and the optimizer's own skips its step (``found_inf``).

    Both are what torch's GradScaler is made of; here nothing is scaled. Gradients must be float32.
    """

    def __init__(self, device: torch.device) -> None:
        self._found = torch.zeros((), device=device)
        self._scale = torch.ones((), device=device)
        self._bad_steps = torch.zeros((), device=device)
        self._step = 0

    def watch(self, loss: torch.Tensor, gradients: Gradients, step: int, norm: torch.Tensor | None = None) -> None:
        """See :class:`FiniteGuard`."""
        looked_at = [*gradients, loss] if norm is None else [norm, loss]
        torch._amp_foreach_non_finite_check_and_unscale_(looked_at, self._found, self._scale)
        self._bad_steps.add_(self._found)  # the kernel raises its flag and never lowers it
        self._step = step

    def protect(self, optimizer: Optimizer, gradients: Gradients) -> None:
        """See :class:`FiniteGuard`."""
        optimizer.grad_scale = None  # type: ignore[attr-defined]
        optimizer.found_inf = self._found  # type: ignore[attr-defined]

    def first_bad(self) -> torch.Tensor:
        """See :class:`FiniteGuard`."""
        return torch.where(self._bad_steps > 0, self._step + 1 - self._bad_steps, -1.0)


class GradientGuard:
    """For every other optimizer: its gradients become zero. (Momentum may still move weights, by finite amounts.)"""

    def __init__(self, device: torch.device, *, gradients_may_overflow: bool = False) -> None:
        """Gradients that may overflow (those of fp16: its loss scaler skips such steps) are not watched."""
        self._finite = torch.ones((), dtype=torch.bool, device=device)
        self._suspect = torch.full((), -1.0, device=device)
        self._gradients_may_overflow = gradients_may_overflow

    def watch(self, loss: torch.Tensor, gradients: Gradients, step: int, norm: torch.Tensor | None = None) -> None:
        """See :class:`FiniteGuard`."""
        value = loss
        if not self._gradients_may_overflow:
            value = loss + (gradient_norm(gradients) if norm is None else norm)
        self._suspect.masked_fill_(self._finite, step)
        self._finite.logical_and_(torch.isfinite(value))

    def protect(self, optimizer: Optimizer, gradients: Gradients) -> None:
        """See :class:`FiniteGuard`."""
        for gradient in gradients:
            gradient.masked_fill_(~self._finite, 0.0)

    def first_bad(self) -> torch.Tensor:
        """See :class:`FiniteGuard`."""
        return torch.where(self._finite, -1.0, self._suspect)


def guard_for(optimizer: Optimizer, device: torch.device, *, loss_scaling: bool) -> FiniteGuard:
    """The cheapest guard that holds."""
    weights = (weight for group in optimizer.param_groups for weight in group["params"])
    if optimizer.defaults.get("fused") and not loss_scaling and all(w.dtype == torch.float32 for w in weights):
        return KernelGuard(device)
    return GradientGuard(device, gradients_may_overflow=loss_scaling)


def gradients_of(parameters: Sequence[torch.Tensor]) -> Gradients:
    """The gradients that a backward pass left; a rank may have no row of a small parameter."""
    return [parameter.grad for parameter in parameters if parameter.grad is not None and parameter.grad.numel()]


def gradient_norm(gradients: Gradients) -> torch.Tensor:
    """2-norm over all gradients together, a scalar on their device."""
    norm: torch.Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    return norm


def clip_gradients(gradients: Gradients, most: float, norm: torch.Tensor | None = None) -> torch.Tensor:
    """Scale all gradients so that their common norm is ``most`` at the highest; returns what it was. No read-back.

    Args:
        norm: theirs and that of other ranks' gradients together, where these are only a part.
    """
    norm = gradient_norm(gradients) if norm is None else norm
    if gradients:
        torch._foreach_mul_(gradients, (most / (norm + 1e-6)).clamp(max=1.0))
    return norm
