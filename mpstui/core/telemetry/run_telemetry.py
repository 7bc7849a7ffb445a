"""What telemetry knows of one run: its past from a bounded file, the present from samples, and what follows from both.

Only the holder of the lock beside the file writes to it. A second screen on the same run reads it, keeps its own
samples in memory and takes over when the first one has gone: nothing is written twice, no energy counted twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...wire import liveness
from ...wire.rundir import RunDir
from ..model.snapshot import RunSnapshot, State
from .energy import EnergyMeter, RunEnergy, run_energy
from .headroom import Headroom, MemoryPoint, headroom
from .history import (
    HistoryFile,
    HistoryPoint,
    coarsened,
    gpu_watts,
    is_unified,
    memory_now,
    memory_then,
    run_point,
    throttled_stretches,
)
from .model import Stretch, SystemSample, TreeSample

RECORD_SECONDS = 5.0
MAX_FILE_BYTES = 1 << 19
MAX_POINTS = 1200
RETRY_LOCK_SECONDS = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class RunTelemetry:
    """One run's memory up to now and its forecast, its energy, and where it was throttled."""

    memory: tuple[MemoryPoint, ...] = ()
    """In order of time, the newest last."""
    headroom: Headroom | None = None
    energy: RunEnergy | None = None
    throttled: tuple[Stretch, ...] = ()
    """Steps during which the machine said that it was slowed down."""


class TelemetryRecorder:
    """Records samples while a run's processes live; afterwards it only reads them back. For one thread.

    Raises nothing: telemetry that cannot be recorded is still shown.
    """

    def __init__(self, snapshot: RunSnapshot) -> None:
        # A run that mpstui did not start may be in somebody else's folder: nothing is written there.
        self._run = RunDir(snapshot.dir) if snapshot.is_ours else None
        self._file = HistoryFile(self._run.telemetry, MAX_FILE_BYTES) if self._run is not None else None
        self._lock: int | None = None
        self._try_lock_at = -math.inf
        self._recorded_at = -math.inf
        self._past: list[HistoryPoint] = []
        self._memory: list[MemoryPoint] = []
        self._known = RunTelemetry()
        self._recalled: RunTelemetry | None = None
        self._read()

    @property
    def writes(self) -> bool:
        """Whether this recorder writes the file."""
        return self._lock is not None

    def poll(self, snapshot: RunSnapshot, system: SystemSample, tree: TreeSample | None) -> RunTelemetry:
        """Return what is known of the run, including this sample; of a run that has ended, from its past alone."""
        if snapshot.state.active and (snapshot.pid is not None or snapshot.state is State.WATCHED):
            return self._note(snapshot, system, tree)
        if self._recalled is None:
            past = self._memory
            self._recalled = self._judge(past[-1], snapshot, is_unified(snapshot)) if past else self._known
        return self._recalled

    def close(self) -> None:
        """Release the lock, so that another screen may write the file."""
        if self._lock is not None:
            liveness.release(self._lock)
            self._lock = None

    def _note(self, snapshot: RunSnapshot, system: SystemSample, tree: TreeSample | None) -> RunTelemetry:
        self._hold_lock(system.time)
        self._meter.add(system.time, {"machine": system.power_watts, "gpu": gpu_watts(system)})
        if abs(system.time - self._recorded_at) < RECORD_SECONDS:
            return self._known
        self._recorded_at, self._recalled = system.time, None
        point = run_point(system, tree, snapshot)
        point = HistoryPoint(point.time, {**point.values, **self._meter.counters})
        self._past.append(point)
        self._memory.append(memory_then(point))
        if len(self._past) > MAX_POINTS:
            self._past = coarsened(self._past)
            self._memory = [memory_then(kept) for kept in self._past]
        if self._file is not None and self.writes:
            self._file.append(point)
        return self._judge(memory_now(system, tree, snapshot), snapshot, is_unified(snapshot, system))

    def _judge(self, now: MemoryPoint, snapshot: RunSnapshot, unified: bool) -> RunTelemetry:
        memory = (*self._memory[:-1], now)
        self._known = RunTelemetry(
            memory=memory,
            headroom=headroom(memory, unified=unified),
            energy=run_energy(self._past, snapshot.started),
            throttled=throttled_stretches(self._past),
        )
        return self._known

    def _read(self) -> None:
        self._past = self._file.read() if self._file is not None else []
        self._memory = [memory_then(point) for point in self._past]
        self._meter = EnergyMeter(self._past[-1] if self._past else None)

    def _hold_lock(self, now: float) -> None:
        if self._run is None or self._lock is not None or now < self._try_lock_at:
            return
        self._try_lock_at = now + RETRY_LOCK_SECONDS
        try:
            self._lock = liveness.acquire(self._run.telemetry_lock)
        except OSError:
            return  # a read-only folder, or a file system without locks: nothing is recorded
        if self._lock is not None:
            self._read()  # another screen may have written to it since
