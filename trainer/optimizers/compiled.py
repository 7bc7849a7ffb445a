"""An optimizer's step as compiled code: what it launches by the hundred becomes a few kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from torch.optim import Optimizer


def compile_step(optimizer: Optimizer) -> None:
    """Let an optimizer take compiled steps. Its learning rates must be tensors: each number would be compiled anew.

    One that names its parts as ``COMPILED`` has these compiled, each by itself, and not its whole step.
    """
    for name in _parts(optimizer):
        setattr(optimizer, name, torch.compile(getattr(optimizer, name), dynamic=False))
    if _parts(optimizer):
        return
    # Hooks stay around the compiled code: the wrapper that calls them is put on again.
    eager = inspect.unwrap(type(optimizer).step, stop=lambda function: not hasattr(function, "hooked"))
    compiled: Callable[..., Any] = torch.compile(eager, dynamic=False)

    def step(self: Optimizer, closure: Callable[[], float] | None = None) -> Any:
        # The first step makes the optimizer's state, which the code of all others only changes. A resumed training has
        # it, and so takes each step as the one it goes on from would have.
        return (compiled if self.state else eager)(self, closure)

    optimizer.step = MethodType(Optimizer.profile_hook_step(step), optimizer)  # type: ignore[method-assign]


def step_eagerly(optimizer: Optimizer) -> None:
    """Give up compiling for good."""
    for name in ("step", *_parts(optimizer)):
        vars(optimizer).pop(name, None)


def _parts(optimizer: Optimizer) -> tuple[str, ...]:
    return getattr(optimizer, "COMPILED", ())
