"""Reading what was appended to a file since the last look: whole lines, within a budget.

Truth is the file itself: its inode, its size and the last bytes already read. So a torn last line is "not yet", a file
that was replaced, truncated or truncated and written again starts over, and one that does not exist yet is awaited.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 1 << 18
LONGEST_LINE_BYTES = 1 << 20
"""A line longer than this is dropped: no record of ours is, and memory must stay bounded."""
_WITNESS_BYTES = 32


@dataclass(frozen=True, slots=True)
class Growth:
    """What one look found."""

    data: bytes = b""
    """Complete lines, newlines included."""
    offset: int = 0
    """Where ``data`` begins in the file."""
    restarted: bool = False
    """The file is another one (or was cut): forget what was read before."""
    more: bool = False
    """The budget ended before the file did."""
    dropped_lines: int = 0
    """Lines too long to be kept."""


class LineTail:
    """Follows one file by path."""

    def __init__(self, path: Path, *, start: int = 0) -> None:
        self.path = path
        self.offset = start
        """Bytes of complete lines already given out; the next line begins here."""
        self.size = 0
        """Of the file at the last look."""
        self.changed_at: float | None = None
        """Modification time of the file, Unix seconds; None while there is no file."""
        self._identity: tuple[int, int] | None = None
        self._witness = b""
        self._skipping = False
        self._unread = False
        self._seen: tuple[int, int] | None = None

    def read(self, budget_bytes: int = CHUNK_BYTES) -> Growth:
        """Complete lines that were added, at most about ``budget_bytes`` of them; never raises for a file's sake."""
        try:
            found = self.path.stat()
        except OSError:
            return self._missing()
        mark = (found.st_size, found.st_mtime_ns)
        same = self._identity in (None, (found.st_dev, found.st_ino))
        if same and self._seen == mark and not (self._skipping or self._unread):
            return Growth(offset=self.offset)
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return Growth(offset=self.offset)
        try:
            return self._look(descriptor, budget_bytes)
        except OSError:
            return Growth(offset=self.offset)
        finally:
            os.close(descriptor)

    def _missing(self) -> Growth:
        """A file in the middle of being replaced keeps what was read until the new one is seen."""
        self.changed_at = None
        self._seen = None
        return Growth(offset=self.offset)

    def _look(self, descriptor: int, budget: int) -> Growth:
        found = os.fstat(descriptor)
        restarted = self._is_another(descriptor, found)
        if restarted:
            self.offset, self._witness, self._skipping = 0, b"", False
        self._identity = (found.st_dev, found.st_ino)
        self._seen = (found.st_size, found.st_mtime_ns)
        self.size, self.changed_at = found.st_size, found.st_mtime
        start, data, dropped = self._lines(descriptor, found.st_size, budget)
        return Growth(data, start, restarted, self._unread, dropped)

    def _is_another(self, descriptor: int, found: os.stat_result) -> bool:
        if self._identity is None:
            return False
        if self._identity != (found.st_dev, found.st_ino) or found.st_size < self.offset:
            return True
        if not self._witness:
            return False
        # Truncated and written again past our offset: the size alone does not tell. NULs are a hole punched to save
        # space, which leaves the rest of the file where it was.
        there = os.pread(descriptor, len(self._witness), self.offset - len(self._witness))
        return there != self._witness and there.strip(b"\0") != b""

    def _lines(self, descriptor: int, size: int, budget: int) -> tuple[int, bytes, int]:
        self.offset = _after_hole(descriptor, self.offset, size)
        start, dropped = self.offset, 0
        want = max(4096, budget)
        data = os.pread(descriptor, want, start)
        if self._skipping:
            data, start, done = _after_first_newline(data, start)
            self._skipping = not done
            self.offset = start
        end = data.rfind(b"\n") + 1
        if not end and len(data) >= want and want < LONGEST_LINE_BYTES:
            data = os.pread(descriptor, LONGEST_LINE_BYTES, start)
            end = data.rfind(b"\n") + 1
        if not end and len(data) >= LONGEST_LINE_BYTES:
            self._skipping, dropped = True, 1
            self.offset = start + len(data)
        else:
            self.offset = start + end
        # More is there when the file goes on beyond the bytes looked at; a torn last line alone is not "more".
        self._unread = start + len(data) < size
        self._witness = data[max(0, end - _WITNESS_BYTES) : end] if end else self._witness_at(descriptor)
        return start, data[:end], dropped

    def _witness_at(self, descriptor: int) -> bytes:
        length = min(_WITNESS_BYTES, self.offset)
        return os.pread(descriptor, length, self.offset - length) if length else b""


def last_lines(path: Path, budget_bytes: int) -> bytes:
    """The complete lines within the last ``budget_bytes`` of a file; nothing when it cannot be read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = max(0, size - budget_bytes)
            data = os.pread(file.fileno(), budget_bytes, start)
    except OSError:
        return b""
    if start:
        data = data[data.find(b"\n") + 1 :]
    return data[: data.rfind(b"\n") + 1]


def _after_first_newline(data: bytes, start: int) -> tuple[bytes, int, bool]:
    cut = data.find(b"\n")
    if cut < 0:
        return b"", start + len(data), False
    return data[cut + 1 :], start + cut + 1, True


def _after_hole(descriptor: int, offset: int, size: int) -> int:
    """The next offset that holds data: the front of a capped log may have been given back to the disk."""
    if not hasattr(os, "SEEK_DATA") or offset >= size:
        return offset
    if os.pread(descriptor, 1, offset) != b"\0":
        return offset
    try:
        return max(offset, os.lseek(descriptor, offset, os.SEEK_DATA))
    except OSError:
        return offset
