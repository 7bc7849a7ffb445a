"""Line numbers of a huge file, counted in the background: one number a megabyte, whatever the length of its lines."""

from __future__ import annotations

import os
from array import array

from .budget import Budget

BLOCK_BYTES = 1 << 20
WITNESS_BYTES = 32
NEAR_BYTES = 1 << 14
"""So near to the end of the count its total is the better place to start from: a pane that follows asks for nothing
else."""


class LineCounter:
    """Counts newlines from the beginning on; the file may grow meanwhile."""

    def __init__(self) -> None:
        self._before = array("Q", [0])
        """Newlines before each block."""
        self._counted = 0
        self._newlines = 0
        self._ends_line = True
        self._witness = b""

    @property
    def counted_bytes(self) -> int:
        """How far the count has got."""
        return self._counted

    def still_valid(self, descriptor: int) -> bool:
        """Whether the file still holds what was counted; False when it was cut and written again."""
        there = os.pread(descriptor, len(self._witness), self._counted - len(self._witness))
        return there == self._witness or not there.strip(b"\0")

    def advance(self, descriptor: int, size: int, budget: Budget) -> bool:
        """Count on; True when the end of the file is reached."""
        while self._counted < size:
            border = len(self._before) * BLOCK_BYTES
            data = os.pread(descriptor, min(border, size) - self._counted, self._counted)
            if not data:
                return False
            self._newlines += data.count(b"\n")
            self._counted += len(data)
            self._ends_line = data.endswith(b"\n")
            self._witness = data[-WITNESS_BYTES:]
            if self._counted == border:
                self._before.append(self._newlines)
            if budget.spent:
                break
        return self._counted >= size

    def total(self, size: int) -> int | None:
        """Lines of the file, an unfinished last one included; None until counted."""
        if self._counted < size:
            return None
        return self._newlines + (0 if self._ends_line else 1)

    def number_at(self, descriptor: int, offset: int) -> int | None:
        """Number of the line that begins at ``offset``, from 1; None when the count has not got there."""
        if offset > self._counted:
            return None
        if self._counted - offset < NEAR_BYTES:
            behind = os.pread(descriptor, self._counted - offset, offset)
            return self._newlines - behind.count(b"\n") + 1
        block = min(offset // BLOCK_BYTES, len(self._before) - 1)
        start = block * BLOCK_BYTES
        return self._before[block] + os.pread(descriptor, offset - start, start).count(b"\n") + 1

    def block_of(self, number: int) -> int | None:
        """Offset of the block in which line ``number`` begins; None when the count has not got there."""
        from bisect import bisect_left

        if number < 1 or number > self._newlines + 1:
            return None
        return max(0, bisect_left(self._before, number) - 1) * BLOCK_BYTES
