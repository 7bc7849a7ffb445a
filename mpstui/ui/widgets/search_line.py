"""A line to type a search in, in place of the footer: what is searched stays in view, and changes as one types."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from ..rows import Row, row
from .lines import KeyLine, LinePanel
from .text_field import TextField


class SearchLine(Horizontal):
    """Hidden until it is opened. Keys that follow at once are its own."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("up", "step(-1)", show=False),
        Binding("down", "step(1)", show=False),
        Binding("tab,shift+tab", "nothing", show=False),
    ]

    def __init__(
        self,
        typed: Callable[[str], object],
        entered: Callable[[str], object],
        left: Callable[[], object],
        stepped: Callable[[int], object],
    ) -> None:
        """What is to be told: the text so far, the text at the end, that the search was left, that one goes on."""
        super().__init__()
        self._typed, self._entered, self._left, self._stepped = typed, entered, left, stepped
        self.display = False

    def compose(self) -> ComposeResult:
        yield _Hint()
        yield TextField(compact=True)

    @property
    def field(self) -> TextField:
        return self.query_one(TextField)

    def open(self, text: str = "") -> None:
        """Show it, and take the keys from now on; what is typed replaces ``text``."""
        self._show(here=True)
        self.field.entered = self._enter
        self.field.value = text
        self.field.select_all()
        self.screen.set_focus(self.field)

    def close(self) -> None:
        self._show(here=False)
        self.screen.set_focus(None)

    def _show(self, *, here: bool) -> None:
        self.display = here
        for footer in self.screen.query(KeyLine):
            footer.display = not here

    def _enter(self, text: str) -> None:
        self.close()
        self._entered(text)

    def action_leave(self) -> None:
        self.close()
        self._left()

    def action_step(self, by: int) -> None:
        self._stepped(by)

    def action_nothing(self) -> None:
        """No other field and no panel is gone to while one types."""

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display and event.value == self.field.value:
            self._typed(event.value)


class _Hint(LinePanel):
    """What stands before the field."""

    def rows(self, width: int, height: int) -> list[Row]:
        return [row((" /", "key strong"))]
