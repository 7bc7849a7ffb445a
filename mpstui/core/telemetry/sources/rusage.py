"""Physical footprint of a process on macOS: what Activity Monitor calls Memory, GPU memory included.

From ``proc_pid_rusage`` (libproc.h) in the layout ``rusage_info_v4`` of <sys/resource.h>: a 16 byte UUID, then
unsigned 64 bit integers in host order. Allowed for processes of the same user.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable

from ..model import ProcessFacts
from ..source import Facts, Host, Source, SourceError, SourceRequest

FLAVOR = 4
_V4 = struct.Struct("=16x35Q")
_FOOTPRINT = 7

ReadRusage = Callable[[int], bytes]
"""Returns the raw structure of a process; raises ProcessLookupError or PermissionError."""


def footprint_of(raw: bytes) -> int | None:
    """Return the footprint in bytes from a raw ``rusage_info_v4``, or None if that is cut short."""
    return _V4.unpack_from(raw)[_FOOTPRINT] if len(raw) >= _V4.size else None


def sources(host: Host) -> list[Source]:
    return [Footprint()] if host.is_mac else []


class Footprint(Source):
    """The footprint of each watched process; one system call each."""

    name = "proc_pid_rusage"
    gives = ("footprint_bytes",)
    verified = False
    per_process = True

    def __init__(self, read_rusage: ReadRusage | None = None) -> None:
        self._read_rusage = read_rusage

    def read(self, request: SourceRequest) -> Facts:
        if self._read_rusage is None:
            self._read_rusage = _load_libproc()
        found: dict[int, ProcessFacts] = {}
        denied = 0
        for pid in request.pids():
            try:
                footprint = footprint_of(self._read_rusage(pid))
            except ProcessLookupError:
                continue
            except PermissionError:
                footprint, denied = None, denied + 1
            found[pid] = ProcessFacts(footprint_bytes=footprint)
        reasons = {"footprint_bytes": f"macOS denies {denied} of these processes to this user"} if denied else {}
        return Facts(processes=found, reasons=reasons)


def _load_libproc() -> ReadRusage:
    import ctypes  # takes some 5 ms, and is for Macs only

    try:
        library = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)
        call = library.proc_pid_rusage
    except (OSError, AttributeError) as error:
        raise SourceError(f"libproc has no proc_pid_rusage here: {error}") from error
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    call.restype = ctypes.c_int

    def read_rusage(pid: int) -> bytes:
        # The kernel writes all of the flavor's structure: room to spare costs nothing, a short buffer would be overrun.
        buffer = ctypes.create_string_buffer(1024)
        if call(pid, FLAVOR, buffer) != 0:
            code = ctypes.get_errno()
            raise OSError(code, errno.errorcode.get(code, "unknown error"))
        return buffer.raw[: _V4.size]

    return read_rusage
