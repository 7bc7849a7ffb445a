"""States of every random generator that a training draws from, in types that a weights-only load accepts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from .device import Device


def seed_everything(seed: int) -> None:
    """Seed Python, numpy and torch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def capture(device: Device) -> dict[str, Any]:
    """The states of Python, numpy, torch and the device."""
    version, numbers, gauss = random.getstate()
    kind, keys, *position = np.random.get_state(legacy=True)
    return {
        "python": [version, list(numbers), gauss],
        "numpy": [str(kind), torch.from_numpy(np.asarray(keys).astype(np.int64)), *position],
        "torch": torch.get_rng_state(),
        **device.rng_state(),
    }


def restore(states: Mapping[str, Any], device: Device) -> None:
    """Restore what :func:`capture` returned; generators of another kind of device stay as seeded."""
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers), gauss))
    kind, keys, *position = states["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *position))
    torch.set_rng_state(states["torch"])
    device.set_rng_state(states)
