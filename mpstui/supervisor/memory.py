"""The machine's memory before a restart: was the last attempt's memory given back, was it killed for lack of memory?"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..wire.liveness import output_of
from .machine import Clock

GIVEN_BACK = 0.9
"""The machine has recovered once this share of the memory free before the attempt is free again."""
LONGEST_WAIT_SECONDS = 30.0
POLL_SECONDS = 1.0
STILL = 0.01
"""If free memory grows by less than this share between two polls, no more is coming back."""
WIRED_LEAK_BYTES = 4 << 30
"""Wired memory left behind by a killed training on macOS: starting another on top of it ends in a kernel panic."""


class MachineMemory(NamedTuple):
    """Memory in bytes; None if the system does not say."""

    available: int | None = None
    wired: int | None = None
    """macOS: memory that can be neither paged out nor compressed."""


class Release(NamedTuple):
    """Whether the next attempt may start: yes, not yet, or better not."""

    ready: bool
    warning: str = ""
    leaked: bool = False


def judge_release(
    before: MachineMemory, last: MachineMemory | None, now: MachineMemory, waited_seconds: float
) -> Release:
    """Compare with what was free before the last attempt; once no more comes back, the attempt may start anyway.

    Args:
        last: the previous measurement, about a second ago; None the first time.
    """
    if before.available is None or now.available is None or now.available >= GIVEN_BACK * before.available:
        return Release(True)
    rising = last is None or last.available is None or now.available - last.available > STILL * before.available
    if rising and waited_seconds < LONGEST_WAIT_SECONDS:
        return Release(False)
    missing = (before.available - now.available) / (1 << 30)
    text = f"{missing:.1f} GiB that were free before the last attempt are still taken"
    leaked = before.wired is not None and now.wired is not None and now.wired - before.wired > WIRED_LEAK_BYTES
    return Release(True, text + (" (wired: they stay so until a reboot)" if leaked else ""), leaked)


class MemoryWatch:
    """Watches memory from one attempt to the next: how much was free before, and whether it came back."""

    def __init__(
        self,
        clock: Clock,
        read: Callable[[], MachineMemory] | None = None,
        count_kills: Callable[[], int | None] | None = None,
    ) -> None:
        self._clock = clock
        self._read = read or read_memory
        self._count_kills = count_kills or oom_kills
        self._before = MachineMemory()
        self._kills_before: int | None = None
        self._last: MachineMemory | None = None
        self._since: float | None = None
        self._poll_at = 0.0

    def measure(self) -> None:
        """Measure before an attempt starts."""
        self._before, self._kills_before = self._read(), self._count_kills()

    def wait_anew(self) -> None:
        """Reset the wait, since another attempt was scheduled: waiting begins when it is due."""
        self._since, self._last, self._poll_at = None, None, 0.0

    def poll(self) -> Release:
        """Return whether the next attempt may start; measures once a second. The first attempt always may."""
        now = self._clock.monotonic()
        if self._before.available is None:
            return Release(True)
        if now < self._poll_at:
            return Release(False)
        self._since = now if self._since is None else self._since
        found = self._read()
        release = judge_release(self._before, self._last, found, now - self._since)
        self._last, self._poll_at = found, now + POLL_SECONDS
        return release

    def new_kills(self) -> int | None:
        """Return how often the system killed for lack of memory since the attempt began; None if it does not count."""
        now = self._count_kills()
        return max(0, now - self._kills_before) if now is not None and self._kills_before is not None else None


def read_memory() -> MachineMemory:
    """Return the machine's memory now; on macOS from ``vm_stat``, which only a real Mac can verify."""
    if sys.platform == "darwin":
        return parse_vm_stat(output_of("vm_stat"))
    return parse_meminfo(_text_of(Path("/proc/meminfo")))


def parse_meminfo(text: str) -> MachineMemory:
    """Read ``/proc/meminfo``."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return MachineMemory(int(found[1]) * 1024 if found else None)


def parse_vm_stat(text: str) -> MachineMemory:
    """Read macOS ``vm_stat``: free, inactive, speculative and purgeable pages count as available."""
    size = re.search(r"page size of (\d+) bytes", text)
    pages = {name.strip('"'): int(count) for name, count in re.findall(r"^(.+?):\s+(\d+)\.$", text, re.MULTILINE)}
    if not size or "Pages free" not in pages:
        return MachineMemory()
    names = ("Pages free", "Pages inactive", "Pages speculative", "Pages purgeable")
    wired = pages.get("Pages wired down")
    unit = int(size[1])
    return MachineMemory(sum(pages.get(name, 0) for name in names) * unit, None if wired is None else wired * unit)


def oom_kills() -> int | None:
    """Return how often Linux has killed for lack of memory on this machine; None if it does not count."""
    return parse_oom_kills(_text_of(Path("/proc/vmstat")))


def parse_oom_kills(text: str) -> int | None:
    """Read ``oom_kill`` in ``/proc/vmstat`` (Linux 4.13 and later)."""
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else None


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
