"""Reads the machine when asked, never oftener than each source's own pace, and never raises."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from .merging import merge
from .model import SystemSample, TreeSample
from .reading import Clock, Reader, Reading, SourceReport
from .source import Request, Source
from .trees import TreeReadings, descendants, tree_sample

_SYSTEM_FIELDS = frozenset(spec.name for spec in fields(SystemSample))
_TREE_FIELDS = frozenset(spec.name for spec in fields(TreeSample))

Trees = Mapping[str, Sequence[int]]
"""Root process ids of each watched trainer, by a key of the caller's choice (a run id)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The machine and each watched trainer at one moment."""

    system: SystemSample
    trees: Mapping[str, TreeSample] = field(default_factory=dict)


class Sampler:
    """Merges sources, the preferred one first.

    ``sample`` may block for as long as the slowest source's timeout, so a screen calls it from a thread of its own;
    calls must not overlap. ``processes`` expands root processes into trees and is read before the other sources.
    ``on_close`` ends what the sources share, such as their children.
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
        self._on_close = on_close

    def sample(self, trees: Trees | None = None) -> Snapshot:
        """What is known now about the machine and about each of ``trees``."""
        roots = self._living_roots(trees or {})
        members = self._expand(Request(roots))
        request = Request(members)
        for reader in self._readers:
            reader.start(request)
        for reader in self._readers:
            reader.finish()
        return Snapshot(system=self._system(), trees={key: self._tree(key, members) for key in trees or {}})

    def reasons(self) -> dict[str, str]:
        """Why each source that does not answer is silent, by its name; empty when all is well."""
        return {report.name: report.reason for report in self.reports() if report.reason}

    def reports(self) -> tuple[SourceReport, ...]:
        """How every source is doing, in order of preference."""
        return tuple(reader.report() for reader in self._all_readers())

    def close(self) -> None:
        """End every child and give back what sources hold open; the sampler is of no use afterwards."""
        self._on_close()
        for reader in self._all_readers():
            with contextlib.suppress(Exception):  # a source that cannot close must not keep the monitor from ending
                reader.source.close()

    def _all_readers(self) -> Iterator[Reader]:
        if self._processes is not None:
            yield self._processes
        yield from self._readers

    def _living_roots(self, trees: Trees) -> dict[str, tuple[int, ...]]:
        """Roots whose process id has not been given to another process since it was first seen."""
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

    def _expand(self, request: Request) -> dict[str, tuple[int, ...]]:
        if self._processes is None:
            return dict(request.trees)
        self._processes.start(request)
        self._processes.finish()
        latest = self._processes.latest
        if latest is None:
            return dict(request.trees)
        parents = {pid: -1 if facts.parent is None else facts.parent for pid, facts in latest.facts.processes.items()}
        return {key: descendants(parents, roots) for key, roots in request.trees.items()}

    def _system(self) -> SystemSample:
        readings = [(reader.source.name, reader.latest.facts) for reader in self._readers if reader.latest]
        return merge(self._clock.time(), readings, self._silence(_SYSTEM_FIELDS))

    def _silence(self, wanted: frozenset[str]) -> dict[str, str]:
        silent: dict[str, str] = {}
        for reader in self._all_readers():
            for name in wanted.intersection(reader.source.gives) if reader.reason else ():
                silent.setdefault(name, f"{reader.source.name}: {reader.reason}")
        return silent

    def _tree(self, key: str, members: Mapping[str, tuple[int, ...]]) -> TreeSample:
        found: list[TreeReadings] = []
        for reader in self._all_readers():
            latest = reader.latest
            if latest is None or key not in latest.request.trees:
                continue
            own = members[key] if reader is self._processes else latest.request.trees[key]
            found.append(
                TreeReadings(
                    source=reader.source.name,
                    gives=reader.source.gives,
                    members=own,
                    latest=latest,
                    previous=_if_watched(reader.previous, key),
                )
            )
        watched = self._processes is not None and self._processes.latest is not None
        sample = tree_sample(self._clock.time(), len(members.get(key, ())) if watched else None, found)
        silent = self._silence(_TREE_FIELDS)
        unknown = {name: reason for name, reason in silent.items() if name not in sample.provenance}
        return replace(sample, reasons={**unknown, **sample.reasons})


def _if_watched(reading: Reading | None, key: str) -> Reading | None:
    return reading if reading is not None and key in reading.request.trees else None
