"""The heartbeat, schema 1: what a trainer says of itself, at most once a second, in one small file.

Every field but ``schema``, ``time`` and ``seq`` may be absent, and absent means unknown. Non-finite numbers travel as
null and are named in ``nonfinite``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from . import jsontext
from .values import Value, field

SCHEMA = 1
PHASES = ("setup", "train", "eval", "save", "done")


class DeviceReading(Value):
    """The device a trainer really runs on."""

    type: str | None = None
    name: str | None = None
    precision: str | None = None


class MemoryReading(Value):
    """Memory in bytes, as the trainer itself sees it.

    ``allocated`` is what live tensors hold, ``driver`` all the device holds for this process (cache included): their
    difference is what clearing the cache can return. ``limit`` is the device's recommended maximum.
    """

    allocated: int | None = None
    driver: int | None = None
    limit: int | None = None
    rss: int | None = None
    footprint: int | None = None


class CheckpointNote(Value):
    """The newest checkpoint a trainer wrote."""

    path: str
    step: int | None = None
    time: float | None = None


class Heartbeat(Value):
    """One heartbeat. Epochs count from 1, the one being trained; steps count what is done."""

    time: float
    seq: int
    schema: int = SCHEMA
    run: str | None = None
    attempt: int | None = None
    pid: int | None = None
    rank: int | None = None
    world_size: int | None = None
    monotonic: float | None = None
    boot_id: str | None = None
    expect_next_in: float | None = None
    """Seconds until the next beat at the latest: the writer's own promise."""
    phase: str | None = None
    device: DeviceReading = field(default_factory=DeviceReading)
    epoch: float | None = None
    epochs: float | None = None
    step: int | None = None
    steps: int | None = None
    epoch_step: int | None = None
    epoch_steps: int | None = None
    loss: float | None = None
    lr: float | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    samples_per_second: float | None = None
    steps_per_second: float | None = None
    memory: MemoryReading = field(default_factory=MemoryReading)
    checkpoint: CheckpointNote | None = None
    nonfinite: tuple[str, ...] = ()
    data: str | None = None
    """What is trained on, in a few words; generated data says "synthetic"."""


def to_json(beat: Heartbeat) -> dict[str, Any]:
    """The heartbeat as its JSON object: unknown fields are left out, non-finite numbers named."""
    record = {name: value for name, value in vars(beat).items() if value is not None and value != ()}
    record["device"] = _known(beat.device)
    record["memory"] = _known(beat.memory)
    record["metrics"] = dict(beat.metrics)
    if beat.checkpoint:
        record["checkpoint"] = _known(beat.checkpoint)
    nonfinite = [*beat.nonfinite, *_nonfinite_names(record)]
    if nonfinite:
        record["nonfinite"] = sorted(set(nonfinite))
    return {name: value for name, value in record.items() if value != {}}


def from_json(record: Mapping[str, Any]) -> Heartbeat:
    """Read a heartbeat of schema 1; a field of the wrong type is unknown, not an error.

    Raises:
        UnreadableRecord: ``schema``, ``time`` or ``seq`` is missing, or the schema is not ours.
    """
    moment, seq = number(record.get("time")), integer(record.get("seq"))
    if record.get("schema") != SCHEMA or moment is None or seq is None:
        raise jsontext.UnreadableRecord("not a heartbeat of schema 1")
    return Heartbeat(
        time=moment,
        seq=seq,
        run=text(record.get("run")),
        boot_id=text(record.get("boot_id")),
        phase=text(record.get("phase")),
        data=text(record.get("data")),
        device=_device(record.get("device")),
        memory=_memory(record.get("memory")),
        checkpoint=_checkpoint(record.get("checkpoint")),
        metrics=_metrics(record.get("metrics")),
        nonfinite=tuple(name for name in _sequence(record.get("nonfinite")) if isinstance(name, str)),
        **_plain_numbers(record),
    )


_INTEGERS = ("attempt", "pid", "rank", "world_size", "step", "steps", "epoch_step", "epoch_steps")
_NUMBERS = ("monotonic", "expect_next_in", "epoch", "epochs", "loss", "lr", "samples_per_second", "steps_per_second")


def _plain_numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    whole = {name: integer(record.get(name)) for name in _INTEGERS}
    return {**whole, **{name: number(record.get(name)) for name in _NUMBERS}}


def number(value: Any) -> float | None:
    """A finite number, or None for anything else (a bool is no number)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # JSON's integers have any length, and nothing that is counted here has 309 digits
        return None


def integer(value: Any) -> int | None:
    """A whole number, or None for anything else."""
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def text(value: Any) -> str | None:
    """A string, or None for anything else."""
    return value if isinstance(value, str) else None


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _device(value: Any) -> DeviceReading:
    found = _mapping(value)
    return DeviceReading(**{name: text(found.get(name)) for name in ("type", "name", "precision")})


def _memory(value: Any) -> MemoryReading:
    found = _mapping(value)
    names = ("allocated", "driver", "limit", "rss", "footprint")
    return MemoryReading(**{name: integer(found.get(name)) for name in names})


def _checkpoint(value: Any) -> CheckpointNote | None:
    found = _mapping(value)
    path = text(found.get("path"))
    return CheckpointNote(path, integer(found.get("step")), number(found.get("time"))) if path else None


def _metrics(value: Any) -> dict[str, float | None]:
    return {str(name): number(item) for name, item in _mapping(value).items()}


def _known(value: Any) -> dict[str, Any]:
    return {name: item for name, item in vars(value).items() if item is not None}


def _nonfinite_names(record: Mapping[str, Any]) -> list[str]:
    numbers = {**record, **record["metrics"]}
    return [name for name, item in numbers.items() if isinstance(item, float) and not math.isfinite(item)]
