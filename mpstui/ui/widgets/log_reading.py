"""Where a person is in a log: following its end, or somewhere above; with a level filter and a search. No drawing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from ..ports import LogLinePort, LogPort

LEVELS: tuple[tuple[str, frozenset[str]], ...] = (
    ("all lines", frozenset()),
    ("warnings and errors", frozenset({"warning", "error"})),
    ("errors", frozenset({"error"})),
)
_PAGE_LINES, _MOST_PAGES = 400, 50
"""A filter looks at this many lines at most before it shows what it has: one key press stays one key press."""


class LogReading:
    """The part of a document that is looked at."""

    def __init__(self, document: LogPort) -> None:
        self.document = document
        self.level = 0
        self.pattern = ""
        self.found: int | None = None
        """Offset of the line the last search or error jump led to."""
        self._top: int | None = None

    @property
    def following(self) -> bool:
        """Whether new lines move the view."""
        return self._top is None

    def lines(self, rows: int) -> Sequence[LogLinePort]:
        """What is in view."""
        if rows <= 0:
            return ()
        if self._top is not None:
            shown = self._forward(self._top, rows)
            if len(shown) >= rows:
                return shown
            self._top = None
        return self._last(rows)

    def follow(self) -> None:
        """Back to the end."""
        self._top = None

    def to_start(self) -> None:
        """To the first line."""
        first = self._forward(0, 1)
        self._top = first[0].offset if first else None

    def scroll(self, by: int, rows: int) -> None:
        """Move the view by lines; reaching the end follows again."""
        shown = self.lines(rows)
        if not shown or (by > 0 and self.following):
            return
        if by < 0:
            above = self._backward(shown[0].offset, -by)
            self._top = above[0].offset if above else shown[0].offset
            return
        below = self._forward(shown[0].offset, by + 1)
        self._top = below[-1].offset
        if len(self._forward(self._top, rows + 1)) <= rows:
            self._top = None

    def next_level(self) -> str:
        """Switch the filter; its name."""
        self.level = (self.level + 1) % len(LEVELS)
        return LEVELS[self.level][0]

    def find(self, pattern: str, rows: int, *, backwards: bool = False, again: bool = False) -> bool:
        """Go to a line that holds ``pattern``; a new search begins with what is in view. True when there is one."""
        self.pattern = pattern

        def look(offset: int, back: bool) -> LogLinePort | None:
            return self.document.search(pattern, offset, back)

        return self._jump(look, rows, backwards=backwards, again=again)

    def next_error(self, rows: int, *, backwards: bool = False) -> bool:
        """Go to the next error from here; from the end, to the last one."""
        if self.following and self.found is None:
            backwards = True
        return self._jump(self.document.next_error, rows, backwards=backwards, again=True)

    def _jump(
        self, look: Callable[[int, bool], LogLinePort | None], rows: int, *, backwards: bool, again: bool
    ) -> bool:
        shown = self.lines(rows)
        if not shown:
            return False
        if again and self.found is not None:
            start = self.found if backwards else self.found + 1
        else:
            start = shown[-1].offset + 1 if backwards else shown[0].offset
        line = look(start, backwards)
        if line is None and not again:
            line = look(shown[0].offset, True)
        if line is None:
            return False
        self._show(line, rows)
        return True

    def to_line(self, number: int, rows: int) -> bool:
        """Go to a line by its number, whatever is filtered; False when there is none, or not yet."""
        found = self.document.at_line(number, 1)
        if not found:
            return False
        self.level = 0
        self._show(found[0], rows)
        return True

    def _show(self, line: LogLinePort, rows: int) -> None:
        """Mark a line and put it into the upper third of the view."""
        self.found = line.offset
        above = self._backward(line.offset, rows // 3)
        self._top = above[0].offset if above else line.offset

    def _wanted(self, line: LogLinePort) -> bool:
        levels = LEVELS[self.level][1]
        return not levels or line.level in levels

    def _last(self, rows: int) -> Sequence[LogLinePort]:
        if not self.level:
            return self.document.tail(rows)
        newest = self.document.tail(1)
        if not newest:
            return ()
        end = [newest[0]] if self._wanted(newest[0]) else []
        return [*self._backward(newest[0].offset, rows - len(end)), *end]

    def _forward(self, offset: int, rows: int) -> list[LogLinePort]:
        if not self.level:
            return list(self.document.window(offset, rows))
        kept: list[LogLinePort] = []
        for _ in range(_MOST_PAGES):
            page = self.document.window(offset, _PAGE_LINES)
            kept += [line for line in page if self._wanted(line)]
            if len(kept) >= rows or len(page) < _PAGE_LINES:
                break
            offset = page[-1].offset + 1
        return kept[:rows]

    def _backward(self, offset: int, rows: int) -> list[LogLinePort]:
        if rows <= 0:
            return []
        if not self.level:
            return list(self.document.before(offset, rows))
        kept: list[LogLinePort] = []
        for _ in range(_MOST_PAGES):
            page = self.document.before(offset, _PAGE_LINES)
            kept = [line for line in page if self._wanted(line)] + kept
            if len(kept) >= rows or len(page) < _PAGE_LINES:
                break
            offset = page[0].offset
        return kept[-rows:]


@lru_cache(8)
def matcher(pattern: str) -> re.Pattern[str]:
    """The pattern to highlight, upper and lower case alike; what is no regular expression is taken literally."""
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error:
        return re.compile(re.escape(pattern), re.IGNORECASE)
