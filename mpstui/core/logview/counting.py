"""Counting the lines of a log that match a search, and numbering matches. A count continues as the file grows."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from ..follow import Budget
from .searching import PieceFinder, Search, Wanted

MOST_COUNTED = 100_000
SLICE_BYTES = 1 << 16
"""Bytes searched at a time: every match becomes a `LogLine`, and all are kept until the slice is done."""


class Tally:
    """Counts matching lines from the start of the file, up to ``MOST_COUNTED``; an unfinished last line is not counted.

    It keeps two numbers per slice, however many lines that has.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.restarts: int | None = None
        """How many times the file had been replaced when the count began; None until it begins."""
        self.count = 0
        """Matches found so far."""
        self.complete = False
        """True if the whole file has been counted, or ``MOST_COUNTED`` is reached."""
        self._borders = array("Q", [0])
        """Where each slice begins; the last entry is where the next slice will begin."""
        self._before = array("Q", [0])
        """Number of matches before each border."""

    def advance(self, search: Search, finder: PieceFinder, budget: Budget) -> None:
        """Continue counting to the end of the file, or until the budget is spent."""
        begin = max(self._borders[-1], finder.begin)
        last = finder.size
        if last > finder.begin and finder.read(last - 1, last) != b"\n":
            last = finder.start_before(last)
        while begin < last and self.count < MOST_COUNTED:
            end = min(last, finder.next_start(begin + SLICE_BYTES))
            if end <= begin:
                end = finder.end_after(begin)
            self.count += len(search.offsets(self.wanted, begin, end))
            self._borders.append(end)
            self._before.append(self.count)
            begin = end
            if budget.spent:
                break
        self.complete = begin >= last or self.count >= MOST_COUNTED

    @property
    def text(self) -> str:
        """The count so far: ``12``, or ``12+`` if there may be more."""
        return f"{self.count:,}" + ("" if self.complete and self.count < MOST_COUNTED else "+")

    def number_of(self, search: Search, offset: int) -> int | None:
        """Return the number, from 1, of the match that begins at ``offset``; None if there is none, or none yet."""
        place = bisect_right(self._borders, offset) - 1
        if place + 1 >= len(self._borders):
            return None
        offsets = search.offsets(self.wanted, self._borders[place], self._borders[place + 1])
        return self._before[place] + offsets.index(offset) + 1 if offset in offsets else None
