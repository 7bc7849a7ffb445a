"""Refuses readings above sense: a busy share over 100 %, more memory used than there is, anything negative or NaN.

A refused value becomes None with its reason; no value is ever clamped or repaired except for the last rounding error.
"""

from __future__ import annotations

import math
from dataclasses import Field, fields, replace
from typing import Any, TypeVar

from mpstui.core.telemetry.model import GpuSample, HostFacts, Limits, ProcessFacts, TreeSample

Record = TypeVar("Record", GpuSample, HostFacts, ProcessFacts, TreeSample)

# Ratios computed in single precision (macmon) and tick counters read at slightly different moments end a hair above 1.
ROUNDING_PERCENT = 0.5


def sensible(record: Record) -> tuple[Record, dict[str, str]]:
    """``record`` without its senseless values, and the reason for each refused field."""
    refused: dict[str, str] = {}
    changed: dict[str, Any] = {}
    for spec in fields(record):
        value = getattr(record, spec.name)
        if value is None or "limits" not in spec.metadata:
            continue
        kept, reason = _judge(value, spec)
        if reason is not None:
            refused[spec.name] = reason
        if kept != value:
            changed[spec.name] = kept
    return (replace(record, **changed) if changed else record), refused


def within_total(record: Record, total_field: str, *part_fields: str) -> tuple[Record, dict[str, str]]:
    """Refuse each of ``part_fields`` that exceeds ``total_field``; an unknown total refuses nothing."""
    total = getattr(record, total_field, None)
    if total is None:
        return record, {}
    refused = {
        name: f"refused: {value} bytes is more than the total of {total}"
        for name in part_fields
        if (value := getattr(record, name)) is not None and value > total
    }
    cleared: dict[str, Any] = dict.fromkeys(refused)
    return replace(record, **cleared), refused


def _judge(value: object, spec: Field[Any]) -> tuple[float | None, str | None]:
    limits: Limits = spec.metadata["limits"]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None, f"refused: {value!r} is not a number"
    if not math.isfinite(value):
        return None, f"refused: {value} is not a finite number"
    if limits.unit == "%" and limits.high < value <= limits.high + ROUNDING_PERCENT:
        return limits.high, None
    if not limits.low <= value <= limits.high:
        return None, f"refused: {value} {limits.unit} is outside {limits.low:g} to {limits.high:g}"
    return value, None
