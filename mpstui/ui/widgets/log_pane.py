"""The output of a run: follows its end, scrolls back through the file, searches, keeps the program's own colours."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import MouseScrollDown, MouseScrollUp

from ...core.present import format as shown
from ..ports import LogLinePort, LogPort, StyleSpanPort
from ..rows import Row, Span, clean, clip, row
from .lines import LinePanel
from .log_reading import LEVELS, LogReading, matcher

_GLYPHS = {"error": ("✗ ", "bad"), "warning": ("! ", "warn")}
_MOST_MATCHES = 50
_WHEEL_LINES = 3


def log_row(line: LogLinePort, width: int, pattern: str = "", *, found: bool = False) -> Row:
    """One line with a mark for its level, its own colours, and the matches of a search."""
    glyph, tone = _GLYPHS.get(line.level or "", ("  ", ""))
    text = clean(line.text, max(width * 2, 200))
    spans = _coloured(text, line.spans, tone)
    if pattern:
        spans = _marked(spans, text, pattern)
    return row(Span(glyph, tone), *clip(tuple(spans), width - 2), base="selected" if found else "")


def _coloured(text: str, spans: Sequence[StyleSpanPort], tone: str) -> list[Span]:
    pieces: list[Span] = []
    position = 0
    for span in spans:
        start, end = max(position, span.start), min(len(text), span.end)
        if start >= end:
            continue
        pieces += [Span(text[position:start], tone), Span(text[start:end], f"sgr:{span.codes}")]
        position = end
    pieces.append(Span(text[position:], tone))
    return [piece for piece in pieces if piece.text]


def _marked(spans: list[Span], text: str, pattern: str) -> list[Span]:
    """The same pieces with the matches cut out of them."""
    found = matcher(pattern).finditer(text)
    ranges = [
        match.span() for match, _ in zip(found, range(_MOST_MATCHES), strict=False) if match.end() > match.start()
    ]
    pieces: list[Span] = []
    base = 0
    for span in spans:
        position, end = base, base + len(span.text)
        for low, high in ranges:
            if high <= position or low >= end:
                continue
            low, high = max(low, position), min(high, end)
            pieces += [Span(text[position:low], span.role), Span(text[low:high], "match")]
            position = high
        pieces.append(Span(text[position:end], span.role))
        base = end
    return [piece for piece in pieces if piece.text]


class LogPane(LinePanel):
    """The panel. It has no document until its run has written something."""

    TITLE = "log"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.reading: LogReading | None = None
        self.absent = "reading …"

    def open(self, document: LogPort | None, absent: str = "no output yet") -> None:
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
        """Lines in view."""
        return max(1, self.size.height - (1 if self.titled else 0))

    def scroll_rows(self, by: int) -> None:
        """Move the view down (or up)."""
        if self.reading is not None:
            self.reading.scroll(by, self.page)
            self.repaint()

    def to_line(self, number: int) -> bool:
        """Show a line by its number; False when it is not there."""
        shown = self.reading is not None and self.reading.to_line(number, self.page)
        self.repaint()
        return shown

    def to_edge(self, direction: int) -> None:
        """To the first line, or to the end to follow it."""
        if self.reading is not None:
            (self.reading.follow if direction > 0 else self.reading.to_start)()
            self.repaint()

    def status(self) -> tuple[Span, ...]:
        """Whether it follows, how long it is, what is filtered and searched."""
        if self.reading is None:
            return ()
        count = self.reading.document.line_count
        parts = ["following" if self.reading.following else "scrolled · G follows"]
        parts += [LEVELS[self.reading.level][0]] if self.reading.level else []
        parts += [f"/{clean(self.reading.pattern, 20)}"] if self.reading.pattern else []
        parts += [f"{shown.whole(count)} lines"] if count is not None else []
        return tuple(Span(part if place == 0 else f" · {part}", "dim") for place, part in enumerate(parts))

    def rows(self, width: int, height: int) -> list[Row]:
        """The lines in view."""
        if self.reading is None:
            return [row((f" {self.absent}", "dim"))]
        lines = self.reading.lines(height)
        if not lines:
            text = f" no {LEVELS[self.reading.level][0]}" if self.reading.level else f" {self.absent}"
            return [row((text, "dim"))]
        reading = self.reading
        return [log_row(line, width, reading.pattern, found=line.offset == reading.found) for line in lines]

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """The wheel scrolls."""
        self.scroll_rows(_WHEEL_LINES)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """The wheel scrolls."""
        self.scroll_rows(-_WHEEL_LINES)
