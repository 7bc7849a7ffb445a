"""The user's position in a log: at its end or somewhere above; with a level filter and a search. No drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...core.logview.counting import Tally
    from ...core.logview.document import LogDocument
    from ...core.logview.line import LogLine
    from ...core.logview.steps import LogSteps

LEVELS: tuple[tuple[str, frozenset[str]], ...] = (
    ("all lines", frozenset()),
    ("warnings and errors", frozenset({"warning", "error"})),
    ("errors", frozenset({"error"})),
)
_PAGE_LINES, _MOST_PAGES = 400, 50
"""Most lines that a filter checks before it shows what it has found, so that keys stay responsive."""
_FIRST_SECONDS = 0.05
"""A search that takes longer than this continues between keys."""
MOST_COPIED = 2000
"""Most lines to copy: terminals accept a few hundred kilobytes for their clipboard."""


@dataclass(slots=True)
class Hunt:
    """A search that is still going through a long file."""

    pattern: str | None
    """The pattern; None searches for errors."""
    ways: list[tuple[int, bool]]
    """The stretches to search in turn, and whether backwards."""


class Place(NamedTuple):
    """A row of the log: the offset of its line, and which row of that line it is if the line is wrapped."""

    offset: int
    row: int = 0


class LogReading:
    """The part of a document that is in view, with its search and selection."""

    def __init__(self, document: LogDocument) -> None:
        self.document = document
        self.rows_of: Callable[[LogLine], int] = lambda line: 1
        """Returns how many rows a line takes, at least one."""
        self.level = 0
        self.pattern = ""
        self.found: int | None = None
        """Offset of the line that the last search or error jump led to."""
        self._asked_for: tuple[int, int] | None = None
        """Offset and number of the line that was requested by its number."""
        self.hunt: Hunt | None = None
        """The search in progress."""
        self.selection: tuple[int, int] | None = None
        """Offsets of the lines where the selection begins and ends."""
        self.total_steps: int | None = None
        """Total steps of the training, if known."""
        self._steps: LogSteps | None = None
        self._top: Place | None = None
        self._tallies: dict[str, Tally] = {}
        """How many lines match the search, and how many the level."""
        self._before_search: tuple[Place | None, int | None, str] | None = None
        self._numbered: tuple[int | None, int, int | None] = (None, 0, None)

    @property
    def steps(self) -> LogSteps:
        """Maps lines to the step at which they were printed."""
        from ...core.logview.steps import LogSteps

        if self._steps is None or self._steps.total != self.total_steps:
            self._steps = LogSteps(self.document, self.total_steps)
        return self._steps

    @property
    def following(self) -> bool:
        """True if the view follows new lines."""
        return self._top is None

    def rows(self, height: int) -> Sequence[tuple[LogLine, int]]:
        """Return the rows in view: for each, its line and which row of that line it is."""
        if height <= 0:
            return ()
        if self._top is not None:
            shown = self._rows_from(self._top, height)
            if len(shown) >= height or self.document.waiting:
                return shown[:height]
            self._top = None
        if not self.level:
            return self._rows_of(self.document.tail(height))[-height:]
        newest = self.document.tail(1)
        end = [line for line in newest if line.level in LEVELS[self.level][1]]
        lines = [*self._backward(newest[0].offset, height - len(end)), *end] if newest else []
        return self._rows_of(lines)[-height:]

    def lines(self, height: int) -> Sequence[LogLine]:
        """Return the lines that are in view, even in part."""
        return list({line.offset: line for line, _ in self.rows(height)}.values())

    def _rows_of(self, lines: Iterable[LogLine]) -> list[tuple[LogLine, int]]:
        return [(line, place) for line in lines for place in range(self.rows_of(line))]

    def _rows_from(self, place: Place, rows: int) -> list[tuple[LogLine, int]]:
        lines = self._forward(place.offset, rows)
        first = place.row if lines and lines[0].offset == place.offset else 0
        return self._rows_of(lines)[min(first, self.rows_of(lines[0]) - 1) if lines else 0 :]

    def _above(self, place: Place, by: int) -> Place:
        """Return the place ``by`` rows above another; the top if there are fewer."""
        if by <= place.row:
            return Place(place.offset, place.row - by)
        rows = self._rows_of(self._backward(place.offset, by - place.row))
        if not rows:
            return Place(place.offset)
        line, row = rows[max(0, len(rows) - (by - place.row))]
        return Place(line.offset, row)

    def follow(self) -> None:
        self._top = None

    def to_start(self) -> None:
        first = self._forward(0, 1)
        self._top = Place(first[0].offset) if first else None

    def scroll(self, by: int, height: int) -> None:
        """Move the view by rows; at the end it follows new lines again."""
        shown = self.rows(height)
        if not shown or (by > 0 and self.following):
            return
        top = Place(shown[0][0].offset, shown[0][1])
        if by < 0:
            self._top = self._above(top, -by)
            return
        below = self._rows_from(top, by + height + 1)
        self._top = None
        if len(below) > by + height:
            self._top = Place(below[by][0].offset, below[by][1])

    def next_level(self) -> None:
        """Switch to the next level filter."""
        self.level = (self.level + 1) % len(LEVELS)
        self._tallies.pop("level", None)

    def count_on(self, seconds: float) -> bool:
        """Count matches of search and level for this many seconds; return True if there are more lines to count."""
        from ...core.logview.counting import Tally
        from ...core.logview.searching import matching, of_levels

        wanted = {"search": lambda: matching(self.pattern), "level": lambda: of_levels(LEVELS[self.level][1])}
        more = False
        for name, asked in (("search", bool(self.pattern)), ("level", self.level > 0)):
            if not asked:
                self._tallies.pop(name, None)
                continue
            tally = self._tallies.setdefault(name, Tally(wanted[name]()))
            if not self.document.count_on(tally, seconds):
                del self._tallies[name]
            more = more or not tally.complete
        return more

    @property
    def matches(self) -> str:
        """``3 of 17``: position among the matches; empty without a search, or before anything was counted."""
        tally = self._tallies.get("search")
        if tally is None:
            return ""
        if tally.complete and not tally.count:
            return "no match"
        if self._numbered[:2] != (self.found, tally.count):
            number = self.document.number_in(tally, self.found) if self.found is not None else None
            self._numbered = self.found, tally.count, number
        number = self._numbered[2]
        ending = "" if tally.text == "1" else "es"
        return f"{number:,} of {tally.text}" if number is not None else f"{tally.text} match{ending}"

    @property
    def level_count(self) -> str:
        """How many lines pass the level filter."""
        return self._tallies["level"].text if "level" in self._tallies else ""

    def begin_search(self) -> None:
        """Remember the view: a search starts here while it is typed, and returns here if cancelled."""
        self._before_search = self._top, self.found, self.pattern

    def cancel_search(self) -> None:
        """Return to where the search began."""
        if self._before_search is not None:
            self._top, self.found, self.pattern = self._before_search
            self.hunt = None
            self._tallies.pop("search", None)

    def find_typed(self, pattern: str, rows: int) -> bool | None:
        """Search for what has been typed so far; see :meth:`find`."""
        if self._before_search is not None:
            self._top, self.found, _ = self._before_search
        self.found = None
        if pattern:
            return self.find(pattern, rows)
        self.hunt, self.pattern = None, ""
        return True

    def find(self, pattern: str, rows: int, *, backwards: bool = False, again: bool = False) -> bool | None:
        """Go to a line that contains ``pattern``; a new search starts in view, a repeated one (``again``) wraps around.

        Returns:
            True if there is one; None: a long file is still being searched, continue with :meth:`search_on`.
        """
        if pattern != self.pattern:
            self._tallies.pop("search", None)
        self.pattern = pattern
        return self._jump(pattern, rows, backwards=backwards, again=again)

    def next_error(self, rows: int, *, backwards: bool = False) -> bool | None:
        """Go to the next error from here; from the end, to the last one. Returns the same as :meth:`find`."""
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
        ways = [(start, backwards)]
        if not again:
            ways.append((shown[0].offset, True))
        elif pattern is not None:
            ways.append((self.document.size_bytes if backwards else 0, backwards))
        self.hunt = Hunt(pattern, ways)
        return self.search_on(rows, _FIRST_SECONDS)

    def search_on(self, rows: int, seconds: float) -> bool | None:
        """Continue a search for this many seconds; see :meth:`find`."""
        hunt = self.hunt
        while hunt is not None and hunt.ways:
            offset, backwards = hunt.ways[0]
            if hunt.pattern is None:
                line = self.document.next_error(offset, backwards, seconds)
            else:
                line = self.document.search(hunt.pattern, offset, backwards, seconds)
            if line is not None:
                self.hunt = None
                if self.level and line.level not in LEVELS[self.level][1]:
                    self.level = 0
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
        """How far a running search has come in the file, from 0 to 1."""
        if self.hunt is None or not self.hunt.ways:
            return None
        return min(1.0, self.hunt.ways[0][0] / max(1, self.document.size_bytes))

    def stop_search(self) -> bool:
        """Drop the selection, the running search or the marks of the last one; return False if there was none."""
        if self.selection is not None:
            self.selection = None
            return True
        there = self.hunt is not None or bool(self.pattern)
        self.hunt, self.pattern, self.found = None, "", None
        return there

    def select(self, rows: int) -> None:
        """Start a selection at the line last found or the last one in view; if there is one, drop it instead."""
        if self.selection is not None:
            self.selection = None
            return
        shown = self.lines(rows)
        if shown:
            places = [line.offset for line in shown]
            start = self.found if self.found in places else places[-1]
            self._stay(rows)
            self.selection = (start, start)

    def select_between(self, first: int, last: int, rows: int) -> None:
        """Select from one line to another, by offset; the view stays."""
        self._stay(rows)
        self.selection = (first, last)

    def _stay(self, height: int) -> None:
        """Keep the view in place, even as new lines arrive."""
        shown = self.rows(height)
        if shown:
            self._top = Place(shown[0][0].offset, shown[0][1])

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
            self._top = Place(last)
        elif shown and last > shown[-1]:
            self._top = self._above(Place(last), rows - 1)

    def selects(self, offset: int) -> bool:
        return self.selection is not None and min(self.selection) <= offset <= max(self.selection)

    def chosen(self, rows: int) -> Sequence[LogLine]:
        """Return the selected lines, at most ``MOST_COPIED``; without a selection, those in view."""
        if self.selection is None:
            return self.lines(rows)
        found = self._forward(min(self.selection), MOST_COPIED)
        return [line for line in found if line.offset <= max(self.selection)]

    def to_line(self, number: int, rows: int) -> bool:
        """Go to a line by its number, even if it is filtered out; return False if it does not exist, or not yet."""
        found = self.document.at_line(number, 1)
        if not found:
            return False
        self.show_line(found[0], rows)
        self._asked_for = found[0].offset, number
        return True

    @property
    def number(self) -> int | None:
        """The number of the marked line, if it was requested by number."""
        return self._asked_for[1] if self._asked_for is not None and self._asked_for[0] == self.found else None

    def _show(self, line: LogLine, rows: int) -> None:
        """Mark a line and bring it into the upper third of the view."""
        self.found = line.offset
        self._top = self._above(Place(line.offset), max(0, min(rows // 3, rows - self.rows_of(line))))

    def show_line(self, line: LogLine, rows: int) -> None:
        """Go to a line, even if it is filtered out."""
        self.level = 0
        self._show(line, rows)

    @property
    def place(self) -> tuple[Place | None, int | None]:
        """Return what is in view and the marked line, to be passed to :meth:`return_to`."""
        return self._top, self.found

    def return_to(self, place: tuple[Place | None, int | None]) -> None:
        self._top, self.found = place

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
