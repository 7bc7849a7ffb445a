"""A device's memory, from its counters alone: no tensor is touched."""

from __future__ import annotations

from typing import Any

from ..wire.heartbeat import MemoryReading


def device_memory(torch: Any, device: str) -> MemoryReading:
    """Return the counters in bytes; all None for a device without any, such as the CPU."""
    if device == "mps":
        limit = getattr(torch.mps, "recommended_max_memory", None)
        held = torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory()
        return MemoryReading(*held, limit() if limit else None)
    if device == "cuda":
        held = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        return MemoryReading(*held, torch.cuda.get_device_properties().total_memory)
    return MemoryReading()
