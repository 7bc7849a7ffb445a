"""Optimizers that do not load torch's compiler.

torch keeps the bookkeeping of an optimizer out of compiled code by decorators that import the compiler when they are
first called, and a step imports it to break a graph that is not there. For a training that compiles nothing that is
almost half of its start: 3.5 s of the processor with it and 1.95 s without until a first small step on the CPU is done
(`cifar --model tiny --stop-after 1`, medians of four, turn about).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

_BOOKKEEPING = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


def without_compiler(kind: type[Optimizer]) -> Callable[..., Optimizer]:
    """The same optimizer under the same name, with the functions beneath those decorators. Hooks are called as ever."""
    beneath: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in _BOOKKEEPING}
    step = inspect.unwrap(kind.step)

    # Without gradients, as torch's own decorator has it unless an optimizer is `differentiable`.
    @torch.no_grad()
    def eager_step(self: Optimizer, closure: Any = None) -> Any:
        return step(self, closure)

    return type(kind.__name__, (kind,), {**beneath, "step": eager_step, "__module__": kind.__module__})
