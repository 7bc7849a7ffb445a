"""The output of a run: follows its end, scrolls back through the file, searches, keeps the program's own colours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING

from textual.events import MouseDown, MouseMove, MouseScrollDown, MouseScrollUp

from ...core import present as shown
from ..rows import Row, Span, clean, clip, row
from ..widgets.log_reading import LEVELS, LogReading, matcher
from . import Panel, RunPanel

if TYPE_CHECKING:
    from ...core.logview.document import LogDocument
    from ...core.logview.line import LogLine

_GLYPHS = {"error": ("✗ ", "bad"), "warning": ("! ", "warn")}
_MOST_MATCHES = 50
_WHEEL_LINES = 3
_SLICE_SECONDS, _BREATH_SECONDS = 0.02, 0.001


def log_row(line: LogLine, width: int, pattern: str = "", *, found: bool = False) -> Row:
    """One line with a mark for its level, its own colours, and the matches of a search."""
    glyph, tone = _GLYPHS.get(line.level or "", ("  ", ""))
    text = clean(line.text, max(width * 2, 200))
    spans = [Span(text, tone)]
    if line.spans or pattern:
        roles = [tone] * len(text)
        for span in line.spans:
            roles[span.start : span.end] = [f"sgr:{span.codes}"] * len(text[span.start : span.end])
        for match in islice(matcher(pattern).finditer(text), _MOST_MATCHES) if pattern else ():
            roles[slice(*match.span())] = ["match"] * (match.end() - match.start())
        cells = groupby(zip(text, roles, strict=True), key=itemgetter(1))
        spans = [Span("".join(character for character, _ in part), role) for role, part in cells]
    return row(Span(glyph, tone), *clip(tuple(spans), width - 2), base="selected" if found else "")


class LogPane(RunPanel):
    """The panel. It has no document until its run has written something."""

    scrolls = True
    drawn_from = ()  # but from its file: when that has grown, see `grew`

    def __init__(self) -> None:
        super().__init__()
        self.reading: LogReading | None = None
        self.absent = "reading …"
        self.attempt = ""
        """Whose output it is, unless it is the newest one's."""
        self._offsets: list[int] = []
        self._pressed: int | None = None

    def open(self, document: LogDocument | None, absent: str = "no output yet") -> None:
        """Look at another document, or at none and why."""
        self.reading = LogReading(document) if document is not None else None
        self.absent = absent
        self.repaint()

    def grew(self) -> None:
        """The file has changed; a view that was scrolled away stays where it is."""
        if self.reading is not None and self.reading.document.refresh():
            self.repaint()

    @property
    def page(self) -> int:
        return max(1, self.size.height - (1 if self.titled else 0))

    def scroll_rows(self, by: int) -> None:
        """Move the view down (or up); while lines are selected, the end of the selection."""
        if self.reading is not None:
            (self.reading.extend if self.reading.selection is not None else self.reading.scroll)(by, self.page)
            self.repaint()

    def follow_search(self, found: bool | None, done: Callable[[bool], object]) -> None:
        """Tell how a search went; one that goes on does so in slices, between which keys and frames find their place.

        Args:
            found: what `LogReading.find` returned.
            done: is told whether anything was found, now or later; never where the search was stopped.
        """
        reading = self.reading
        if found is not None or reading is None:
            done(bool(found))
        else:
            hunt = reading.hunt

            def go_on() -> None:
                if self.reading is reading and reading.hunt is hunt is not None:
                    self.follow_search(reading.search_on(self.page, _SLICE_SECONDS), done)

            self.set_timer(_BREATH_SECONDS, go_on)
        self.repaint()

    def stop_search(self) -> bool:
        """See :meth:`LogReading.stop_search`."""
        there = self.reading is not None and self.reading.stop_search()
        self.repaint()
        return there

    def to_line(self, number: int) -> bool:
        """Show a line by its number; False when it is not there."""
        shown = self.reading is not None and self.reading.to_line(number, self.page)
        self.repaint()
        return shown

    def to_edge(self, direction: int) -> None:
        if self.reading is not None:
            (self.reading.follow if direction > 0 else self.reading.to_start)()
            self.repaint()

    def status(self) -> tuple[Span, ...]:
        if self.reading is None:
            return (Span(self.attempt, "dim"),) if self.attempt else ()
        reading, count = self.reading, self.reading.document.line_count
        if reading.searched_to is not None:
            parts = [f"searching, at {reading.searched_to:.0%} · esc stops"]
        elif reading.selection is not None:
            parts = ["selecting · Y copies"]
        else:
            parts = ["following" if reading.following else "scrolled · G follows"]
        parts = [self.attempt, *parts] if self.attempt else parts
        parts += [LEVELS[reading.level][0]] if reading.level else []
        parts += [f"/{clean(reading.pattern, 20)}"] if reading.pattern else []
        parts += [f"{shown.whole(count)} {'line' if count == 1 else 'lines'}"] if count is not None else []
        return tuple(Span(part if place == 0 else f" · {part}", "dim") for place, part in enumerate(parts))

    def rows(self, width: int, height: int) -> list[Row]:
        reading = self.reading
        lines = reading.lines(height) if reading is not None else ()
        self._offsets = [line.offset for line in lines]
        if reading is None or not lines:
            return [row((f" no {LEVELS[reading.level][0]}" if reading and reading.level else f" {self.absent}", "dim"))]
        lit = [line.offset == reading.found or reading.selects(line.offset) for line in lines]
        return [log_row(line, width, reading.pattern, found=here) for line, here in zip(lines, lit, strict=True)]

    def _line_at(self, y: int) -> int | None:
        """The offset of the line in a row of the panel."""
        place = y - (1 if self.titled else 0)
        return self._offsets[place] if 0 <= place < len(self._offsets) else None

    def on_mouse_down(self, event: MouseDown) -> None:
        """A selection may begin here; a mere click leaves the one there was."""
        self._pressed = self._line_at(event.y)
        if self.reading is not None:
            self.reading.selection = None
            self.repaint()

    def on_mouse_move(self, event: MouseMove) -> None:
        """With the button down lines are selected."""
        here = self._line_at(event.y)
        if event.button and self.reading is not None and self._pressed is not None and here is not None:
            self.reading.select_between(self._pressed, here, self.page)
            self.repaint()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.scroll_rows(_WHEEL_LINES)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.scroll_rows(-_WHEEL_LINES)


PANEL = Panel(order=20, help="the output of its program", widget=LogPane, at_left=True)
