"""Heartbeat files: ours by schema 1, other programs' through the table of aliases; the last good one is kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ...wire import heartbeat
from ...wire.heartbeat import DeviceReading, Heartbeat, MemoryReading
from ...wire.storage import UnreadableRecord
from ..follow.file import RecordFile
from .witness import Machine

DRIFT_SECONDS = 60.0
SLEEP_NOTE_SECONDS = 600.0
"""How long a sleep that is over is still told."""
_MILLISECONDS_FROM = 1e11
"""A Unix time beyond the year 5000 is one in milliseconds."""


class Silence(NamedTuple):
    """How long a heartbeat is old: awake seconds, and seconds that the machine slept since."""

    awake: float
    slept: float


class BeatFile:
    """One heartbeat file, followed."""

    def __init__(self, path: Path, machine: Machine) -> None:
        self.path = path
        self.beat: Heartbeat | None = None
        """The newest one that could be read."""
        self.ours = False
        """Written to our schema: its phase, its promise and its clock can be relied upon."""
        self.slept_seconds = 0.0
        """Length of the last sleep between two beats; see :meth:`slept_before`."""
        self._woke = 0.0
        self._machine = machine
        self._file = RecordFile[Mapping[str, Any]](path, dict)

    def read(self) -> float | None:
        """Look; None when nothing new can be read, else the seconds of sleep since the beat before."""
        if not self._file.read() or self._file.value is None:
            return None  # perhaps being written by a program that does not rename: the next look sees it whole
        beat = self._parse(self._file.value, self._file.modified_ns or 0)
        return self._take(beat) if beat is not None else None

    def silence(self) -> Silence | None:
        """Since the newest beat; None when there was none."""
        beat = self.beat
        if beat is None:
            return None
        wall = max(0.0, self._machine.clock() - beat.time)
        if beat.monotonic is None or not beat.boot_id or beat.boot_id != self._machine.boot_id:
            return Silence(wall, 0.0)
        awake = self._machine.monotonic() - beat.monotonic
        if awake < 0:
            return Silence(wall, 0.0)
        return Silence(awake, max(0.0, wall - awake))

    def slept_before(self, now: float) -> float:
        """A sleep that ended a while ago, in seconds; 0 when there was none lately."""
        return self.slept_seconds if now - self._woke < SLEEP_NOTE_SECONDS else 0.0

    def _parse(self, record: Mapping[str, Any], modified_ns: int) -> Heartbeat | None:
        try:
            beat = heartbeat.from_json(record)
            self.ours = True
        except UnreadableRecord:
            other = foreign_heartbeat(record, modified_ns / 1e9, modified_ns)
            self.ours = self.ours and other is None
            return other
        return beat

    def _take(self, beat: Heartbeat) -> float:
        before, self.beat = self.beat, beat
        if before is None or before.monotonic is None or beat.monotonic is None or before.boot_id != beat.boot_id:
            return 0.0
        slept = (beat.time - before.time) - (beat.monotonic - before.monotonic)
        if slept < DRIFT_SECONDS:
            return 0.0
        self.slept_seconds, self._woke = slept, beat.time
        return slept


def foreign_heartbeat(record: Mapping[str, Any], modified: float, seq: int) -> Heartbeat | None:
    """Another program's heartbeat; None when nothing in it is a counter, a loss or a rate.

    Args:
        modified: of the file, Unix seconds: its age where the record tells no time of its own.
    """
    from ..formats.records import read_record

    try:
        reading = read_record(record, "heartbeat")
    except (ValueError, OverflowError):
        return None  # a count that is infinite counts nothing
    if reading is None:
        return None
    counters = reading.counters
    rate = reading.throughput_unit.lower()
    return Heartbeat(
        time=_moment(record) or modified,
        seq=seq,
        pid=heartbeat.integer(record.get("pid")),
        phase=_phase(record),
        device=_device(record),
        epoch=counters.epoch,
        epochs=counters.epochs,
        step=heartbeat.integer(counters.step),
        steps=heartbeat.integer(counters.steps),
        epoch_step=heartbeat.integer(counters.epoch_step),
        epoch_steps=heartbeat.integer(counters.epoch_steps),
        loss=heartbeat.number(reading.loss),
        lr=heartbeat.number(reading.learning_rate),
        metrics={name: heartbeat.number(value) for name, value in {**reading.metrics, **reading.eval_metrics}.items()},
        samples_per_second=reading.throughput if rate.startswith(("samples", "images", "train_samples")) else None,
        steps_per_second=reading.throughput if rate in ("steps_per_second", "it_s") else None,
        memory=_memory(record),
        nonfinite=("loss",) if reading.loss is not None and heartbeat.number(reading.loss) is None else (),
    )


def _moment(record: Mapping[str, Any]) -> float | None:
    for name in ("time", "timestamp", "ts", "updated", "updated_at", "_timestamp"):
        value = record.get(name)
        found = heartbeat.number(value)
        if found is not None and found > 1e9:
            return found / 1000 if found > _MILLISECONDS_FROM else found
        if isinstance(value, str):
            try:
                return datetime.fromisoformat(value).timestamp()
            except (ValueError, OverflowError, OSError):
                continue
    return None


def _phase(record: Mapping[str, Any]) -> str | None:
    told = record.get("phase")
    word = told.strip().lower() if isinstance(told, str) else ""
    return {"validation": "eval", "val": "eval", "test": "eval", "training": "train"}.get(
        word, word if word in heartbeat.PHASES else None
    )


def _device(record: Mapping[str, Any]) -> DeviceReading:
    told = record.get("device")
    if isinstance(told, Mapping):
        return DeviceReading(*(heartbeat.text(told.get(name)) for name in ("type", "name", "precision")))
    return DeviceReading(type=told.partition(":")[0]) if isinstance(told, str) else DeviceReading()


def _memory(record: Mapping[str, Any]) -> MemoryReading:
    told = record.get("memory")
    found = told if isinstance(told, Mapping) else {}
    names = ("allocated", "driver", "limit", "rss", "footprint")
    return MemoryReading(**{name: heartbeat.integer(found.get(name)) for name in names})
