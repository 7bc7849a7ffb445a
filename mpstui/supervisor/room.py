"""Room on the disk: said when it gets low, and a trainer is held before its next ``print`` would end it.

A Python program that cannot write a line of output dies of it (``OSError: [Errno 28]``), checkpoint and all. Held by
SIGSTOP it loses nothing but time, and goes on by itself when there is room again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from .attempt import Attempt
from .clock import Clock
from .state import Supervision

LOOK_SECONDS = 1.0
LOW_BYTES = 1 << 30
FULL_BYTES = 64 << 20
ROOM_BYTES = 256 << 20
"""Held below ``FULL_BYTES``, let go from here on: a trainer that is let go writes, and must not be held at once."""
HELD_FOR_DISK = "disk"


class Sign(Enum):
    """What a look found that was not so before."""

    LOW = "low"
    FULL = "full"
    ROOM = "room"


def free_bytes(folder: Path) -> int | None:
    """What this user may still write; None where the file system does not say."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


class DiskWatch:
    """Looks once a second. A disk that was full when the attempt began, a small one, is never called full."""

    def __init__(self, folder: Path, clock: Clock, read: Callable[[Path], int | None] = free_bytes) -> None:
        self._folder, self._clock, self._read = folder, clock, read
        self._look_at = 0.0
        self._low = False
        self._may_fill: bool | None = None
        """Whether falling below the floor would be news; None before the first look."""
        self.free = 0
        """As of the last look."""

    def look(self) -> Sign | None:
        """What changed; None most of the time."""
        now = self._clock.monotonic()
        if now < self._look_at:
            return None
        self._look_at = now + LOOK_SECONDS
        free = self._read(self._folder)
        return None if free is None else self._judge(free)

    def _judge(self, free: int) -> Sign | None:
        self.free = free
        before = self._may_fill
        self._may_fill = free >= (FULL_BYTES if before is not False else ROOM_BYTES)
        if before and not self._may_fill:
            self._low = True
            return Sign.FULL
        if free >= ROOM_BYTES and not before:
            return Sign.ROOM
        was_low, self._low = self._low, free < LOW_BYTES
        return Sign.LOW if self._low and not was_low else None


def keep_room(boss: Supervision, attempt: Attempt, disk: DiskWatch) -> None:
    """One look at the disk of an attempt."""
    sign = disk.look()
    if sign is None or attempt.ending is not None or attempt.ladder is not None:
        return
    if sign is Sign.ROOM:
        _let_go(boss, attempt, disk.free)
    elif sign is Sign.FULL and not attempt.paused:
        _hold(boss, attempt, disk.free)
    else:
        text = f"the disk is nearly full: {_mebibytes(disk.free)} left; a training that cannot write ends"
        boss.journal.event("note", text, free_bytes=disk.free)


def wants_room(boss: Supervision) -> str | None:
    """Why nothing should start by itself now: the profile's ``min_free_disk``; None when there is room."""
    free, least = free_bytes(boss.run.path), boss.spec.min_free_bytes
    if free is None or free >= least:
        return None
    return f"waits for room on the disk: {_mebibytes(free)} are free, min_free_disk is {_mebibytes(least)}"


def _hold(boss: Supervision, attempt: Attempt, free: int) -> None:
    left, enough = _mebibytes(free), _mebibytes(ROOM_BYTES)
    text = f"paused: the disk is full ({left} left); it goes on by itself when {enough} are free"
    attempt.pause()
    boss.journal.update(paused=True, held_for=HELD_FOR_DISK, message=text)
    boss.journal.event("phase", text, free_bytes=free)
    boss.alerts.tell("stall", attempt.number, text)


def _let_go(boss: Supervision, attempt: Attempt, free: int) -> None:
    """Whom a person paused stays paused; whom a person let go is held again only after there was room."""
    if boss.journal.status.held_for != HELD_FOR_DISK or not attempt.paused:
        return
    attempt.resume()
    boss.journal.update(paused=False, held_for=None, message=None)
    boss.journal.event("phase", f"goes on: {_mebibytes(free)} of the disk are free again")


def _mebibytes(count: int) -> str:
    return f"{count >> 20} MiB"
