"""Where the lines of a huge file begin and end, found locally: no index, two blocks of reading at most.

A *piece* is a line, or a part of a line of megabytes. Such a line is cut at multiples of ``BLOCK_BYTES``: a multiple is
a border when the whole block before it holds no newline. Both directions find the same borders.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

BLOCK_BYTES = 1 << 20
READ_BYTES = 1 << 16


class Piece(NamedTuple):
    """Bytes ``start`` to ``end`` of the file, newline included."""

    start: int
    end: int


class PieceFinder:
    """Looks into one open file. What is before ``begin`` is gone (a hole), what is from ``size`` on unknown."""

    def __init__(self, descriptor: int, size: int, begin: int = 0) -> None:
        self._descriptor = descriptor
        self.size = size
        self.begin = begin
        self._base = 0
        self._data = b""

    def read(self, start: int, end: int) -> bytes:
        """Bytes of the file, through a small cache."""
        end = min(end, self.size)
        if start >= end:
            return b""
        if start < self._base or end > self._base + len(self._data):
            self._base, self._data = start, os.pread(self._descriptor, end - start, start)
        return self._data[start - self._base : end - self._base]

    def start_before(self, end: int) -> int:
        """The start of the piece whose last byte is at ``end - 1``."""
        border = (end - 1) // BLOCK_BYTES * BLOCK_BYTES
        found = self._last_newline(max(border, self.begin), end - 1)
        if found is not None:
            return found + 1
        if border <= self.begin:
            return self.begin
        found = self._last_newline(max(border - BLOCK_BYTES, self.begin), border)
        if found is not None:
            return found + 1
        return max(border, self.begin)

    def end_after(self, start: int) -> int:
        """The end of the piece that begins at ``start``."""
        border = (start // BLOCK_BYTES + 1) * BLOCK_BYTES
        found = self._first_newline(start, border)
        if found is not None:
            return found + 1
        if start != border - BLOCK_BYTES and border < self.size:
            found = self._first_newline(border, border + BLOCK_BYTES)
            if found is not None:
                return found + 1
            border += BLOCK_BYTES
        return min(border, self.size)

    def next_start(self, offset: int) -> int:
        """The first start of a piece at or after ``offset``; ``size`` when there is none."""
        if offset <= self.begin:
            return self.begin
        if offset >= self.size:
            return self.size
        start = self.start_before(offset + 1)
        return start if start == offset else self.end_after(start)

    def forwards(self, start: int) -> Iterator[Piece]:
        """Pieces from a start on."""
        while start < self.size:
            data = self.read(start, start + READ_BYTES)
            if not data:
                return
            position = 0
            while (newline := data.find(b"\n", position)) >= 0:
                yield Piece(start + position, start + newline + 1)
                position = newline + 1
            start += position
            if not position or start + READ_BYTES > self.size:
                end = self.end_after(start) if start < self.size else start
                if end > start:
                    yield Piece(start, end)
                start = end

    def backwards(self, end: int) -> Iterator[Piece]:
        """Pieces that end at ``end``, before it, and so on."""
        while end > self.begin:
            self._prefetch(end)
            start = self.start_before(end)
            yield Piece(start, end)
            end = start

    def _prefetch(self, end: int) -> None:
        """Many short lines are found in one read."""
        if not self._base < end <= self._base + len(self._data) or end - self._base < READ_BYTES // 8:
            start = max(self.begin, end - READ_BYTES)
            self._base, self._data = start, os.pread(self._descriptor, end - start, start)

    def _last_newline(self, low: int, high: int) -> int | None:
        """Position of the last newline in [low, high)."""
        while high > low:
            start = max(low, self._base if self._base < high <= self._base + len(self._data) else high - READ_BYTES)
            found = self.read(start, high).rfind(b"\n")
            if found >= 0:
                return start + found
            high = start
        return None

    def _first_newline(self, low: int, high: int) -> int | None:
        """Position of the first newline in [low, high)."""
        high = min(high, self.size)
        while low < high:
            end = min(high, low + READ_BYTES)
            data = self.read(low, end)
            found = data.find(b"\n")
            if found >= 0:
                return low + found
            if not data:
                return None
            low += len(data)
        return None
