"""The callable that the loss sees: the model, possibly wrapped for several ranks and compiled."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from .device import Device

_LONG_RUN_STEPS = 20_000
"""From here on the minute that compiling costs is won back on CUDA."""


class Network(nn.Module):
    """Calls the compiled model as long as compiling works, the plain one otherwise.

    A replayed one issues the kernels of a pass as one CUDA graph: a step of small kernels otherwise waits for the CPU
    that launches them. The next pass overwrites what the graph gave, gradients too.
    """

    def __init__(self, inner: nn.Module, *, compiled: bool, replayed: bool = False) -> None:
        super().__init__()
        self.inner = inner
        self.compiled = compiled
        self.replayed = compiled and replayed
        self._call: Any = _compile(inner, replayed) if compiled else inner

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Whatever the model takes and gives."""
        return self._call(*inputs, **named)

    def run_eagerly(self) -> None:
        """Give up compiling for good."""
        self.compiled = self.replayed = False
        self._call = self.inner


def _compile(model: nn.Module, replayed: bool) -> Any:
    # A graph is recorded for one shape: a smaller last step of an epoch gets its own, not one of code for any size.
    return torch.compile(model, mode="reduce-overhead", dynamic=False) if replayed else torch.compile(model)


def wants_compiling(asked: str, device: Device, total_steps: int) -> tuple[bool, str | None]:
    """Whether to compile, and a sentence when it was asked for and is not done.

    ``auto`` compiles long runs on CUDA only: on MPS and CPU the gain must be measured first (`mpstui bench`).
    """
    if os.environ.get("TORCH_COMPILE_DISABLE") == "1" or asked == "off":
        return False, None
    if asked == "auto":
        return device.type == "cuda" and total_steps >= _LONG_RUN_STEPS, None
    refusal = device.compile_refusal()
    return refusal is None, refusal and f"{refusal}: training without compiling"
