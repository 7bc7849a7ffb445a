"""Adds up the processes of one tree, and turns their counters into shares of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from mpstui.core.telemetry.model import ProcessFacts, TreeSample
from mpstui.core.telemetry.reading import Reading
from mpstui.core.telemetry.sense import sensible

Processes: TypeAlias = Mapping[int, ProcessFacts]
Measured: TypeAlias = tuple[float | None, str]
"""A value, or None and the reason why there is none."""

_SUMS = frozenset({"rss_bytes", "footprint_bytes", "gpu_memory_bytes"})
_SHARES = {"cpu_percent": "cpu_seconds", "gpu_percent": "gpu_seconds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeReadings:
    """What one source said about one tree: its members at that moment, the newest reading and the one before.

    ``previous`` is None where the tree was not watched yet.
    """

    source: str
    gives: Sequence[str]
    members: Sequence[int]
    latest: Reading
    previous: Reading | None


def total(processes: Processes, members: Iterable[int], amount: str) -> Measured:
    """Sum over the ``members`` that the source knows; None with a reason if it was refused one, or knows none.

    A partial sum would look like less than there is, so there is none.
    """
    values = [getattr(processes[pid], amount) for pid in members if pid in processes]
    if not values:
        return None, "the source lists none of these processes"
    unknown = sum(value is None for value in values)
    if unknown:
        return None, f"unknown for {unknown} of {len(values)} processes"
    return sum(values), ""


def share(latest: Reading, previous: Reading | None, members: Iterable[int], counter: str) -> Measured:
    """Growth of ``counter`` over the tree as percent of the time between two readings.

    A process born in between counts whole; one that ended in between is lost. A falling counter means that part of it
    vanished with its owner, and then nothing is known about this interval.
    """
    if previous is None or latest.monotonic <= previous.monotonic:
        return None, "a share of time needs two readings"
    growths: list[float] = []
    for pid in members:
        after = latest.facts.processes.get(pid, ProcessFacts())
        now = getattr(after, counter)
        if now is not None:
            growths.append(now - _value_before(previous.facts.processes, pid, after, counter))
    if not growths:
        return None, "the source counts none of these processes"
    if min(growths) < 0:
        return None, "a counter was reset between two readings"
    return 100 * sum(growths) / (latest.monotonic - previous.monotonic), ""


def tree_sample(time: float, process_count: int | None, found: Iterable[TreeReadings]) -> TreeSample:
    """The tree at ``time``: the first of the readings that knows a field wins, and is named."""
    values: dict[str, Any] = {}
    provenance: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for readings in found:
        for name in readings.gives:
            if name in values or (name not in _SUMS and name not in _SHARES):
                continue
            value, reason = _measure(readings, name)
            if value is None:
                reasons[name] = f"{readings.source}: {readings.latest.facts.reasons.get(name, reason)}"
            else:
                values[name], provenance[name] = value, readings.source
    sample, refused = sensible(TreeSample(time=time, process_count=process_count, **values))
    known = {name: source for name, source in provenance.items() if name not in refused}
    unknown = {name: reason for name, reason in (reasons | refused).items() if name not in known}
    return replace(sample, provenance=known, reasons=unknown)


def _measure(readings: TreeReadings, name: str) -> Measured:
    if name in _SHARES:
        return share(readings.latest, readings.previous, readings.members, _SHARES[name])
    return total(readings.latest.facts.processes, readings.members, name)


def _value_before(before: Processes, pid: int, after: ProcessFacts, counter: str) -> float:
    earlier = before.get(pid)
    if earlier is None or earlier.identity != after.identity:
        return 0.0
    return getattr(earlier, counter) or 0.0
