"""Telemetry of one run over time, bounded in a file.

The file holds one JSON object per line, ``{"time": .., "gpu_percent": .., ...}``, with unknown quantities left out.
Each point is one write to a descriptor opened for appending, so that two monitors can follow one run. A torn last line
is skipped. If the file outgrows its bound, its older part is thinned: a long run keeps its whole course, ever more
coarsely.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...wire import heartbeat, storage
from ...wire.storage import UnreadableRecord
from ..model.snapshot import RunSnapshot
from .headroom import MemoryPoint, Point, is_growing, memory_point, slope
from .model import PressureLevel, Stretch, SystemSample, TreeSample


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """Quantities by name at ``time`` (Unix seconds); those not in ``values`` were unknown."""

    time: float
    values: Mapping[str, float]


class HistoryFile:
    """The points of one run, in one file. Telemetry is expendable: a full disk loses points and breaks nothing."""

    def __init__(self, path: Path, max_bytes: int = 4 * 2**20) -> None:
        self._path = path
        self._max_bytes = max_bytes

    def append(self, point: HistoryPoint) -> bool:
        """Add ``point``; return False if it could not be written."""
        try:
            storage.append_line(self._path, _as_record(point))
            if self._path.stat().st_size > self._max_bytes:
                self._thin()
        except OSError:
            return False
        return True

    def read(self) -> list[HistoryPoint]:
        """Return all points in order of time. Torn and foreign lines are skipped; a missing file is empty."""
        try:
            text = storage.read_text(self._path)
        except OSError:
            return []
        points: list[HistoryPoint] = []
        for line in text.splitlines():
            with contextlib.suppress(UnreadableRecord):
                known = {name: heartbeat.number(value) for name, value in storage.load_object(line).items()}
                time = known.pop("time", None)
                values = {name: value for name, value in known.items() if value is not None}
                points += [HistoryPoint(time, values)] if time is not None else []
        return sorted(points, key=lambda point: point.time)

    def _thin(self) -> None:
        with storage.open_file(self._path) as current:
            try:
                fcntl.flock(current, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # another monitor is thinning it
            lines = (storage.dump(_as_record(point)) + "\n" for point in coarsened(self.read()))
            storage.write_bytes(self._path, "".join(lines).encode(), sync=False)


def _as_record(point: HistoryPoint) -> dict[str, float]:
    finite = {name: value for name, value in point.values.items() if math.isfinite(value)}
    return {"time": round(point.time, 3), **finite}


def coarsened(points: Sequence[HistoryPoint]) -> list[HistoryPoint]:
    """Return about half of ``points``: the newest quarter, and of the rest the first in each of equal spans of time.

    Repeated, this keeps the whole course at an even resolution; dropping every second point would empty the oldest
    part.
    """
    quarter = len(points) // 4
    older, newest = points[: len(points) - quarter], points[len(points) - quarter :]
    if quarter == 0 or older[-1].time <= older[0].time:
        return list(points[-2 * quarter or None :])
    span = (older[-1].time - older[0].time) / quarter
    first_of: dict[int, HistoryPoint] = {}
    for point in older:
        first_of.setdefault(int((point.time - older[0].time) / span), point)
    return [*first_of.values(), *newest]


SYSTEM_FIELDS = ("cpu_percent", "memory_used_bytes", "swap_used_bytes", "pressure_percent", "power_watts")
GPU_FIELDS = ("busy_percent", "memory_used_bytes", "temperature_celsius", "power_watts", "clock_mhz")
TREE_FIELDS = ("rss_bytes", "footprint_bytes", "gpu_memory_bytes", "gpu_percent", "cpu_percent")
MEMORY_FIELDS = ("device_used", "allocated", "driver", "limit", "footprint", "system_used", "system_limit", "swap_used")
PRESSURE_LEVELS: tuple[PressureLevel, ...] = ("normal", "warn", "critical")
_HOT = frozenset({"heavy", "trapping", "sleeping"})


def run_point(system: SystemSample, tree: TreeSample | None, snapshot: RunSnapshot) -> HistoryPoint:
    """Return the known numbers of a sample by name: ``cpu_percent``, ``gpu0.busy_percent``, ``tree.rss_bytes`` and so
    on; with the trainer's step and epoch, its memory, the pressure level and whether the machine is throttled."""
    values = _known(system, "", SYSTEM_FIELDS)
    for gpu in system.gpus:
        values |= _known(gpu, f"gpu{gpu.index}.", GPU_FIELDS)
    if tree is not None:
        values |= _known(tree, "tree.", TREE_FIELDS)
    values |= _known(memory_now(system, tree, snapshot), "memory.", MEMORY_FIELDS)
    values |= _known(snapshot, "", ("attempt",)) | _known(snapshot.numbers, "", ("step", "epoch"))
    if system.pressure is not None:
        values["memory.pressure"] = PRESSURE_LEVELS.index(system.pressure)
    throttled = is_throttled(system)
    if throttled is not None:
        values["throttled"] = int(throttled)
    return HistoryPoint(system.time, values)


def memory_now(system: SystemSample, tree: TreeSample | None, snapshot: RunSnapshot) -> MemoryPoint:
    """Return what counts against each memory limit now."""
    # The trainer's card is known only if the machine has just one; it says nothing about a run on the CPU.
    own_card = system.gpus[0] if snapshot.numbers.device.type == "cuda" and len(system.gpus) == 1 else None
    return memory_point(system, tree, snapshot.numbers.memory._asdict(), own_card)


def memory_then(point: HistoryPoint) -> MemoryPoint:
    """Return what counted against each memory limit when a point was recorded; see :func:`memory_now`."""
    sizes = {name: _whole(point.values.get(f"memory.{name}")) for name in MEMORY_FIELDS}
    level = _whole(point.values.get("memory.pressure"))
    known = level is not None and 0 <= level < len(PRESSURE_LEVELS)
    pressure = PRESSURE_LEVELS[level] if known and level is not None else None
    busy = [value for name, value in point.values.items() if name.endswith(".busy_percent")]
    cpu, gpu = point.values.get("cpu_percent"), max(busy, default=None)
    return MemoryPoint(time=point.time, pressure=pressure, cpu_percent=cpu, gpu_percent=gpu, **sizes)


def is_unified(snapshot: RunSnapshot, system: SystemSample | None = None) -> bool:
    """Return whether device and system share memory: Apple's do, NVIDIA's if no card gives its own total (GB10)."""
    if snapshot.numbers.device.type != "cuda":
        return True
    cards = system.gpus if system is not None else ()
    return bool(cards) and all(card.memory_total_bytes is None for card in cards)


def is_throttled(system: SystemSample) -> bool | None:
    """Return whether the machine is slowed down by heat or by its power supply; None if it does not say."""
    cards = [gpu.is_throttled for gpu in system.gpus if gpu.is_throttled is not None]
    if system.thermal is None and not cards:
        return None
    return system.thermal in _HOT or any(cards)


def throttled_stretches(points: Sequence[HistoryPoint]) -> tuple[Stretch, ...]:
    """Return the stretches of steps during which the machine said that it was throttled."""
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
    """Return the power of all cards together; None if one of them does not report it."""
    known = [gpu.power_watts for gpu in system.gpus if gpu.power_watts is not None]
    return sum(known) if known and len(known) == len(system.gpus) else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _known(record: object, prefix: str, names: Sequence[str]) -> dict[str, float]:
    values = ((name, getattr(record, name)) for name in names)
    return {f"{prefix}{name}": round(value, 2) for name, value in values if value is not None}


RECENT_SECONDS = 600.0
"""A longer span would average over an epoch's validation."""
JUST_BEFORE_SECONDS = 30.0
_AMOUNTS = ("memory.driver", "memory.allocated", "memory.footprint")
"""What the trainer holds: on its device, else in total."""


def memory_growth(telemetry: Path, attempt: int) -> float | None:
    """Return bytes per second over the last ten recorded minutes of an attempt; 0.0 if memory did not grow.

    Telemetry is recorded only while a screen is open: None if there is too little of it to tell.
    """
    points = [point for point in HistoryFile(telemetry).read() if point.values.get("attempt") == attempt]
    courses: list[list[Point]] = [
        [(point.time, point.values[name]) for point in points if name in point.values] for name in _AMOUNTS
    ]
    course = next((found for found in courses if found), [])
    recent = [point for point in course if point[0] >= course[-1][0] - RECENT_SECONDS]
    found = slope(recent)
    return found if found is None or is_growing(recent) else 0.0


def machine_memory_used(telemetry: Path, attempt: int, ended: float) -> float | None:
    """Return the share of the machine's memory in use when an attempt ended; None if not recorded shortly before."""
    points = [point for point in HistoryFile(telemetry).read() if point.values.get("attempt") == attempt]
    last = next((point for point in reversed(points) if point.time <= ended), None)
    if last is None or ended - last.time > JUST_BEFORE_SECONDS:
        return None
    used, limit = last.values.get("memory.system_used"), last.values.get("memory.system_limit")
    return used / limit if used is not None and limit else None
