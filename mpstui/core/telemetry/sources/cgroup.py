"""The memory and CPU limits of the monitor's own control group, versions 1 and 2.

A limit anywhere up the tree counts, so all ancestors are read and the tightest wins. Inside a container the path in
``/proc/self/cgroup`` may be the host's and not exist below the mount; then the container's group is the mount's top.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..model import HostFacts
from ..source import Facts, Host, Source, SourceError, SourceRequest

# Version 1 expresses "no limit" by the largest multiple of the page size below 2**63.
_UNLIMITED_BYTES = 2**60


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a version mounts the memory controller, and what it calls its files."""

    mount: str
    memory_limit: str
    memory_used: str
    inactive_file: str


_V2 = Layout("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")
_V1 = Layout("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def parse_membership(text: str) -> dict[str, str]:
    """Return the path of the group by controller, from ``/proc/PID/cgroup``; version 2 has the empty name."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon and path.startswith("/"):
            paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def parse_limit(text: str) -> int | None:
    """Return bytes, or None for ``max``, for version 1's huge number and for anything unreadable."""
    word = text.strip()
    limit = int(word) if word.isascii() and word.isdigit() else None
    return limit if limit is not None and 0 < limit < _UNLIMITED_BYTES else None


def parse_cpu_max(text: str) -> float | None:
    """Return cores from a quota and a period in microseconds, as in version 2's ``cpu.max``; None for no limit."""
    words = text.split()
    if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words):
        return None
    quota, period = int(words[0]), int(words[1])
    return quota / period if quota > 0 and period > 0 else None


def sources(host: Host) -> list[Source]:
    return [] if host.is_mac else [ControlGroup(host.root)]


class ControlGroup(Source):
    """The tightest limit over the group and its ancestors, below the given filesystem root."""

    name = "control group"
    gives = ("cgroup_limit_bytes", "cgroup_used_bytes", "cgroup_cpu_limit")
    period_seconds = 5.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def read(self, request: SourceRequest) -> Facts:
        membership = parse_membership(_text(self._root / "proc/self/cgroup"))
        if not membership:
            raise SourceError("this process is in no control group")
        tightest = min(self._limited_groups(membership), default=None, key=lambda found: found[0])
        quotas = self._cpu_quotas(membership)
        host = HostFacts(
            cgroup_limit_bytes=tightest[0] if tightest else None,
            cgroup_used_bytes=tightest[1] if tightest else None,
            cgroup_cpu_limit=min((cores for cores in quotas if cores is not None), default=None),
        )
        unlimited = {} if tightest else {"cgroup_limit_bytes": "the control group sets no memory limit"}
        return Facts(host=host, reasons=unlimited)

    def _cpu_quotas(self, membership: dict[str, str]) -> Iterator[float | None]:
        for group in self._groups(_V2.mount, membership.get("", "/")):
            yield parse_cpu_max(_text(group / "cpu.max"))
        for group in self._groups("sys/fs/cgroup/cpu", membership.get("cpu", "/")):
            yield parse_cpu_max(f"{_text(group / 'cpu.cfs_quota_us')} {_text(group / 'cpu.cfs_period_us')}")

    def _limited_groups(self, membership: dict[str, str]) -> Iterator[tuple[int, int | None]]:
        for layout, controller in ((_V2, ""), (_V1, "memory")):
            if controller not in membership:
                continue
            for group in self._groups(layout.mount, membership[controller]):
                limit = parse_limit(_text(group / layout.memory_limit))
                if limit is not None:
                    yield limit, _used(group, layout)

    def _groups(self, mount: str, path: str) -> Iterator[Path]:
        top = self._root / mount
        group = top / path.lstrip("/")
        if ".." in path.split("/") or not group.is_dir():
            group = top
        while group != top:
            yield group
            group = group.parent
        yield top


def _used(group: Path, layout: Layout) -> int | None:
    """Return the usage without the file cache that the kernel drops before it kills, as ``docker stats`` shows it."""
    usage = parse_limit(_text(group / layout.memory_used))
    if usage is None:
        return None
    for line in _text(group / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == layout.inactive_file:
            return max(0, usage - (parse_limit(value) or 0))
    return usage


def _text(path: Path) -> str:
    """Return the file's text; empty, which means no limit, if this kernel or this group has no such file."""
    try:
        return path.read_text()
    except OSError:
        return ""
