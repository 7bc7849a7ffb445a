"""How many lines of a log match, and which of them one is: counted in slices, and on where the file has grown."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from ..follow import Budget
from .searching import PieceFinder, Search, Wanted

MOST_COUNTED = 100_000
SLICE_BYTES = 1 << 16
"""Looked through at a time: where every line matches, that many are made."""


class Tally:
    """The count of lines that are wanted, from the start of the file on, up to ``MOST_COUNTED``; unfinished ones wait.

    Two numbers are kept for each slice, whatever the number of lines.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.restarts: int | None = None
        """How often the file had been replaced when the count began."""
        self.count = 0
        """So far."""
        self.complete = False
        """Whether all of the file has been looked at."""
        self._ends = array("Q", [0])
        self._before = array("Q", [0])
        """Where each slice begins, and the lines wanted before it."""

    def advance(self, search: Search, finder: PieceFinder, budget: Budget) -> None:
        """Count on until the end or the budget is reached."""
        begin = max(self._ends[-1], finder.begin)
        last = finder.size
        if last > finder.begin and finder.read(last - 1, last) != b"\n":
            last = finder.start_before(last)
        while begin < last and self.count < MOST_COUNTED:
            end = min(last, finder.next_start(begin + SLICE_BYTES))
            if end <= begin:
                end = finder.end_after(begin)
            self.count += len(search.offsets(self.wanted, begin, end))
            self._ends.append(end)
            self._before.append(self.count)
            begin = end
            if budget.spent:
                break
        self.complete = begin >= last or self.count >= MOST_COUNTED

    @property
    def text(self) -> str:
        """The count as far as it is known: ``12``, ``12+`` where there may be more."""
        return f"{self.count:,}" + ("" if self.complete and self.count < MOST_COUNTED else "+")

    def number_of(self, search: Search, offset: int) -> int | None:
        """Which of the wanted lines begins at an offset, from 1; None when it is none, or not counted yet."""
        place = bisect_right(self._ends, offset) - 1
        if place + 1 >= len(self._ends):
            return None
        offsets = search.offsets(self.wanted, self._ends[place], self._ends[place + 1])
        return self._before[place] + offsets.index(offset) + 1 if offset in offsets else None
