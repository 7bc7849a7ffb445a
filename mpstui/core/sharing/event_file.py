"""A TensorBoard event file: every point of every metric, the settings for its HPARAMS table, images and texts."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import BinaryIO

from ..formats.files.tensorboard import masked_crc32c
from ..formats.protobuf import block, double, single, text, whole
from ..model.snapshot import RunSnapshot, State
from ..runs.gallery import Item
from .export import whole_file
from .trackers import TrackedRun, Value, details_of, image_of

_WALL_TIME, _STEP, _VERSION, _SUMMARY = 1, 2, 3, 5
_TAG, _SIMPLE, _IMAGE, _TENSOR, _METADATA = 1, 2, 4, 8, 9
_COLOURS = 3
_TEXT_TYPE, _FLOAT_TYPE = 7, 1
_SESSION_START, _SESSION_END = 3, 4
_OUTCOMES = {State.FINISHED: 1, State.STOPPED: 1, State.FAILED: 2, State.KILLED: 2, State.LOST: 2}


def write_event_file(snapshot: RunSnapshot, run: TrackedRun, path: Path) -> None:
    """Write the event file of a run, whole or not at all.

    TensorBoard requires integer steps and a time: points without a step use their own axis, rounded; points without a
    time get that of the run's start.
    """
    with whole_file(path) as file:
        _write(file, double(_WALL_TIME, run.started) + text(_VERSION, "brain.Event:2"))
        for said in _told(run):
            _write(file, double(_WALL_TIME, run.started) + block(_SUMMARY, block(1, said)))
        for name, view in snapshot.series.items():
            for x, time, value in zip(view.x, view.times, view.values, strict=True):
                step = round(x) if math.isfinite(x) else 0
                point = text(_TAG, name) + single(_SIMPLE, value)
                moment = run.started if math.isnan(time) else time
                _write(file, double(_WALL_TIME, moment) + whole(_STEP, step) + block(_SUMMARY, block(1, point)))
        for item in run.gallery.items():
            if (held := _logged(run, item)) is not None:
                at = double(_WALL_TIME, item.time or run.started) + whole(_STEP, item.step or 0)
                _write(file, at + block(_SUMMARY, block(1, held)))
        if run.state in _OUTCOMES and run.ended is not None:
            told = whole(1, _OUTCOMES[run.state]) + double(2, run.ended)
            _write(file, double(_WALL_TIME, run.ended) + block(_SUMMARY, block(1, _hparams(_SESSION_END, told))))


def _told(run: TrackedRun) -> list[bytes]:
    """Everything but curves and logged images: the settings, and the rest as texts."""
    settings = b"".join(block(1, text(1, name) + block(2, _value(value))) for name, value in run.config.items())
    start = settings + text(4, run.name) + double(5, run.started)
    words = {
        "command": " ".join(run.argv),
        "note": run.note,
        "tags": " ".join(f"#{tag}" for tag in run.tags),
        "state": str(run.state),
        "checkpoints": "\n".join(f"    {json.dumps(details_of(one))}" for one in run.checkpoints),
    }
    return [_hparams(_SESSION_START, start), *(_words(name, said) for name, said in words.items() if said)]


def _value(value: Value) -> bytes:
    """Encode a value as ``google.protobuf.Value``."""
    if value is None or isinstance(value, bool):
        return whole(1, 0) if value is None else whole(4, value)
    return text(3, value) if isinstance(value, str) else double(2, value)


def _hparams(field: int, told: bytes) -> bytes:
    """A record for the hparams plugin, which reads only its metadata; the number itself is empty."""
    name = "session_start_info" if field == _SESSION_START else "session_end_info"
    plugin = block(1, text(1, "hparams") + block(2, whole(1, 0) + block(field, told)))
    empty = whole(1, _FLOAT_TYPE) + block(2, b"") + block(5, struct.pack("<f", 0.0))
    return text(_TAG, f"_hparams_/{name}") + block(_METADATA, plugin) + block(_TENSOR, empty)


def _words(name: str, said: str) -> bytes:
    plugin = block(1, text(1, "text"))
    tensor = whole(1, _TEXT_TYPE) + block(2, block(2, whole(1, 1))) + text(8, said)
    return text(_TAG, f"{name}/text_summary") + block(_METADATA, plugin) + block(_TENSOR, tensor)


def _logged(run: TrackedRun, item: Item) -> bytes | None:
    """An image or a text that the training has logged; None if it can no longer be read."""
    if item.text is not None:
        return _words(item.name, item.text)
    found = image_of(run, item)
    if found is None:
        return None
    held = whole(1, found.height) + whole(2, found.width) + whole(3, _COLOURS) + block(4, found.data)
    return text(_TAG, item.name) + block(_IMAGE, held)


def _write(file: BinaryIO, data: bytes) -> None:
    """Write a record, framed as :mod:`mpstui.core.formats.files.tensorboard` describes."""
    length = struct.pack("<Q", len(data))
    checks = struct.pack("<I", masked_crc32c(length)), struct.pack("<I", masked_crc32c(data))
    file.write(length + checks[0] + data + checks[1])
