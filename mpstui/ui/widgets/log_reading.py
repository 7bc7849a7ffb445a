"""Where the user is in a log: following its end, or somewhere above; with a level filter and a search. No drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...core.logview.document import LogDocument
    from ...core.logview.line import LogLine
    from ...core.model.patterns import LinePattern

LEVELS: tuple[tuple[str, frozenset[str]], ...] = (
    ("all lines", frozenset()),
    ("warnings and errors", frozenset({"warning", "error"})),
    ("errors", frozenset({"error"})),
)
_PAGE_LINES, _MOST_PAGES = 400, 50
"""A filter looks at this many lines at most before it shows what it has: one key press stays one key press."""
_FIRST_SECONDS = 0.05
"""A search that takes longer goes on between the keys."""
MOST_COPIED = 2000
"""Lines: terminals take some hundred kilobytes for their clipboard."""


@dataclass(slots=True)
class Hunt:
    """A search on its way through a long file."""

    pattern: str | None
    """None: for errors."""
    ways: list[tuple[int, bool]]
    """Where to look and whether backwards, one after another."""


class LogReading:
    """The part of a document that is looked at."""

    def __init__(self, document: LogDocument) -> None:
        self.document = document
        self.level = 0
        self.pattern = ""
        self.found: int | None = None
        """Offset of the line the last search or error jump led to."""
        self.hunt: Hunt | None = None
        """The search that is going on."""
        self.selection: tuple[int, int] | None = None
        """Offsets of the line where a selection began, and of the one where it ends now."""
        self._top: int | None = None

    @property
    def following(self) -> bool:
        """Whether new lines move the view."""
        return self._top is None

    def lines(self, rows: int) -> Sequence[LogLine]:
        if rows <= 0:
            return ()
        if self._top is not None:
            shown = self._forward(self._top, rows)
            if len(shown) >= rows:
                return shown
            self._top = None
        if not self.level:
            return self.document.tail(rows)
        newest = self.document.tail(1)
        end = [line for line in newest if line.level in LEVELS[self.level][1]]
        return [*self._backward(newest[0].offset, rows - len(end)), *end] if newest else ()

    def follow(self) -> None:
        self._top = None

    def to_start(self) -> None:
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

    def find(self, pattern: str, rows: int, *, backwards: bool = False, again: bool = False) -> bool | None:
        """Go to a line that holds ``pattern``; a new search begins with what is in view.

        Returns:
            whether there is one; None: a long file is still being searched, go on with :meth:`search_on`.
        """
        self.pattern = pattern
        return self._jump(pattern, rows, backwards=backwards, again=again)

    def next_error(self, rows: int, *, backwards: bool = False) -> bool | None:
        """Go to the next error from here; from the end, to the last one. Answers like :meth:`find`."""
        if self.following and self.found is None:
            backwards = True
        return self._jump(None, rows, backwards=backwards, again=True)

    def _jump(self, pattern: str | None, rows: int, *, backwards: bool, again: bool) -> bool | None:
        self.hunt = None
        shown = self.lines(rows)
        if not shown:
            return False
        if again and self.found is not None:
            start = self.found if backwards else self.found + 1
        else:
            start = shown[-1].offset + 1 if backwards else shown[0].offset
        ways = [(start, backwards)] if again else [(start, backwards), (shown[0].offset, True)]
        self.hunt = Hunt(pattern, ways)
        return self.search_on(rows, _FIRST_SECONDS)

    def search_on(self, rows: int, seconds: float) -> bool | None:
        """Go on with a search for so long; see :meth:`find`."""
        hunt = self.hunt
        while hunt is not None and hunt.ways:
            offset, backwards = hunt.ways[0]
            if hunt.pattern is None:
                line = self.document.next_error(offset, backwards, seconds)
            else:
                line = self.document.search(hunt.pattern, offset, backwards, seconds)
            if line is not None:
                self.hunt = None
                self._show(line, rows)
                return True
            stopped = self.document.search_stopped_at
            if stopped is not None:
                hunt.ways[0] = (stopped, backwards)
                return None
            del hunt.ways[0]
        self.hunt = None
        return False

    @property
    def searched_to(self) -> float | None:
        """Where in the file a search is that is still going on, 0 to 1."""
        if self.hunt is None or not self.hunt.ways:
            return None
        return min(1.0, self.hunt.ways[0][0] / max(1, self.document.size_bytes))

    def stop_search(self) -> bool:
        """Leave a selection, a search that is going on, or the marks of the last one; False when there is none."""
        if self.selection is not None:
            self.selection = None
            return True
        there = self.hunt is not None or bool(self.pattern)
        self.hunt, self.pattern, self.found = None, "", None
        return there

    def select(self, rows: int) -> None:
        """Begin to select, at the line that was found or at the last in view; or leave the selection."""
        if self.selection is not None:
            self.selection = None
            return
        shown = self.lines(rows)
        if shown:
            places = [line.offset for line in shown]
            start = self.found if self.found in places else places[-1]
            self._top = places[0]
            self.selection = (start, start)

    def select_between(self, first: int, last: int, rows: int) -> None:
        """Select from one line to another, by their offsets; the view stays."""
        shown = self.lines(rows)
        self._top = shown[0].offset if shown else self._top
        self.selection = (first, last)

    def extend(self, by: int, rows: int) -> None:
        """Move the end of the selection by lines, and the view with it."""
        if self.selection is None:
            return
        first, last = self.selection
        further = self._backward(last, -by) if by < 0 else self._forward(last, by + 1)
        if further:
            last = further[0 if by < 0 else -1].offset
        self.selection = (first, last)
        shown = [line.offset for line in self.lines(rows)]
        if shown and last < shown[0]:
            self._top = last
        elif shown and last > shown[-1]:
            above = self._backward(last, rows - 1)
            self._top = above[0].offset if above else last

    def selects(self, offset: int) -> bool:
        return self.selection is not None and min(self.selection) <= offset <= max(self.selection)

    def chosen(self, rows: int) -> Sequence[LogLine]:
        """The selected lines, at most ``MOST_COPIED``; without a selection those in view."""
        if self.selection is None:
            return self.lines(rows)
        found = self._forward(min(self.selection), MOST_COPIED)
        return [line for line in found if line.offset <= max(self.selection)]

    def to_line(self, number: int, rows: int) -> bool:
        """Go to a line by its number, whatever is filtered; False when there is none, or not yet."""
        found = self.document.at_line(number, 1)
        if not found:
            return False
        self.level = 0
        self._show(found[0], rows)
        return True

    def _show(self, line: LogLine, rows: int) -> None:
        """Mark a line and put it into the upper third of the view."""
        self.found = line.offset
        above = self._backward(line.offset, rows // 3)
        self._top = above[0].offset if above else line.offset

    def _forward(self, offset: int, rows: int) -> list[LogLine]:
        return self._wanted_lines(offset, rows, backwards=False)

    def _backward(self, offset: int, rows: int) -> list[LogLine]:
        return self._wanted_lines(offset, rows, backwards=True)

    def _wanted_lines(self, offset: int, rows: int, *, backwards: bool) -> list[LogLine]:
        read = self.document.before if backwards else self.document.window
        if rows <= 0 or not self.level:
            return list(read(offset, rows)) if rows > 0 else []
        kept: list[LogLine] = []
        for _ in range(_MOST_PAGES):
            page = read(offset, _PAGE_LINES)
            wanted = [line for line in page if line.level in LEVELS[self.level][1]]
            kept = wanted + kept if backwards else kept + wanted
            if len(kept) >= rows or len(page) < _PAGE_LINES:
                break
            offset = page[0].offset if backwards else page[-1].offset + 1
        return kept[-rows:] if backwards else kept[:rows]


@lru_cache(8)
def matcher(pattern: str) -> LinePattern:
    """The pattern to highlight, upper and lower case alike; what is no regular expression is taken literally."""
    from ...core.logview.searching import compiled

    return compiled(pattern)
