"""The evidence of a run that mpstui started: what its newest attempt left, from exit record to telemetry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ...wire import atomic, heartbeat, records
from ...wire.jsontext import UnreadableRecord
from ...wire.rundir import AttemptDir, RunDir
from ..telemetry.history import memory_growth
from .log_file import log_lines
from .model import Evidence, HeartbeatEvidence, LogLine

R = TypeVar("R", bound=records.Record)


def evidence_from_run_dir(directory: Path, *, attempt: int | None = None) -> Evidence:
    """Return what a run directory says about the end of an attempt, by default the newest; missing and torn files are
    unknown.

    A run without any attempt, or one that has not ended, gives evidence without signal and exit code.
    """
    run = RunDir(directory)
    number = attempt if attempt is not None else max(run.attempt_numbers(), default=None)
    if number is None:
        return Evidence()
    return _evidence_of_attempt(run.attempt(number), memory_growth(run.telemetry, number))


def _evidence_of_attempt(attempt: AttemptDir, growth: float | None) -> Evidence:
    exit_record = _record(records.ExitRecord, attempt.exit)
    launch = _record(records.LaunchRecord, attempt.launch)
    heard = _heartbeat(attempt.heartbeat(), launch.device if launch else None)
    return Evidence(
        lines=_output(attempt.output),
        signal=exit_record.signal if exit_record else None,
        exit_code=exit_record.code if exit_record else None,
        requested_by=exit_record.requested_by if exit_record else None,
        heartbeat=replace(heard, memory_slope_bytes_per_second=growth),
        environment=launch.env if launch else {},
        memory_events=tuple(exit_record.evidence.values()) if exit_record else (),
    )


def _record(kind: type[R], path: Path) -> R | None:
    try:
        return records.read(kind, path)
    except (UnreadableRecord, OSError):
        return None


def _output(path: Path) -> tuple[LogLine, ...]:
    try:
        return log_lines(path)
    except OSError:
        return ()


def _heartbeat(path: Path, launched_device: str | None) -> HeartbeatEvidence:
    try:
        record = atomic.read_json(path)
        beat = heartbeat.from_json(record) if record is not None else None
    except (UnreadableRecord, OSError):
        beat = None
    if beat is None:
        return HeartbeatEvidence(device=launched_device)
    return HeartbeatEvidence(
        phase=beat.phase,
        step=beat.step,
        device=beat.device.type or launched_device,
        precision=beat.device.precision,
        nonfinite=beat.nonfinite,
        memory_ratio=_memory_ratio(beat.memory),
    )


def _memory_ratio(memory: heartbeat.MemoryReading) -> float | None:
    """Memory held by the device over its recommended maximum; ``None`` when either is unknown."""
    used = memory.driver if memory.driver is not None else memory.allocated
    return used / memory.limit if used is not None and memory.limit else None
