"""What of a sample is worth keeping for a run, by name; and reading memory and throttling back from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpstui.core.telemetry.headroom import MemoryPoint, memory_point
from mpstui.core.telemetry.history import HistoryPoint
from mpstui.core.telemetry.model import GpuSample, PressureLevel, SystemSample, TreeSample
from mpstui.core.telemetry.throughput import Stretch

SYSTEM_FIELDS = ("cpu_percent", "memory_used_bytes", "swap_used_bytes", "pressure_percent", "power_watts")
GPU_FIELDS = ("busy_percent", "memory_used_bytes", "temperature_celsius", "power_watts", "clock_mhz")
TREE_FIELDS = ("rss_bytes", "footprint_bytes", "gpu_memory_bytes", "gpu_percent", "cpu_percent")
MEMORY_FIELDS = ("device_used", "allocated", "driver", "limit", "footprint", "system_used", "system_limit", "swap_used")
PRESSURE_LEVELS: tuple[PressureLevel, ...] = ("normal", "warn", "critical")
_HOT = frozenset({"heavy", "trapping", "sleeping"})
# A power cap is the normal state of a card under full load; these are not.
_HURTING = ("thermal", "brake", "hardware slowdown")
_DECIMALS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerFacts:
    """What the trainer itself reports, as far as telemetry needs it; sizes in bytes, ``started`` in Unix seconds."""

    attempt: int = 0
    started: float | None = None
    device: str | None = None
    """``cuda``, ``mps`` or ``cpu``."""
    step: float | None = None
    epoch: float | None = None
    allocated: int | None = None
    driver: int | None = None
    limit: int | None = None
    footprint: int | None = None


def history_point(system: SystemSample, tree: TreeSample | None = None) -> HistoryPoint:
    """The known numbers of a sample by name: ``cpu_percent``, ``gpu0.busy_percent``, ``tree.rss_bytes`` and so on."""
    values = _known(system, "", SYSTEM_FIELDS)
    for gpu in system.gpus:
        values |= _known(gpu, f"gpu{gpu.index}.", GPU_FIELDS)
    if tree is not None:
        values |= _known(tree, "tree.", TREE_FIELDS)
    return HistoryPoint(system.time, values)


def run_point(system: SystemSample, tree: TreeSample | None, trainer: TrainerFacts) -> HistoryPoint:
    """:func:`history_point` with where the trainer is, its memory, the pressure level and whether it is throttled."""
    memory = memory_now(system, tree, trainer)
    values = dict(history_point(system, tree).values)
    values |= _known(memory, "memory.", MEMORY_FIELDS)
    values |= _known(trainer, "", ("attempt", "step", "epoch"))
    if system.pressure is not None:
        values["memory.pressure"] = PRESSURE_LEVELS.index(system.pressure)
    throttled = is_throttled(system)
    if throttled is not None:
        values["throttled"] = int(throttled)
    return HistoryPoint(system.time, values)


def memory_now(system: SystemSample, tree: TreeSample | None, trainer: TrainerFacts) -> MemoryPoint:
    """What counts against each limit at this moment."""
    reported = {name: getattr(trainer, name) for name in ("allocated", "driver", "limit", "footprint")}
    return memory_point(system, tree, reported, _own_card(system, trainer))


def memory_then(point: HistoryPoint) -> MemoryPoint:
    """The same of a point that was kept."""
    sizes = {name: _whole(point.values.get(f"memory.{name}")) for name in MEMORY_FIELDS}
    level = _whole(point.values.get("memory.pressure"))
    known = level is not None and 0 <= level < len(PRESSURE_LEVELS)
    pressure = PRESSURE_LEVELS[level] if known and level is not None else None
    return MemoryPoint(time=point.time, pressure=pressure, **sizes)


def is_unified(trainer: TrainerFacts, system: SystemSample | None = None) -> bool:
    """Whether device and system share memory: Apple's do, NVIDIA's where no card tells a total of its own (GB10)."""
    if trainer.device != "cuda":
        return True
    cards = system.gpus if system is not None else ()
    return bool(cards) and all(card.memory_total_bytes is None for card in cards)


def is_throttled(system: SystemSample) -> bool | None:
    """Whether the machine says that it is slowed down by heat or by its power supply; None where it says nothing."""
    reasons = [gpu.throttle_reasons for gpu in system.gpus if gpu.throttle_reasons is not None]
    if system.thermal is None and not reasons:
        return None
    hurting = any(word in reason for words in reasons for reason in words for word in _HURTING)
    return system.thermal in _HOT or hurting


def throttled_stretches(points: Sequence[HistoryPoint]) -> tuple[Stretch, ...]:
    """Steps during which the machine said that it was throttled."""
    found: list[Stretch] = []
    open_since: float | None = None
    last = 0.0
    for point in points:
        step = point.values.get("step")
        if step is None:
            continue
        if point.values.get("throttled"):
            open_since, last = step if open_since is None else open_since, step
        elif open_since is not None:
            found.append(Stretch(open_since, last))
            open_since = None
    return (*found, Stretch(open_since, last)) if open_since is not None else tuple(found)


def gpu_watts(system: SystemSample) -> float | None:
    """The sum over all cards; None if one of them does not tell."""
    known = [gpu.power_watts for gpu in system.gpus if gpu.power_watts is not None]
    return sum(known) if known and len(known) == len(system.gpus) else None


def _own_card(system: SystemSample, trainer: TrainerFacts) -> GpuSample | None:
    """The trainer's card, where only one can be meant; a card's memory says nothing about a run on the CPU."""
    return system.gpus[0] if trainer.device == "cuda" and len(system.gpus) == 1 else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _known(record: object, prefix: str, names: Sequence[str]) -> dict[str, float]:
    values = ((name, getattr(record, name)) for name in names)
    return {f"{prefix}{name}": round(value, _DECIMALS) for name, value in values if value is not None}
