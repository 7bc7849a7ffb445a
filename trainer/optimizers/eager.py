"""Optimizers that do not load torch's compiler.

torch keeps an optimizer's bookkeeping out of compiled code with decorators that import the compiler at their first
call, and a step imports it to break a graph that is not there. In a training that compiles nothing, this is almost half
of the start: until the end of a first small step on the CPU, 3.5 s of processor time with it and 1.95 s without
(`cifar --model tiny --stop-after 1`, medians of four, run alternately).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

_BOOKKEEPING = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


def without_compiler(kind: type[Optimizer]) -> Callable[..., Optimizer]:
    """The same optimizer under the same name, without those decorators. Hooks are called as usual."""
    beneath: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in _BOOKKEEPING}
    step = inspect.unwrap(kind.step)

    # Without gradients, like torch's own decorator (unless an optimizer is `differentiable`).
    @torch.no_grad()
    def eager_step(self: Optimizer, closure: Any = None) -> Any:
        return step(self, closure)

    return type(kind.__name__, (kind,), {**beneath, "step": eager_step, "__module__": kind.__module__})
