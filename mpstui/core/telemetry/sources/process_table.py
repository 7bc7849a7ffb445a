"""The processes of each watched tree with their resident memory and CPU time, through psutil.

Only calls that need no debugger's rights are used: on macOS ``memory_full_info`` and ``memory_maps`` go through
task_for_pid, are denied, and can hang for good (psutil#2885).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import psutil  # type: ignore[import-untyped]

from mpstui.core.telemetry.model import ProcessFacts
from mpstui.core.telemetry.source import Facts, PlainSource, Request


def descendants(parents: Mapping[int, int], roots: tuple[int, ...]) -> tuple[int, ...]:
    """``roots`` that exist and everything below them, given each process's parent; every process once."""
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
        parent: int = psutil.Process(pid).ppid()
    except psutil.Error:
        return None
    return parent


class ParentCache:
    """The parent of every process on the machine, at the cost of those that are new.

    Asking for all of them takes 20 ms a time where 500 processes run. A parent changes only when it dies, which shows.
    A process id that is used again between two readings does not, so that now and then all are asked.
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


class ProcessTable(PlainSource):
    """Expands the roots that a request names into trees; the two readers are the machine's process table."""

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

    def read(self, request: Request) -> Facts:
        parents = self._read_parents()
        wanted = descendants(parents, request.pids())
        found = {pid: facts for pid in wanted if (facts := self._read_process(pid)) is not None}
        return Facts(processes=found)
