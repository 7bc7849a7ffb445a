"""The heartbeat, schema 1: what a trainer reports about itself, at most once a second, in one small file.

Every field but ``schema``, ``time`` and ``seq`` may be absent, and absent means unknown. Non-finite numbers travel as
null and are named in ``nonfinite``.
"""

# No `from __future__ import annotations` here: reading follows the annotations.
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional

from . import storage
from .storage import UnreadableRecord

SCHEMA = 1
PHASES = ("setup", "compile", "train", "eval", "save", "done")


class DeviceReading(NamedTuple):
    """The device a trainer really runs on."""

    type: Optional[str] = None
    name: Optional[str] = None
    precision: Optional[str] = None


class MemoryReading(NamedTuple):
    """Memory in bytes, as the trainer itself sees it.

    ``allocated`` is what live tensors hold, ``driver`` everything the device holds for this process (cache included);
    the difference is what clearing the cache can return. ``limit`` is the device's recommended maximum.
    """

    allocated: Optional[int] = None
    driver: Optional[int] = None
    limit: Optional[int] = None
    rss: Optional[int] = None
    footprint: Optional[int] = None


class CheckpointNote(NamedTuple):
    """The newest checkpoint a trainer wrote."""

    path: str
    step: Optional[int] = None
    time: Optional[float] = None


class Heartbeat(NamedTuple):
    """One heartbeat. Epochs count from 1 and name the one being trained; steps count those that are done."""

    time: float
    seq: int
    schema: int = SCHEMA
    run: Optional[str] = None
    attempt: Optional[int] = None
    pid: Optional[int] = None
    rank: Optional[int] = None
    world_size: Optional[int] = None
    monotonic: Optional[float] = None
    boot_id: Optional[str] = None
    expect_next_in: Optional[float] = None
    """The writer promises the next beat within this many seconds."""
    phase: Optional[str] = None
    device: DeviceReading = DeviceReading()
    epoch: Optional[float] = None
    epochs: Optional[float] = None
    step: Optional[int] = None
    steps: Optional[int] = None
    epoch_step: Optional[int] = None
    epoch_steps: Optional[int] = None
    loss: Optional[float] = None
    lr: Optional[float] = None
    metrics: Mapping[str, Optional[float]] = {}
    samples_per_second: Optional[float] = None
    steps_per_second: Optional[float] = None
    memory: MemoryReading = MemoryReading()
    checkpoint: Optional[CheckpointNote] = None
    nonfinite: tuple[str, ...] = ()
    data: Optional[str] = None
    """What it trains on, in a few words; "synthetic" for generated data."""
    loss_seen: Optional[str] = None
    """Where the agent gets the loss from: ``backward`` (the tensor it is called on; what the program prints is more
    reliable) or ``trainer`` (a framework reports it). Set even before the first loss. None: the program reports."""
    step_from: Optional[str] = None
    """``process``: steps count from the start of this process, which may have resumed from a checkpoint; ``updates``:
    they are optimizer updates, in a reinforcement learning program that counts environment steps itself;
    ``evaluations``: a step evaluates its loss several times, which the program may count."""
    first_epoch: Optional[int] = None
    """0 if the program counts its epochs from 0; None: from 1."""
    begun_step: Optional[int] = None
    """How many of the steps were done before this process, if it resumed from a checkpoint."""
    training: Optional[int] = None
    """The number of this training within the process, set from the second on, as in a search or a cross-validation.
    ``epoch`` and the planned totals belong to it alone; an agent's ``step`` keeps counting across all trainings."""
    reported: tuple[str, ...] = ()
    """The fields that the training code itself reports with ``report()``; the agent observed the rest."""
    answers: tuple[str, ...] = ()
    """Requests that the trainer carries out itself; with ``stop`` among them, it saves before it ends."""
    doing: Optional[str] = None
    """The trainer's own word for what it is doing, if none of our phases fits."""
    batch_size: Optional[int] = None
    """Samples in one batch of training data, in this process alone."""
    accumulate: Optional[int] = None
    """Batches per optimizer step."""
    epoch_batches: Optional[int] = None
    """Batches in an epoch, if a last group too small for a step is carried over: some epochs have one step more."""
    planned_epochs: Optional[float] = None
    """The total according to the program's parsed arguments, defaults included: the program may not go by it."""
    planned_steps: Optional[int] = None
    """The same for steps, if the arguments give no epochs."""
    planned_batch_size: Optional[int] = None
    """The batch size according to the same arguments."""


def to_json(beat: Heartbeat) -> dict[str, Any]:
    """The heartbeat as its JSON object: unknown fields are left out, non-finite numbers named."""
    record = {name: value for name, value in beat._asdict().items() if value is not None and value != ()}
    for name in ("device", "memory", "checkpoint"):
        if name in record:
            record[name] = {part: value for part, value in record[name]._asdict().items() if value is not None}
    numbers = {**record, **beat.metrics}
    nonfinite = {name for name, item in numbers.items() if isinstance(item, float) and not math.isfinite(item)}
    if nonfinite or beat.nonfinite:
        record["nonfinite"] = sorted(nonfinite.union(beat.nonfinite))
    return {name: value for name, value in record.items() if value != {}}


def from_json(record: Mapping[str, Any]) -> Heartbeat:
    """Read a heartbeat of schema 1; a field of the wrong type is unknown, not an error.

    Raises:
        UnreadableRecord: ``schema``, ``time`` or ``seq`` is missing, or the schema is not ours.
    """
    if record.get("schema") != SCHEMA or number(record.get("time")) is None or integer(record.get("seq")) is None:
        raise UnreadableRecord("not a heartbeat of schema 1")
    return Heartbeat(**{name: fit(record.get(name)) for name, fit in _HEARTBEAT})


def epoch_told(epoch: Optional[float], epochs: Optional[float], first_epoch: Optional[int]) -> Optional[float]:
    """Return the epoch being trained as it is shown everywhere: on the screen, in lists, in JSON and in alerts.

    If a program counts from 0 and the total is known, one is added, so that the last of four is ``4/4``.
    """
    if epoch is None or epochs is None or first_epoch != 0:
        return epoch
    return epoch + 1 if isinstance(epoch, int) and epoch < epochs else epoch


def read(path: Path) -> Optional[Heartbeat]:
    """Return the heartbeat in a file; None if there is none or it cannot be read."""
    try:
        record = storage.read_json(path)
        return from_json(record) if record is not None else None
    except (OSError, ValueError, UnreadableRecord):  # ValueError: a path no system has
        return None


def number(value: Any) -> Optional[float]:
    """A finite number, or None for anything else (a bool is no number)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # JSON's integers may be of any length; none of ours has 309 digits
        return None


def integer(value: Any) -> Optional[int]:
    """A whole number, or None for anything else."""
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def text(value: Any) -> Optional[str]:
    """A string, or None for anything else."""
    return value if isinstance(value, str) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _part(kind: Any) -> Callable[[Any], Any]:
    """Return a reader for a field whose value is an object of its own."""
    readers = _readers(kind)
    return lambda value: kind(**{name: fit(_mapping(value).get(name)) for name, fit in readers})


def _readers(kind: Any) -> list[tuple[str, Callable[[Any], Any]]]:
    """Pair each field with the reader for its annotation."""
    return [(name, _READ[hint]) for name, hint in kind.__annotations__.items()]


_READ: dict[Any, Callable[[Any], Any]] = {
    int: integer,
    Optional[int]: integer,
    float: number,
    Optional[float]: number,
    str: text,
    Optional[str]: text,
    Mapping[str, Optional[float]]: lambda value: {str(name): number(item) for name, item in _mapping(value).items()},
    tuple[str, ...]: lambda value: tuple(filter(text, value)) if isinstance(value, list) else (),
}
_READ |= {DeviceReading: _part(DeviceReading), MemoryReading: _part(MemoryReading)}
_note = _part(CheckpointNote)
_READ[Optional[CheckpointNote]] = lambda value: _note(value) if _mapping(value).get("path") else None
_HEARTBEAT = _readers(Heartbeat)
