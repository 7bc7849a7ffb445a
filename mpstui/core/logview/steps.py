"""Finds the line of a log for a step, and the step for a line, from the lines alone.

Only global steps are used, not steps within an epoch. If the steps of a log go back (the program restarted, or the file
holds two runs), no line is found by its step.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..formats.reader import LogReader
from .document import LogDocument
from .line import LogLine

_NEAR_LINES = 60
"""A line without a step takes the last one printed within this many lines before it."""
_WINDOW_LINES, _PROBES, _SURVEYED = 20, 60, 8
_LAST_BYTES = 1 << 11
"""Once the binary search has narrowed the log down to this many bytes, lines are read one by one."""
_MOST_LINES = 400
_MOST_KNOWN = 1 << 14
"""Number of parsed lines that are remembered."""


class LogSteps:
    """Finds lines by step and steps by line; remembers the lines it has parsed."""

    def __init__(self, document: LogDocument, total: int | None = None) -> None:
        """``total``: steps of the whole training, if known: a step printed as ``N/total`` is then a global one."""
        self._document, self.total = document, total
        self._known: dict[tuple[int, int], int | None] = {}
        self._surveyed: tuple[int, list[tuple[int, int]]] | None = None

    def told(self, line: LogLine) -> int | None:
        """Return the step printed in a line; None if there is none."""
        key = line.offset, line.end
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            reader = LogReader(steps=self.total)
            points = reader.feed(line.text.encode() + b"\n") if any(map(str.isdigit, line.text)) else []
            step = next((told for point in reversed(points) if (told := point.counters.step) is not None), None)
            self._known[key] = int(step) if step is not None else None
        return self._known[key]

    def of(self, line: LogLine) -> int | None:
        """Return the step at which a line was printed: its own, else the last one printed shortly before it."""
        own = self.told(line)
        return own if own is not None else self._last(self._document.before(line.offset, _NEAR_LINES))

    def line_at(self, step: float) -> LogLine | None:
        """Return a line of the last step up to ``step``; None if there is none, or if the steps go back."""
        low, high = 0, self._document.size_bytes
        seen = self._survey()
        if not seen:
            return None
        for _ in range(_PROBES):
            if high - low <= _LAST_BYTES:
                break
            middle = (low + high) // 2
            found = self._first(self._document.window(middle, _WINDOW_LINES))
            if found is None or found[0].offset >= high:
                high = middle
                continue
            line, told = found
            seen.append((line.offset, told))
            low, high = (line.offset, high) if told <= step else (low, middle)
        steps = [told for _, told in sorted(seen)]
        if steps != sorted(steps):
            return None
        best, last = None, -1
        for line in self._document.window(low, _MOST_LINES):
            own = self.told(line)
            if own is None:
                continue
            if own < last:
                return None
            if own > step:
                break
            if own > last:
                best, last = line, own
        return best

    def _survey(self) -> list[tuple[int, int]]:
        """Return offset and step of a few lines spread over the log; looked up again once it has grown by half."""
        size = self._document.size_bytes
        if self._surveyed is None or not self._surveyed[0] <= size <= self._surveyed[0] * 1.5:
            places = (size * part // _SURVEYED for part in range(_SURVEYED))
            found = (self._first(self._document.window(place, _WINDOW_LINES)) for place in places)
            self._surveyed = size, [(line.offset, told) for line, told in filter(None, found)]
        return list(self._surveyed[1])

    def _first(self, lines: Sequence[LogLine]) -> tuple[LogLine, int] | None:
        return next(((line, told) for line in lines if (told := self.told(line)) is not None), None)

    def _last(self, lines: Sequence[LogLine]) -> int | None:
        return next((told for line in reversed(lines) if (told := self.told(line)) is not None), None)
