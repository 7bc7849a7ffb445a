"""What a callback is asked to do, looked for between two steps."""

from __future__ import annotations

import gc
import sys
from typing import Any

from ..reporting import report


def clear_cache_if_asked() -> None:
    """Give the memory back that torch holds on its device and no tensor uses, and say how much that was."""
    if not report.requested("clear_cache"):
        return
    backend = _backend()
    before = _held(backend)
    gc.collect()
    if before is None:
        report.answer("clear_cache", "nothing to free")
        return
    backend.empty_cache()
    after = _held(backend) or 0
    freed = max(0, before - after)
    report.answer("clear_cache", f"freed {freed / 2**20:,.0f} MiB", before=before, after=after, freed=freed)


def _backend() -> Any:
    """``torch.cuda`` or ``torch.mps``, whichever this process uses; None on the CPU."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda
    return torch.mps if torch.backends.mps.is_available() else None


def _held(backend: Any) -> int | None:
    if backend is None:
        return None
    read = getattr(backend, "memory_reserved", None) or backend.driver_allocated_memory
    return int(read())


def number(value: Any) -> float | None:
    """A number or a tensor of one; None for anything else."""
    try:
        return None if value is None or isinstance(value, (str, bool)) else float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
