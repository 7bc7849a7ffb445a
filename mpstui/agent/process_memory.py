"""What the operating system says this very process holds."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import struct
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")
_RUSAGE_INFO_V0 = 0
# struct rusage_info_v0 (<sys/resource.h>): a 16-byte UUID, then ten 64-bit counters; numbers 6 and 7 are
# ri_resident_size and ri_phys_footprint, the figure that macOS counts against a process.
_RUSAGE_FORMAT = "=16x10Q"


def read_process_memory() -> tuple[int | None, int | None]:
    """Resident size and physical footprint of this process in bytes; None where the system does not tell.

    Linux knows no footprint. Neither figure includes what a GPU driver holds outside the process.
    """
    if sys.platform == "darwin":
        return _darwin()
    try:
        return parse_statm(_STATM.read_text(), os.sysconf("SC_PAGE_SIZE")), None
    except (OSError, ValueError):
        return None, None


def parse_statm(text: str, page_bytes: int) -> int | None:
    """Resident bytes from ``/proc/PID/statm`` (proc(5): the second number counts resident pages)."""
    fields = text.split()
    return int(fields[1]) * page_bytes if len(fields) > 1 else None


def parse_rusage(buffer: bytes) -> tuple[int, int]:
    """Resident size and physical footprint, in bytes, from a filled ``struct rusage_info_v0``."""
    counters = struct.unpack(_RUSAGE_FORMAT, buffer)
    return counters[6], counters[7]


def _darwin() -> tuple[int | None, int | None]:
    library = ctypes.CDLL(ctypes.util.find_library("proc") or "libproc.dylib", use_errno=True)
    buffer = ctypes.create_string_buffer(struct.calcsize(_RUSAGE_FORMAT))
    failed = library.proc_pid_rusage(os.getpid(), _RUSAGE_INFO_V0, buffer)
    return (None, None) if failed else parse_rusage(buffer.raw)
