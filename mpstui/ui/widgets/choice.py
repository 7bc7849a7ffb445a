"""A field with a few possible values, in one line: arrows or space change it."""

from __future__ import annotations

from textual.binding import Binding
from textual.events import Blur, Focus
from textual.message import Message

from ..rows import Row, row
from .lines import LinePanel


class Choice(LinePanel, can_focus=True):
    """One of several values."""

    BINDINGS = [  # noqa: RUF012 - Textual's name and kind
        Binding("right,space", "turn(1)", show=False),
        Binding("left", "turn(-1)", show=False),
    ]

    class Changed(Message):
        """Another value."""

    def __init__(self, value: str, choices: tuple[str, ...], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.choices = choices if value in choices else (value, *choices)
        self.value = value

    def action_turn(self, by: int) -> None:
        """Take the next value, round and round."""
        self.value = self.choices[(self.choices.index(self.value) + by) % len(self.choices)]
        self.repaint()
        self.post_message(self.Changed())

    def on_click(self) -> None:
        """A click takes the next value."""
        self.focus()
        self.action_turn(1)

    def on_focus(self, event: Focus) -> None:
        """Brighten the arrows."""
        self.repaint()

    def on_blur(self, event: Blur) -> None:
        """Dim them."""
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        """All values, the chosen one between arrows."""
        arrows = "key" if self.has_focus else "faint"
        parts: list[tuple[str, str]] = []
        for choice in self.choices:
            chosen = choice == self.value
            parts += [("‹" if chosen else " ", arrows), (choice, "strong" if chosen else "faint")]
            parts += [("›" if chosen else " ", arrows), (" ", "")]
        return [row(*parts)]
