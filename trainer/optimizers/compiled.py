"""An optimizer's step as compiled code: hundreds of launches become a few kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from torch.optim import Optimizer


def compile_step(optimizer: Optimizer) -> None:
    """Let an optimizer take compiled steps. Its learning rates must be tensors: each new number would be recompiled.

    If the optimizer names methods in ``COMPILED``, only these are compiled, one by one, instead of the whole step.
    """
    for name in _parts(optimizer):
        setattr(optimizer, name, torch.compile(getattr(optimizer, name), dynamic=False))
    if _parts(optimizer):
        return
    # Hooks stay outside the compiled code: the wrapper that calls them is put on again.
    eager = inspect.unwrap(type(optimizer).step, stop=lambda function: not hasattr(function, "hooked"))
    compiled: Callable[..., Any] = torch.compile(eager, dynamic=False)

    def step(self: Optimizer, closure: Callable[[], float] | None = None) -> Any:
        # The first step creates the optimizer's state; the compiled code only changes it. A resumed training has that
        # state already, so it takes each step as the training it resumes would have.
        return (compiled if self.state else eager)(self, closure)

    optimizer.step = MethodType(Optimizer.profile_hook_step(step), optimizer)  # type: ignore[method-assign]


def step_eagerly(optimizer: Optimizer) -> None:
    """Give up compiling for good."""
    for name in ("step", *_parts(optimizer)):
        vars(optimizer).pop(name, None)


def _parts(optimizer: Optimizer) -> tuple[str, ...]:
    return getattr(optimizer, "COMPILED", ())
