"""Keeping ``output.log`` under its limit by giving its oldest blocks back: every offset stays what it was.

Truncating or rotating would move what readers follow, and a trainer cannot be told to reopen its file.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import sys
from pathlib import Path
from typing import Any, NamedTuple

HEAD_BYTES = 64 * 1024
"""The beginning stays: it says what was started and with which settings."""
ROOM = 0.25
"""Share of the limit freed beyond need, so that it is not done again at every look."""
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02
"""FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE, fallocate(2)."""
_F_PUNCHHOLE = 99
"""fcntl(2) on macOS 10.13 and later, struct fpunchhole_t; not verified on a Mac."""


class Hole(NamedTuple):
    """Bytes ``start`` to ``end`` that are to be given back."""

    start: int
    end: int


def plan_hole(size: int, allocated: int, limit: int, block: int) -> Hole | None:
    """What to free of a file of ``size`` bytes that takes ``allocated`` on disk; None while it is within ``limit``."""
    if limit <= 0 or allocated <= limit:
        return None
    keep = max(int(limit * (1 - ROOM)) - HEAD_BYTES, block)
    start = _up(min(HEAD_BYTES, limit // 4), block)
    end = (size - keep) // block * block
    return Hole(start, end) if end > start else None


def trim(path: Path, limit: int) -> Hole | None:
    """Free the oldest part of a file that grew past ``limit`` bytes; None when there is nothing to do.

    Raises:
        OSError: this file system cannot (EOPNOTSUPP), or the file is not ours; nothing was cut.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        info = os.fstat(descriptor)
        block = max(info.st_blksize, 4096)
        hole = plan_hole(info.st_size, info.st_blocks * 512, limit, block)
        if hole is not None:
            punch(descriptor, hole)
        return hole
    finally:
        os.close(descriptor)


def punch(descriptor: int, hole: Hole) -> None:
    """Give a range back; it reads as zeros afterwards.

    Raises:
        OSError: this system or file system cannot.
    """
    length = hole.end - hole.start
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, _F_PUNCHHOLE, struct.pack("=IIqq", 0, 0, hole.start, length))
        return
    if _FALLOCATE is None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    mode = ctypes.c_int(_PUNCH_HOLE | _KEEP_SIZE)
    if _FALLOCATE(descriptor, mode, ctypes.c_int64(hole.start), ctypes.c_int64(length)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _up(value: int, block: int) -> int:
    return -(-value // block) * block


def _find_fallocate() -> Any:
    """glibc's name for 64-bit offsets, else musl's, whose offsets always have 64 bits."""
    library = ctypes.CDLL(None, use_errno=True)
    return getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)


_FALLOCATE = _find_fallocate() if sys.platform.startswith("linux") else None
