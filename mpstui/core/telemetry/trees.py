"""The processes of each watched tree with their resident memory and CPU time, through psutil.

Only calls that need no debugging rights are used: on macOS ``memory_full_info`` and ``memory_maps`` go through
task_for_pid, are denied, and can hang forever (psutil#2885).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from .model import ProcessFacts, TreeSample
from .procfs import psutil
from .reading import Reading, sensible
from .source import Facts, Source, SourceRequest


def descendants(parents: Mapping[int, int], roots: tuple[int, ...]) -> tuple[int, ...]:
    """Return the ``roots`` that exist and all their descendants, given each process's parent; every process once."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        if pid != parent:  # the kernel's own process is its own parent on macOS
            children.setdefault(parent, []).append(pid)
    found: dict[int, None] = {}
    waiting = [root for root in roots if root in parents]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found[pid] = None
            waiting.extend(children.get(pid, ()))
    return tuple(found)


def _read_parent(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).ppid())
    except psutil.Error:
        return None


class ParentCache:
    """The parent of every process on the machine; only new processes are asked for theirs.

    Asking all takes 20 ms for 500 processes. A process gets another parent only when its parent dies, which shows. A
    process id that is reused between two readings does not show, so now and then all are asked.
    """

    FULL_EVERY = 15

    def __init__(
        self,
        list_pids: Callable[[], Iterable[int]] = psutil.pids,
        read_parent: Callable[[int], int | None] = _read_parent,
    ) -> None:
        self._list_pids = list_pids
        self._read_parent = read_parent
        self._parents: dict[int, int] = {}
        self._readings = 0

    def __call__(self) -> Mapping[int, int]:
        pids = frozenset(self._list_pids())
        old = {} if self._readings % self.FULL_EVERY == 0 else self._parents
        self._readings += 1
        kept = {pid: parent for pid, parent in old.items() if pid in pids and parent in pids}
        fresh = ((pid, self._read_parent(pid)) for pid in pids - kept.keys())
        self._parents = kept | {pid: parent for pid, parent in fresh if parent is not None}
        return self._parents


def _read_process(pid: int) -> ProcessFacts | None:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return ProcessFacts(parent=process.ppid(), identity=hash(process), rss_bytes=0)
            times = process.cpu_times()
            return ProcessFacts(
                parent=process.ppid(),
                identity=hash(process),
                rss_bytes=process.memory_info().rss,
                cpu_seconds=times.user + times.system,
            )
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return ProcessFacts()


class ProcessTable(Source):
    """Expands the roots in a request into trees, from the machine's process table."""

    name = "process table"
    gives = ("process_count", "rss_bytes", "cpu_percent")
    per_process = True

    def __init__(
        self,
        read_parents: Callable[[], Mapping[int, int]] | None = None,
        read_process: Callable[[int], ProcessFacts | None] = _read_process,
    ) -> None:
        self._read_parents = read_parents or ParentCache()
        self._read_process = read_process

    def read(self, request: SourceRequest) -> Facts:
        parents = self._read_parents()
        wanted = descendants(parents, request.pids())
        found = {pid: facts for pid in wanted if (facts := self._read_process(pid)) is not None}
        return Facts(processes=found)


_SUMS = frozenset({"rss_bytes", "footprint_bytes", "gpu_memory_bytes"})
_SHARES = {"cpu_percent": "cpu_seconds", "gpu_percent": "gpu_seconds"}


class TreeReading(NamedTuple):
    """What one source said about one tree: its members at that moment, the newest reading and the one before (None if
    the tree was not watched yet)."""

    source: Source
    members: Sequence[int]
    latest: Reading
    previous: Reading | None


def tree_sample(time: float, process_count: int | None, found: Iterable[TreeReading]) -> TreeSample:
    """Return the tree at ``time``: each field from the first reading that knows it, with the name of its source."""
    values: dict[str, Any] = {}
    provenance: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for reading in found:
        for name in reading.source.gives:
            if name in values or (name not in _SUMS and name not in _SHARES):
                continue
            value, reason = _share(reading, _SHARES[name]) if name in _SHARES else _total(reading, name)
            if value is None:
                reasons[name] = f"{reading.source.name}: {reading.latest.facts.reasons.get(name, reason)}"
            else:
                values[name], provenance[name] = value, reading.source.name
    sample, refused = sensible(TreeSample(time=time, process_count=process_count, **values))
    known = {name: source for name, source in provenance.items() if name not in refused}
    unknown = {name: reason for name, reason in (reasons | refused).items() if name not in known}
    return replace(sample, provenance=known, reasons=unknown)


def _total(reading: TreeReading, amount: str) -> tuple[float | None, str]:
    """Return the sum over the members that the source knows; None with a reason if it knows none or was refused any.

    A partial sum is never returned, since it would look like less than there is.
    """
    processes = reading.latest.facts.processes
    values = [getattr(processes[pid], amount) for pid in reading.members if pid in processes]
    if not values:
        return None, "the source lists none of these processes"
    unknown = sum(value is None for value in values)
    if unknown:
        return None, f"unknown for {unknown} of {len(values)} processes"
    return sum(values), ""


def _share(reading: TreeReading, counter: str) -> tuple[float | None, str]:
    """Return the growth of ``counter`` over the tree in percent of the time between two readings; None with a reason.

    A process started in between counts in full; one that ended in between is lost. A falling counter means that part of
    it vanished with its owner: then nothing is known about this interval.
    """
    latest, previous = reading.latest, reading.previous
    if previous is None or latest.monotonic <= previous.monotonic:
        return None, "a share of time needs two readings"
    growths: list[float] = []
    for pid in reading.members:
        after = latest.facts.processes.get(pid)
        now = getattr(after, counter, None)
        if after is None or now is None:
            continue
        before = previous.facts.processes.get(pid)
        lived = before is not None and before.identity == after.identity
        growths.append(now - ((getattr(before, counter) or 0.0) if lived else 0.0))
    if not growths:
        return None, "the source counts none of these processes"
    if min(growths) < 0:
        return None, "a counter was reset between two readings"
    return 100 * sum(growths) / (latest.monotonic - previous.monotonic), ""
