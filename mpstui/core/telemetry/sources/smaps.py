"""Memory of a Linux process that can be summed over a tree: proportional set size plus swap.

From ``/proc/PID/smaps_rollup`` (proc_pid_smaps in proc(5)). A page shared by n processes counts 1/n in each, so data
that forked workers share is counted once. The kernel walks the page tables for it, which takes longer the more memory
is mapped: it is read seldom, and not at all for very large processes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..model import ProcessFacts
from ..source import Facts, Host, Source, SourceRequest

# Roughly 0.1 s of page table walk at 4 KiB pages: longer would hold up allocations in the training.
MAX_RESIDENT_BYTES = 64 * 2**30
_STATM = re.compile(r"\d+ (\d+) ")
_LINE = re.compile(r"^(Rss|Pss|SwapPss):\s+(\d+) kB$", re.MULTILINE)


def parse(text: str) -> int | None:
    """Return the proportional bytes in memory and in swap, or None if the kernel reports no ``Pss``."""
    kilobytes = {name: int(value) for name, value in _LINE.findall(text)}
    return (kilobytes["Pss"] + kilobytes.get("SwapPss", 0)) * 1024 if "Pss" in kilobytes else None


def parse_resident(text: str, page_bytes: int) -> int | None:
    """Return the resident bytes from ``/proc/PID/statm``, whose second number is in pages."""
    found = _STATM.match(text)
    return int(found[1]) * page_bytes if found else None


def sources(host: Host) -> list[Source]:
    return [] if host.is_mac else [ProportionalMemory(host.root, os.sysconf("SC_PAGE_SIZE"))]


class ProportionalMemory(Source):
    """``smaps_rollup`` of each watched process, below the given filesystem root."""

    name = "smaps_rollup"
    gives = ("footprint_bytes",)
    period_seconds = 10.0
    per_process = True

    def __init__(self, root: Path = Path("/"), page_bytes: int = 4096) -> None:
        self._proc = root / "proc"
        self._page_bytes = page_bytes

    def read(self, request: SourceRequest) -> Facts:
        found: dict[int, ProcessFacts] = {}
        reasons: dict[str, str] = {}
        for pid in request.pids():
            try:
                footprint, reason = self._footprint(self._proc / str(pid))
            except (FileNotFoundError, ProcessLookupError):
                continue
            except PermissionError:
                footprint, reason = None, "the kernel shows smaps_rollup to the owner of the process alone"
            found[pid] = ProcessFacts(footprint_bytes=footprint)
            if reason:
                reasons["footprint_bytes"] = reason
        return Facts(processes=found, reasons=reasons)

    def _footprint(self, directory: Path) -> tuple[int | None, str]:
        resident = parse_resident((directory / "statm").read_text(), self._page_bytes)
        if resident is None or resident > MAX_RESIDENT_BYTES:
            return None, "too large to be walked without slowing the training"
        if resident == 0:  # a zombie, or a kernel thread: nothing is mapped
            return 0, ""
        try:
            text = (directory / "smaps_rollup").read_text()
        except FileNotFoundError:
            if not (directory / "statm").exists():
                raise  # the process has ended
            return None, "this kernel has no smaps_rollup (Linux 4.14 and newer do)"
        footprint = parse(text)
        return footprint, "" if footprint is not None else "the kernel reports no proportional set size"
