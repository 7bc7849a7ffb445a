"""Whole steps as device graphs: what a step launches is recorded once and launched as one from then on.

A step of small kernels waits for the CPU, which launches them one by one: some 1,500 in a ResNet-18 with Muon.
Replayed, the same kernels run on the same memory in the same order, so the numbers are those of the eager step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from .device import Device, Recording, is_out_of_memory
from .tasks import Batch

_EAGER_STEPS = 3
"""Steps before a recording: they choose kernels and create the optimizer's state in memory that outlives the graph."""
_MOST_GRAPHS = 8
"""Each keeps the memory of its step; a task whose batch shapes keep changing gains nothing from more."""

_Key = tuple[object, ...]
Work = Callable[[Batch, int], None]
"""A step: this rank's batch, and the step's number of samples over all ranks."""


class RecordingFailed(RuntimeError):
    """A step could not be recorded, or memory ran out; the step has had no effect."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}")
        self.out_of_memory = is_out_of_memory(cause)


@dataclass(frozen=True)
class _Recorded:
    recording: Recording
    inputs: Batch
    """What the graph reads: each step's samples are copied into these tensors."""
    gradients: list[torch.Tensor | None]
    """Where the graph leaves the gradients, in the order of the parameters."""


class Replay:
    """Takes steps: eagerly at first and for rare shapes, later as one graph each.

    What differs between two steps of one graph must be in tensors: samples, learning rates, the step number. Python
    code in the work runs only while it is recorded.
    """

    def __init__(self, work: Work, parameters: Sequence[torch.Tensor], device: Device) -> None:
        self._work = work
        self._parameters = parameters
        self._device = device
        self._seen: Counter[_Key] = Counter()
        self._recorded: dict[_Key, _Recorded] = {}
        self._last: _Recorded | None = None

    @property
    def holds_memory(self) -> bool:
        """Whether there is any graph yet."""
        return bool(self._recorded)

    def step(self, batch: Batch, total: int, micro_batch: int) -> None:
        """Take one step.

        Raises:
            RecordingFailed: the step was not taken; it can still be taken eagerly.
        """
        key = (total, micro_batch, *((name, part.shape, part.dtype) for name, part in batch.items()))
        recorded = self._recorded.get(key)
        if recorded is None:
            self._seen[key] += 1
            if self._seen[key] <= _EAGER_STEPS or len(self._recorded) == _MOST_GRAPHS:
                self._last = None
                with self._device.aside():
                    self._work(batch, total)
                return
            self._recorded[key] = recorded = self._record(batch, total)
        for name, part in batch.items():
            self._device.fill(recorded.inputs[name], part)
        recorded.recording.replay()
        if recorded is not self._last:
            for parameter, gradient in zip(self._parameters, recorded.gradients, strict=True):
                parameter.grad = gradient
            self._last = recorded

    def forget(self) -> None:
        """Drop all graphs; no step may follow. Closing NCCL would wait for graphs that exchange gradients."""
        for recorded in self._recorded.values():
            recorded.recording.reset()
        self._recorded.clear()
        self._last = None

    def _record(self, batch: Batch, total: int) -> _Recorded:
        try:
            inputs = {name: torch.zeros_like(part, device=self._device.torch) for name, part in batch.items()}
            recording = self._device.record(lambda: self._work(inputs, total))
        except (RuntimeError, MemoryError) as error:
            raise RecordingFailed(error) from error
        return _Recorded(recording, inputs, [parameter.grad for parameter in self._parameters])
