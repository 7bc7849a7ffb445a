"""Numeric precision: which autocast type is had, whether the loss is scaled, and why not what was asked."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch

from .device import Device

NAMES = ("auto", "fp32", "bf16", "fp16")


@dataclass(frozen=True)
class Precision:
    """The precision a training really runs in."""

    name: str
    device_type: str
    dtype: torch.dtype | None
    """Autocast type; None: everything in float32."""
    note: str | None = None
    """One sentence when it is not what was asked for."""

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        """The context of a forward pass."""
        if self.dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device_type, dtype=self.dtype)

    def scaler(self) -> torch.amp.GradScaler:
        """A loss scaler: at work for fp16 alone, a no-op otherwise."""
        return torch.amp.GradScaler(self.device_type, enabled=self.dtype is torch.float16)


def resolve(requested: str, device: Device) -> Precision:
    """What can be had of ``requested`` on ``device``.

    ``auto`` is bf16 on CUDA where the GPU has it, else fp32: on MPS the gain of bf16 depends on the chip and is to be
    measured first (`mpstui bench`).
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
