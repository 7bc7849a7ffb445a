"""What of a snapshot is worth keeping for a run, and reading it back as power."""

from __future__ import annotations

from collections.abc import Sequence

from mpstui.core.telemetry.energy import PowerPoint
from mpstui.core.telemetry.history import HistoryPoint
from mpstui.core.telemetry.model import SystemSample, TreeSample

SYSTEM_FIELDS = ("cpu_percent", "memory_used_bytes", "swap_used_bytes", "pressure_percent", "power_watts")
GPU_FIELDS = ("busy_percent", "memory_used_bytes", "temperature_celsius", "power_watts", "clock_mhz")
TREE_FIELDS = ("rss_bytes", "footprint_bytes", "gpu_memory_bytes", "gpu_percent", "cpu_percent")
_DECIMALS = 2


def history_point(system: SystemSample, tree: TreeSample | None = None) -> HistoryPoint:
    """The known numbers of a sample by name: ``cpu_percent``, ``gpu0.busy_percent``, ``tree.rss_bytes`` and so on."""
    values = _known(system, "", SYSTEM_FIELDS)
    for gpu in system.gpus:
        values |= _known(gpu, f"gpu{gpu.index}.", GPU_FIELDS)
    if tree is not None:
        values |= _known(tree, "tree.", TREE_FIELDS)
    return HistoryPoint(system.time, values)


def power_points(points: Sequence[HistoryPoint]) -> tuple[str, list[PowerPoint]]:
    """Power over time, and whose it is: ``"machine"`` where that was ever known, else ``"gpu"`` as the sum of all.

    The two are never mixed: their sum over time would be neither.
    """
    if any("power_watts" in point.values for point in points):
        return "machine", [PowerPoint(point.time, point.values.get("power_watts")) for point in points]
    return "gpu", [PowerPoint(point.time, _gpu_watts(point)) for point in points]


def _gpu_watts(point: HistoryPoint) -> float | None:
    """The sum over all cards seen at that moment; None if one of them did not tell."""
    cards = {name.partition(".")[0] for name in point.values if name.startswith("gpu")}
    watts = [point.values.get(f"{card}.power_watts") for card in cards]
    known = [value for value in watts if value is not None]
    return sum(known) if known and len(known) == len(watts) else None


def _known(record: object, prefix: str, names: Sequence[str]) -> dict[str, float]:
    values = ((name, getattr(record, name)) for name in names)
    return {f"{prefix}{name}": round(value, _DECIMALS) for name, value in values if value is not None}
