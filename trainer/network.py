"""How the model is called: in which precision, and compiled or not."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .device import Device

PRECISIONS = ("auto", "fp32", "bf16", "fp16")


@dataclass(frozen=True)
class Precision:
    """The precision a training actually runs in."""

    name: str
    device_type: str
    dtype: torch.dtype | None
    """Autocast type; None: everything in float32."""
    note: str | None = None
    """A sentence if it is not what was requested."""

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        """The context of a forward pass."""
        if self.dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device_type, dtype=self.dtype)

    def scaler(self) -> torch.amp.GradScaler:
        """A loss scaler: active only for fp16, a no-op otherwise."""
        return torch.amp.GradScaler(self.device_type, enabled=self.dtype is torch.float16)


def resolve_precision(requested: str, device: Device) -> Precision:
    """The precision nearest to ``requested`` that ``device`` supports.

    ``auto`` is bf16 on CUDA where the GPU has it, else fp32: on MPS the gain of bf16 depends on the chip, so measure it
    first (`mpstui bench`).
    """
    if requested == "auto":
        requested = "bf16" if device.type == "cuda" and device.bf16_refusal() is None else "fp32"
    if requested == "fp16":
        refusal = device.fp16_refusal()
        return _reduced("fp16", device) if refusal is None else _fall_back(refusal, device)
    if requested == "bf16":
        refusal = device.bf16_refusal()
        return _reduced("bf16", device) if refusal is None else _plain(device, f"{refusal}: training in fp32")
    return _plain(device)


def _fall_back(refusal: str, device: Device) -> Precision:
    if device.bf16_refusal() is None and device.type != "cpu":
        return _reduced("bf16", device, f"{refusal}: training in bf16")
    return _plain(device, f"{refusal}: training in fp32")


def _reduced(name: str, device: Device, note: str | None = None) -> Precision:
    return Precision(name, device.type, torch.float16 if name == "fp16" else torch.bfloat16, note)


def _plain(device: Device, note: str | None = None) -> Precision:
    return Precision("fp32", device.type, None, note)


_LONG_RUN_STEPS = 20_000
"""From this length on, a run on CUDA wins back the minute that compiling costs."""


class Network(nn.Module):
    """Calls the compiled model as long as compiling works, else the plain one."""

    def __init__(
        self, inner: nn.Module, *, compiled: bool, one_shape: bool = False, products: torch.dtype | None = None
    ) -> None:
        """Wrap a model.

        Args:
            one_shape: compile for each exact shape, as a recorded step needs, instead of for any size.
            products: cast the weights of all products to this type at once, before the plain model is called.
        """
        super().__init__()
        self.inner = inner
        self.compiled = compiled
        self._call: Any = _compile(inner, one_shape) if compiled else inner
        self._products = products
        self._weights = dict(weights_of_products(inner)) if products else {}

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """The model's own arguments and result."""
        if self._call is not self.inner or not self._weights:
            return self._call(*inputs, **named)
        cast = dict(zip(self._weights, _Cast.apply(self._products, *self._weights.values()), strict=True))  # type: ignore[no-untyped-call]
        return torch.func.functional_call(self.inner, cast, inputs, named, tie_weights=False)

    @contextlib.contextmanager
    def uncompiled(self) -> Iterator[None]:
        """Run without the compiler for a while: for shapes too rare to compile for."""
        compiled, self._call = self._call, self.inner
        try:
            yield
        finally:
            self._call = compiled

    def run_eagerly(self) -> None:
        """Give up compiling for good."""
        self.compiled = False
        self._call = self.inner


class _Cast(torch.autograd.Function):
    """Casts all weights by one kernel, and their gradients back by another; autocast takes two for each weight.

    The results are autocast's. On an H200 a step of ResNet-18 with 512 images took 5.86 instead of 5.94 ms, one of
    `indicator`, whose layers are small, 1.84 instead of 2.00.
    """

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.types = [weight.dtype for weight in weights]
        return _all_cast(weights, [dtype] * len(weights))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        there = [number for number, gradient in enumerate(gradients) if gradient is not None]
        found: list[torch.Tensor | None] = [None] * len(gradients)
        arrived = [gradient for gradient in gradients if gradient is not None]
        for number, gradient in zip(there, _all_cast(arrived, [ctx.types[number] for number in there]), strict=True):
            found[number] = gradient
        return None, *found


def _all_cast(tensors: Sequence[torch.Tensor], types: Sequence[torch.dtype]) -> tuple[torch.Tensor, ...]:
    cast = [torch.empty_like(one, dtype=dtype) for one, dtype in zip(tensors, types, strict=True)]
    if cast:
        torch._foreach_copy_(cast, list(tensors))
    return tuple(cast)


def weights_of_products(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Trained parameters that autocast would cast wherever they are used, by name; a shared one has several."""
    for path, module in model.named_modules():
        attends = isinstance(module, nn.MultiheadAttention)  # its projections are not modules
        if attends or isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            for name, parameter in module.named_parameters(path, recurse=False):
                if parameter.requires_grad and (not attends or "_proj_" in name):
                    yield name, parameter


def _compile(model: nn.Module, one_shape: bool) -> Any:
    # A decorator at the function itself would load the compiler, which takes a second and more, in eager runs too.
    for module in model.modules():
        for name in getattr(module, "UNTRACED", ()):
            setattr(module, name, torch.compiler.disable(getattr(module, name)))  # type: ignore[no-untyped-call]
    return torch.compile(model, dynamic=False) if one_shape else torch.compile(model)


def wants_compiling(asked: str, device: Device, total_steps: int, model: nn.Module) -> tuple[bool, str | None]:
    """Whether to compile, and a sentence if that was requested but is not possible.

    ``auto`` compiles only long runs on CUDA: on MPS and CPU the gain must be measured first (`mpstui bench`). A model
    with ``HAS_KERNELS`` is faster there with its own kernels.
    """
    if os.environ.get("TORCH_COMPILE_DISABLE") == "1" or asked == "off":
        return False, None
    if asked == "auto":
        has_kernels = getattr(model, "HAS_KERNELS", False)
        return device.type == "cuda" and total_steps >= _LONG_RUN_STEPS and not has_kernels, None
    refusal = device.compile_refusal()
    return refusal is None, refusal and f"{refusal}: training without compiling"
