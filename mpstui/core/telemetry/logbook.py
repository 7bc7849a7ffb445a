"""What telemetry knows of one run: its past from a bounded file, the present from samples, and what follows from both.

The file belongs to whoever holds the lock beside it. A second screen on the same run reads it, keeps its own samples in
memory and takes over when the first one has gone; nothing is written twice, and no energy is counted twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...wire import liveness
from ...wire.rundir import RunDir
from .energy import EnergyMeter, RunEnergy, run_energy
from .headroom import Headroom, MemoryPoint, headroom
from .history import (
    HistoryFile,
    HistoryPoint,
    TrainerFacts,
    coarsened,
    gpu_watts,
    is_unified,
    memory_now,
    memory_then,
    run_point,
    throttled_stretches,
)
from .model import SystemSample, TreeSample
from .throughput import Stretch

RECORD_SECONDS = 5.0
MAX_FILE_BYTES = 1 << 19
MAX_POINTS = 1200
RETRY_LOCK_SECONDS = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Outlook:
    """The course of one run's memory up to now and what it foretells, its energy, and where it was throttled."""

    course: tuple[MemoryPoint, ...] = ()
    """In order of time; the last is the newest."""
    headroom: Headroom | None = None
    energy: RunEnergy | None = None
    throttled: tuple[Stretch, ...] = ()
    """Steps during which the machine said that it was slowed down."""


@dataclass(slots=True)
class _Past:
    points: list[HistoryPoint] = field(default_factory=list)
    memory: list[MemoryPoint] = field(default_factory=list)

    def add(self, point: HistoryPoint) -> None:
        self.points.append(point)
        self.memory.append(memory_then(point))
        if len(self.points) > MAX_POINTS:
            self.points = coarsened(self.points)
            self.memory = [memory_then(kept) for kept in self.points]


class Logbook:
    """For one thread. Raises nothing: telemetry that cannot be kept is shown all the same."""

    def __init__(self, run: RunDir | None) -> None:
        """Read the past of ``run``; None keeps everything in memory."""
        self._run = run
        self._file = HistoryFile(run.telemetry, MAX_FILE_BYTES) if run is not None else None
        self._lock: int | None = None
        self._try_lock_at = -math.inf
        self._recorded_at = -math.inf
        self._past = _Past()
        self._meter = EnergyMeter()
        self._outlook = Outlook()
        self._recalled: Outlook | None = None
        self._read()

    @property
    def writes(self) -> bool:
        """Whether this one keeps the file."""
        return self._lock is not None

    def note(self, system: SystemSample, tree: TreeSample | None, trainer: TrainerFacts) -> Outlook:
        """Take in a sample of a run that lives; what is known now."""
        self._hold_lock(system.time)
        self._meter.add(system.time, {"machine": system.power_watts, "gpu": gpu_watts(system)})
        if abs(system.time - self._recorded_at) < RECORD_SECONDS:
            return self._outlook
        self._recorded_at, self._recalled = system.time, None
        point = run_point(system, tree, trainer)
        point = HistoryPoint(point.time, {**point.values, **self._meter.counters})
        self._past.add(point)
        if self._file is not None and self.writes:
            self._file.append(point)
        return self._look(memory_now(system, tree, trainer), trainer, is_unified(trainer, system))

    def recall(self, trainer: TrainerFacts) -> Outlook:
        """What is known of a run that has ended, from its past alone."""
        if self._recalled is None:
            memory = self._past.memory
            self._recalled = self._look(memory[-1], trainer, is_unified(trainer)) if memory else self._outlook
        return self._recalled

    def close(self) -> None:
        """Leave the file to another screen."""
        if self._lock is not None:
            liveness.release(self._lock)
            self._lock = None

    def _look(self, now: MemoryPoint, trainer: TrainerFacts, unified: bool) -> Outlook:
        course = (*self._past.memory[:-1], now)
        self._outlook = Outlook(
            course=course,
            headroom=headroom(course, unified=unified),
            energy=run_energy(self._past.points, trainer.started),
            throttled=throttled_stretches(self._past.points),
        )
        return self._outlook

    def _read(self) -> None:
        points = self._file.read() if self._file is not None else []
        self._past = _Past(points, [memory_then(point) for point in points])
        self._meter = EnergyMeter(points[-1] if points else None)

    def _hold_lock(self, now: float) -> None:
        if self._run is None or self._lock is not None or now < self._try_lock_at:
            return
        self._try_lock_at = now + RETRY_LOCK_SECONDS
        try:
            self._lock = liveness.acquire(self._run.telemetry_lock)
        except OSError:
            return  # a folder that cannot be written to, or a file system without locks: nothing is kept
        if self._lock is not None:
            self._read()  # another screen may have written since
