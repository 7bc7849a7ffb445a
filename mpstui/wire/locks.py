"""Liveness by kernel lock: held while some process has the descriptor, dropped by the kernel at death or reboot."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

PROBE_PATIENCE_SECONDS = 0.25


def acquire(path: Path, *, inheritable: bool = False) -> int | None:
    """Take the lock and return its descriptor, or None when another process holds it.

    Tries for a quarter of a second: a reader that asks :func:`is_held` holds a shared lock for some microseconds.

    Args:
        inheritable: let children keep the lock alive through the same open file description (``run.lock``).

    Raises:
        OSError: the file cannot be made, or the file system knows no locks.
    """
    descriptor = _take(path, fcntl.LOCK_EX)
    if descriptor is not None and inheritable:
        os.set_inheritable(descriptor, True)
    return descriptor


def release(descriptor: int) -> None:
    """Drop our hold. A child that inherited the descriptor keeps the lock."""
    os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether some process holds the lock now; a missing file is held by nobody.

    Asks with a shared lock, so that two readers that look at once do not see each other.
    """
    return _is_refused(path, fcntl.LOCK_SH)


def share(path: Path) -> int | None:
    """Take a shared hold and return its descriptor: any number of processes may have one (open screens).

    Returns None when the lock cannot be had within a quarter of a second.

    Raises:
        OSError: the file cannot be made, or the file system knows no locks.
    """
    return _take(path, fcntl.LOCK_SH)


def is_shared(path: Path) -> bool:
    """Whether some process holds the lock, shared or alone; a missing file is held by nobody."""
    return _is_refused(path, fcntl.LOCK_EX)


def _is_refused(path: Path, kind: int) -> bool:
    """Whether a hold of this kind cannot be had now.

    Opens the file for reading: by that the supervisor tells who looks from who inherited the lock.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _take(path: Path, kind: int) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        taken = _lock(descriptor, kind)
    except OSError:
        os.close(descriptor)
        raise
    if taken:
        return descriptor
    os.close(descriptor)
    return None


def _lock(descriptor: int, kind: int) -> bool:
    deadline = time.monotonic() + PROBE_PATIENCE_SECONDS
    while True:
        last = time.monotonic() >= deadline  # asked before the try: a process that was held up meanwhile tries again
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if last:
                return False
            time.sleep(0.01)
        else:
            return True
