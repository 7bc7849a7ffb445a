"""Disk space: warn when it is low, pause the trainer before the disk is full, keep ``output.log`` within its limit.

A Python program that cannot write a line of output dies of it (``OSError: [Errno 28]``), checkpoint and all. Paused by
SIGSTOP it loses only time, and it is resumed when there is space again. Of the log, the oldest blocks are freed, which
keeps every offset valid: rotation would move what readers follow, and no trainer reopens its file.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from ..wire.records import Spec
from ..wire.rundir import RunDir
from .attempt import Attempt
from .journal import Journal
from .machine import Clock
from .state import Supervision

POLL_SECONDS = 1.0
LOW_BYTES = 1 << 30
PAUSE_BYTES = 64 << 20
RESUME_BYTES = 256 << 20
"""Well above the pause threshold, so that a resumed trainer's writes do not pause it again at once."""
HELD_FOR_DISK = "disk"
LOG_LIMIT_SECONDS = 5.0
HEAD_BYTES = 64 * 1024
"""The beginning of the log is kept: it says what was started and with which settings."""
SLACK = 0.25
"""Share of the limit to free in addition, so that not every poll has to trim."""
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02
"""FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE, fallocate(2)."""
_F_PUNCHHOLE = 99
"""fcntl(2) on macOS 10.13 and later, struct fpunchhole_t; not verified on a Mac."""


class Sign(Enum):
    """A change that a poll found."""

    LOW = "low"
    FULL = "full"
    RECOVERED = "recovered"


def free_bytes(folder: Path) -> int | None:
    """Return how many bytes this user may still write; None if the file system does not say."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


class DiskWatch:
    """Polls once a second. A small disk that was already full when the attempt began is never reported as full."""

    def __init__(self, folder: Path, clock: Clock, read: Callable[[Path], int | None] = free_bytes) -> None:
        self._folder, self._clock, self._read = folder, clock, read
        self._poll_at = 0.0
        self._low = False
        self._may_fill: bool | None = None
        """True if falling below the limit would be news; None before the first poll."""
        self.free = 0
        """Bytes free at the last poll."""

    def poll(self) -> Sign | None:
        """Return what changed; None most of the time."""
        now = self._clock.monotonic()
        if now < self._poll_at:
            return None
        self._poll_at = now + POLL_SECONDS
        free = self._read(self._folder)
        if free is None:
            return None
        self.free, before = free, self._may_fill
        self._may_fill = free >= (PAUSE_BYTES if before is not False else RESUME_BYTES)
        if before and not self._may_fill:
            self._low = True
            return Sign.FULL
        if free >= RESUME_BYTES and not before:
            return Sign.RECOVERED
        was_low, self._low = self._low, free < LOW_BYTES
        return Sign.LOW if self._low and not was_low else None


def watch_disk_space(supervision: Supervision, attempt: Attempt, disk: DiskWatch) -> None:
    """Warn when the disk is nearly full, pause the attempt when it is full, resume it when there is space again."""
    sign = disk.poll()
    if sign is None or attempt.ending is not None or attempt.stop_sequence is not None:
        return
    if sign is Sign.RECOVERED:
        # A run the user paused stays paused; one the user resumed is paused again only once space has recovered.
        if attempt.paused and supervision.journal.status.held_for == HELD_FOR_DISK:
            attempt.resume()
            supervision.journal.update(paused=False, held_for=None, message=None)
            supervision.journal.event("phase", f"resumed: {_mebibytes(disk.free)} of disk space are free again")
    elif sign is Sign.FULL and not attempt.paused:
        left, enough = _mebibytes(disk.free), _mebibytes(RESUME_BYTES)
        text = f"paused: the disk is full ({left} left); it resumes by itself when {enough} are free"
        attempt.pause()
        supervision.journal.update(paused=True, held_for=HELD_FOR_DISK, message=text)
        supervision.journal.event("phase", text, free_bytes=disk.free)
        supervision.alerts.tell("stall", attempt.number, text)
    else:
        text = f"the disk is nearly full: {_mebibytes(disk.free)} left; a training that cannot write will end"
        supervision.journal.event("note", text, free_bytes=disk.free)


def lacking_disk_space(supervision: Supervision) -> str | None:
    """Return why nothing should start automatically (``min_free_disk`` of the profile); None if all is well."""
    free, least = free_bytes(supervision.run.path), supervision.spec.min_free_bytes
    if free is None or free >= least:
        return None
    return f"waits for disk space: {_mebibytes(free)} are free, min_free_disk is {_mebibytes(least)}"


def _mebibytes(count: int) -> str:
    return f"{count >> 20} MiB"


class LogLimit:
    """Keeps the output log within its limit; says so once if it cannot."""

    def __init__(self, run: RunDir, spec: Spec, clock: Clock) -> None:
        self._run, self._limit, self._clock = run, spec.max_log_bytes, clock
        self._next = 0.0
        self._impossible = False

    def keep(self, journal: Journal, attempt: int) -> None:
        """Trim the log if it is too long; called every tick, checks every five seconds."""
        now = self._clock.monotonic()
        if now < self._next or self._impossible:
            return
        self._next = now + LOG_LIMIT_SECONDS
        try:
            hole = trim(self._run.attempt(attempt).output, self._limit)
        except FileNotFoundError:
            return
        except OSError as error:
            self._impossible = True
            unsupported = error.errno == errno.EOPNOTSUPP
            reason = "this file system cannot free a part of a file" if unsupported else error.strerror
            journal.event("note", f"output.log grew past {self._limit} bytes and nothing was cut: {reason}")
            return
        if hole is not None:
            text = f"output.log: bytes {hole.start} to {hole.end} were freed (limit {self._limit}); they read as zeros"
            journal.event("note", text, start=hole.start, end=hole.end)


class Hole(NamedTuple):
    """Bytes ``start`` to ``end`` of a file, to be freed."""

    start: int
    end: int


def plan_hole(size: int, allocated: int, limit: int, block: int) -> Hole | None:
    """Return what to free in a file of ``size`` bytes, ``allocated`` of them on disk; None if within ``limit``."""
    if limit <= 0 or allocated <= limit:
        return None
    keep = max(int(limit * (1 - SLACK)) - HEAD_BYTES, block)
    start = -(-min(HEAD_BYTES, limit // 4) // block) * block
    end = (size - keep) // block * block
    return Hole(start, end) if end > start else None


def trim(path: Path, limit: int) -> Hole | None:
    """Free the oldest part of a file that grew past ``limit`` bytes; None if there is nothing to do.

    Raises:
        OSError: the file system cannot do it (EOPNOTSUPP), or the file is not ours; nothing was cut.
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
    """Free a range of a file; it reads as zeros afterwards.

    Raises:
        OSError: the system or file system cannot do it.
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


_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
# glibc's name for 64-bit offsets, else musl's, whose offsets always have 64 bits.
_FALLOCATE: Any = getattr(_LIBC, "fallocate64", None) or getattr(_LIBC, "fallocate", None)
