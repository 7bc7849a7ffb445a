"""A line to type in that shows what a value holds and lets none of it reach the terminal as a command."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip
from textual.widgets import Input

from ..rows import visible


class TextField(Input):
    """Textual's input writes control characters of its value as they are; here they are seen, and kept in the value."""

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if strip.text.isprintable():
            return strip
        segments = [Segment(visible(text), style) for text, style, _ in strip]
        return Strip(segments).adjust_cell_length(strip.cell_length, self.rich_style)
