"""Read the heartbeat of a program that reports in a format of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...wire import heartbeat
from ...wire.heartbeat import Heartbeat

_MILLISECONDS_FROM = 1e11
"""A Unix time beyond the year 5000 is in milliseconds."""


def external_heartbeat(record: Mapping[str, Any], modified_ns: int) -> Heartbeat | None:
    """Return another program's heartbeat; None if it contains no counter, loss or rate.

    Args:
        modified_ns: the modification time of the file in Unix nanoseconds, used if the record contains no time.
    """
    from ..formats.records import read_record

    try:
        reading = read_record(record, "heartbeat")
    except (ValueError, OverflowError):
        return None  # for example, an infinite counter
    if reading is None:
        return None
    rate, phase, device = reading.throughput_unit.lower(), record.get("phase"), record.get("device")
    word = phase.strip().lower() if isinstance(phase, str) else ""
    word = {"validation": "eval", "val": "eval", "test": "eval", "training": "train"}.get(word, word)
    told = {
        "schema": heartbeat.SCHEMA,
        "time": _moment(record) or modified_ns / 1e9,
        "seq": modified_ns,
        "pid": record.get("pid"),
        "phase": word if word in heartbeat.PHASES else None,
        "device": {"type": device.partition(":")[0]} if isinstance(device, str) else device,
        **reading.counters._asdict(),
        "loss": reading.loss,
        "lr": reading.learning_rate,
        "metrics": {**reading.metrics, **reading.eval_metrics},
        "samples_per_second": reading.throughput if rate.startswith(("samples", "images", "train_samples")) else None,
        "steps_per_second": reading.throughput if rate in ("steps_per_second", "it_s") else None,
        "memory": record.get("memory"),
        "nonfinite": ["loss"] if reading.loss is not None and heartbeat.number(reading.loss) is None else [],
    }
    return heartbeat.from_json(told)


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
