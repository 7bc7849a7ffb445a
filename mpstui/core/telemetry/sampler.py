"""Reads the machine when asked, each source no more often than its own pace, and never raises."""

from __future__ import annotations

import contextlib
import logging
import pkgutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

from ..model.plugins import TELEMETRY_SOURCES, plugin_modules
from . import sources
from .model import GpuSample, HostFacts, SystemSample, TreeSample
from .reading import Clock, Reader, SourceReport, sensible
from .source import Facts, Host, Source, SourceRequest
from .trees import ProcessTable, TreeReading, descendants, tree_sample

NamedFacts: TypeAlias = tuple[str, Facts]
Record = TypeVar("Record", GpuSample, HostFacts)
_HOST_FIELDS = tuple(spec.name for spec in fields(HostFacts))
_GPU_FIELDS = tuple(spec.name for spec in fields(GpuSample) if spec.name not in ("index", "vendor"))
_SYSTEM_FIELDS = frozenset(spec.name for spec in fields(SystemSample))
_TREE_FIELDS = frozenset(spec.name for spec in fields(TreeSample))

Trees = Mapping[str, Sequence[int]]
"""Root process ids of each watched trainer, by a key of the caller's choice (a run id)."""


def default_sampler(host: Host | None = None, clock: Clock = time) -> Sampler:
    """Return a sampler for this machine; close it when done."""
    host = host or Host()
    return Sampler(sources_of(host), clock, processes=ProcessTable(), on_close=host.commands.close)


def sources_of(host: Host) -> list[Source]:
    """Return the sources that can be read on ``host``, by rank; of equal rank, ours first, by module name."""
    names = sorted(module.name for module in pkgutil.iter_modules(sources.__path__))
    found = [source for name in names for source in import_module(f"{sources.__name__}.{name}").sources(host)]
    for module in plugin_modules(TELEMETRY_SOURCES):
        try:
            found += module.sources(host)
        except Exception as error:  # noqa: BLE001 - another package's bug must not stop all telemetry
            logging.getLogger(__name__).warning("the telemetry sources of %s cannot be made: %r", module, error)
    return sorted(found, key=lambda source: source.rank)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The machine and each watched trainer at one moment."""

    system: SystemSample
    trees: Mapping[str, TreeSample] = field(default_factory=dict)


class Sampler:
    """Merges what sources give; ``sources`` are in order of preference.

    ``sample`` may block for as long as the slowest source's timeout, so a screen calls it from a thread of its own;
    calls must not overlap. ``processes`` expands root processes into trees and is read before the other sources.
    ``on_close`` ends what the sources share, such as their child processes.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        clock: Clock = time,
        processes: Source | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._readers = [Reader(source, clock) for source in sources]
        self._processes = Reader(processes, clock) if processes is not None else None
        self._identities: dict[str, dict[int, int]] = {}
        self._gpu_numbers = GpuNumbers()
        self._on_close = on_close

    def sample(self, trees: Trees | None = None) -> Snapshot:
        """Return what is known now about the machine and about each of ``trees``."""
        roots = self._living_roots(trees or {})
        members = self._expand(SourceRequest(roots))
        request = SourceRequest(members)
        for reader in self._readers:
            reader.start(request)
        for reader in self._readers:
            reader.finish()
        readings = [(reader.source.name, reader.latest.facts) for reader in self._readers if reader.latest]
        system = merge(self._clock.time(), readings, self._silence(_SYSTEM_FIELDS), self._gpu_numbers)
        return Snapshot(system=system, trees={key: self._tree(key, members) for key in trees or {}})

    def reports(self) -> tuple[SourceReport, ...]:
        """Return how every source is doing, in order of preference."""
        return tuple(reader.report() for reader in self._all_readers())

    def close(self) -> None:
        """End every child process and release what sources hold open; the sampler cannot be used afterwards."""
        self._on_close()
        for reader in self._all_readers():
            with contextlib.suppress(Exception):  # a source that cannot close must not keep the monitor from ending
                reader.source.close()

    def _all_readers(self) -> Iterator[Reader]:
        if self._processes is not None:
            yield self._processes
        yield from self._readers

    def _living_roots(self, trees: Trees) -> dict[str, tuple[int, ...]]:
        """Return the roots whose process id has not been reused by another process since it was first seen."""
        known = self._processes.latest.facts.processes if self._processes and self._processes.latest else {}
        self._identities = {key: self._identities.get(key, {}) for key in trees}
        living: dict[str, tuple[int, ...]] = {}
        for key, roots in trees.items():
            first = self._identities[key]
            present = {pid: facts.identity for pid in roots if (facts := known.get(pid)) and facts.identity is not None}
            for pid, identity in present.items():
                first.setdefault(pid, identity)
            living[key] = tuple(pid for pid in roots if pid not in present or first[pid] == present[pid])
        return living

    def _expand(self, request: SourceRequest) -> dict[str, tuple[int, ...]]:
        if self._processes is None:
            return dict(request.trees)
        self._processes.start(request)
        self._processes.finish()
        latest = self._processes.latest
        if latest is None:
            return dict(request.trees)
        parents = {pid: -1 if facts.parent is None else facts.parent for pid, facts in latest.facts.processes.items()}
        return {key: descendants(parents, roots) for key, roots in request.trees.items()}

    def _silence(self, wanted: frozenset[str]) -> dict[str, str]:
        silent: dict[str, str] = {}
        for reader in self._all_readers():
            for name in wanted.intersection(reader.source.gives) if reader.reason else ():
                silent.setdefault(name, f"{reader.source.name}: {reader.reason}")
        return silent

    def _tree(self, key: str, members: Mapping[str, tuple[int, ...]]) -> TreeSample:
        found: list[TreeReading] = []
        for reader in self._all_readers():
            latest = reader.latest
            if latest is None or key not in latest.request.trees:
                continue
            own = members[key] if reader is self._processes else latest.request.trees[key]
            before = reader.previous
            watched_before = before is not None and key in before.request.trees
            found.append(TreeReading(reader.source, own, latest, before if watched_before else None))
        watched = self._processes is not None and self._processes.latest is not None
        sample = tree_sample(self._clock.time(), len(members.get(key, ())) if watched else None, found)
        silent = self._silence(_TREE_FIELDS)
        unknown = {name: reason for name, reason in silent.items() if name not in sample.provenance}
        return replace(sample, reasons={**unknown, **sample.reasons})


def merge(time: float, readings: Sequence[NamedFacts], silent: Mapping[str, str], numbers: GpuNumbers) -> SystemSample:
    """Merge ``readings``, the preferred source first; ``silent`` holds the reasons of failed sources by field."""
    readings = [(name, _numbered(name, facts, numbers)) for name, facts in readings]
    host, provenance = _first_known(HostFacts(), _HOST_FIELDS, [(name, facts.host) for name, facts in readings])
    host, refused = sensible(host)
    known = {name: source for name, source in provenance.items() if name not in refused}
    total, used = host.memory_total_bytes, host.memory_used_bytes
    if host.memory_available_bytes is None and total is not None and used is not None:
        host = replace(host, memory_available_bytes=total - used)
        known["memory_available_bytes"] = "total minus used"
    gpus, gpu_provenance = _merge_gpus(readings)
    known |= gpu_provenance
    # A refusal's reason beats a source's own, which beats that of a failed source.
    reasons = dict(silent)
    for _, facts in reversed(readings):
        reasons |= facts.reasons
    reasons |= refused
    return SystemSample(
        time=time,
        gpus=gpus,
        provenance=known,
        reasons={name: reason for name, reason in reasons.items() if name not in known},
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


class GpuNumbers:
    """Tells cards apart, and gives each a number that it keeps: its index, or the next free one.

    Each vendor counts its cards from 0, and what is known of one card must not be shown as another's.
    """

    def __init__(self) -> None:
        self._cards: list[GpuSample] = []
        self._numbers: list[int] = []

    def of(self, source: str, gpu: GpuSample) -> int:
        """Return the number of the card that ``source`` describes."""
        gpu = gpu if gpu.vendor else replace(gpu, vendor=source)
        for position, card in enumerate(self._cards):
            both_known = card.uuid and gpu.uuid
            same = card.uuid == gpu.uuid if both_known else card.index == gpu.index
            if same and card.vendor == gpu.vendor:
                self._cards[position] = card if card.uuid else gpu
                return self._numbers[position]
        number = gpu.index if gpu.index not in self._numbers else max(self._numbers) + 1
        self._cards.append(gpu)
        self._numbers.append(number)
        return number


def _numbered(source: str, facts: Facts, numbers: GpuNumbers) -> Facts:
    """Return ``facts`` with the numbers that the cards have on this machine, in its reasons too."""
    new = {gpu.index: numbers.of(source, gpu) for gpu in facts.gpus}
    if all(index == number for index, number in new.items()):
        return facts
    names = {f"gpu{index}": f"gpu{number}" for index, number in new.items()}
    reasons = {}
    for name, reason in facts.reasons.items():
        card, dot, rest = name.partition(".")
        reasons[f"{names.get(card, card)}{dot}{rest}"] = reason
    return replace(facts, gpus=tuple(replace(gpu, index=new[gpu.index]) for gpu in facts.gpus), reasons=reasons)


def _merge_gpus(readings: Sequence[NamedFacts]) -> tuple[tuple[GpuSample, ...], dict[str, str]]:
    by_number: dict[int, list[tuple[str, GpuSample]]] = {}
    for source, facts in readings:
        for gpu in facts.gpus:
            by_number.setdefault(gpu.index, []).append((source, gpu))
    gpus: list[GpuSample] = []
    provenance: dict[str, str] = {}
    for number, found in sorted(by_number.items()):
        merged, known = _first_known(GpuSample(index=number, vendor=found[0][1].vendor), _GPU_FIELDS, found)
        merged, refused = sensible(merged)
        gpus.append(merged)
        provenance |= {f"gpu{number}.{name}": source for name, source in known.items() if name not in refused}
    return tuple(gpus), provenance
