"""An input line that shows every character of its value and lets none reach the terminal as a command."""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from textual.strip import Strip
from textual.widgets import Input

from ..rows import visible
from .lines import LetterTaker


class TextField(LetterTaker, Input):
    """Textual's input, except that control characters are displayed, not sent as they are; the value keeps them."""

    entered: Callable[[str], object] | None = None
    """Gets the value on enter, before the next key is handled; None: a message is posted, which may come late."""

    def take(self, character: str) -> None:
        """Insert a character at the cursor, or replace the selection with it.

        If it arrives before the field has learnt of its focus, it replaces the whole content, as any other first
        character would, and is not itself selected when the focus event comes.
        """
        if not self.has_focus and self.select_on_focus:
            self.select_on_focus = False
            self.select_all()
        if self.selection.is_empty:
            self.insert_text_at_cursor(character)
        else:
            self.replace(character, *self.selection)

    def on_blur(self) -> None:
        self.select_on_focus = True

    async def action_submit(self) -> None:
        if self.entered is None:
            await super().action_submit()
        else:
            self.entered(self.value)

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if strip.text.isprintable():
            return strip
        segments = [Segment(visible(text), style) for text, style, _ in strip]
        return Strip(segments).adjust_cell_length(strip.cell_length, self.rich_style)
