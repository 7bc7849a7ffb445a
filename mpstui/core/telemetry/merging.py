"""Puts the readings of all sources together: the first source that knows a field wins, and is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeAlias, TypeVar

from .model import GpuSample, HostFacts, SystemSample
from .reading import within_total
from .source import Facts

NamedFacts: TypeAlias = tuple[str, Facts]
Record = TypeVar("Record", GpuSample, HostFacts)
DERIVED = "total minus used"
_HOST_FIELDS = tuple(spec.name for spec in fields(HostFacts))
_GPU_FIELDS = tuple(spec.name for spec in fields(GpuSample) if spec.name != "index")


def merge(time: float, readings: Sequence[NamedFacts], silent: Mapping[str, str]) -> SystemSample:
    """One sample from ``readings``, the preferred source first; ``silent`` gives reasons by field of failed sources."""
    host, provenance = _first_known(HostFacts(), _HOST_FIELDS, [(name, facts.host) for name, facts in readings])
    host, contradictions = within_total(host, "memory_total_bytes", "memory_used_bytes", "memory_available_bytes")
    host, more = within_total(host, "swap_total_bytes", "swap_used_bytes")
    host, derived = _with_available(host)
    gpus, gpu_provenance = _merge_gpus(readings)
    provenance |= gpu_provenance | derived
    refused = contradictions | more
    known = {name: source for name, source in provenance.items() if name not in refused or name in derived}
    return SystemSample(
        time=time,
        gpus=gpus,
        provenance=known,
        reasons=_reasons(readings, silent, refused, known),
        **{name: getattr(host, name) for name in _HOST_FIELDS},
    )


def _first_known(
    target: Record, names: Iterable[str], found: Iterable[tuple[str, Record]]
) -> tuple[Record, dict[str, str]]:
    values: dict[str, Any] = {}
    provenance: dict[str, str] = {}
    for source, record in found:
        for name in names:
            value = getattr(record, name)
            if value is not None and name not in values:
                values[name], provenance[name] = value, source
    return replace(target, **values), provenance


def _with_available(host: HostFacts) -> tuple[HostFacts, dict[str, str]]:
    total, used = host.memory_total_bytes, host.memory_used_bytes
    if host.memory_available_bytes is not None or total is None or used is None:
        return host, {}
    return replace(host, memory_available_bytes=total - used), {"memory_available_bytes": DERIVED}


def _merge_gpus(readings: Sequence[NamedFacts]) -> tuple[tuple[GpuSample, ...], dict[str, str]]:
    by_index: dict[int, list[tuple[str, GpuSample]]] = {}
    for source, facts in readings:
        for gpu in facts.gpus:
            by_index.setdefault(gpu.index, []).append((source, gpu))
    gpus: list[GpuSample] = []
    provenance: dict[str, str] = {}
    for index in sorted(by_index):
        merged, known = _first_known(GpuSample(index=index), _GPU_FIELDS, by_index[index])
        merged, refused = within_total(merged, "memory_total_bytes", "memory_used_bytes")
        gpus.append(merged)
        provenance |= {f"gpu{index}.{name}": source for name, source in known.items() if name not in refused}
    return tuple(gpus), provenance


def _reasons(
    readings: Sequence[NamedFacts], silent: Mapping[str, str], refused: Mapping[str, str], known: Mapping[str, str]
) -> dict[str, str]:
    """The reason for each unknown field; what a refusal says beats what a source says, and that beats silence."""
    reasons = dict(silent)
    for _, facts in reversed(readings):
        reasons |= facts.reasons
    reasons |= refused
    return {name: reason for name, reason in reasons.items() if name not in known}
