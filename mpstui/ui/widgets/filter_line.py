"""One line above a list: what is typed there leaves the entries that match. It is there while there is a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from ..rows import Row, fit, row
from .lines import LinePanel
from .text_field import TextField

if TYPE_CHECKING:
    from ...core.runs.query import Query


class FilterWords(LinePanel):
    """A few words beside the field."""

    def __init__(self, text: str = "", role: str = "dim") -> None:
        super().__init__()
        self._text, self._role = text, role

    def tell(self, text: str, role: str = "dim") -> None:
        self._text, self._role = text, role
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        return [row((fit(self._text, width - 1, "right"), self._role))]


class FilterLine(Horizontal):
    """Letters go into it while :attr:`typing`; behind that it stays and shows what is looked for."""

    class Changed(Message):
        """Another query, or letters go elsewhere now."""

    def __init__(self, hint: str) -> None:
        super().__init__()
        self._hint = hint
        self._count = FilterWords()
        self.wanted: Query | None = None
        """None: everything."""
        self.display = False

    def compose(self) -> ComposeResult:
        sign = FilterWords("/", "key strong")
        sign.add_class("sign")
        yield sign
        field = TextField("", self._hint, compact=True, select_on_focus=False)
        field.entered = lambda text: self.peel()
        yield field
        yield self._count

    @property
    def _field(self) -> TextField:
        return self.query_one(TextField)

    @property
    def typing(self) -> bool:
        return self.screen.focused is self._field

    def open(self) -> None:
        """Take what is typed from the next key on."""
        self.display = True
        self.screen.set_focus(self._field)
        self.post_message(self.Changed())

    def peel(self) -> bool:
        """Stop typing, else drop the filter; False where there was none."""
        was_shown, typed = self.display, self.typing
        if typed:
            self.screen.set_focus(None)
        if not typed or not self._field.value.strip():
            self._field.value = ""
            self.display = False
        self.post_message(self.Changed())
        return was_shown

    def show(self, count: int, total: int, things: str) -> None:
        """So many of all match."""
        mistake = self.wanted.mistake if self.wanted else ""
        self._count.tell(mistake or f"{count} of {total} {things}", "warn" if mistake else "dim")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        from ...core.runs.query import parse_query

        self.wanted = parse_query(event.value) if event.value.strip() else None
        self.post_message(self.Changed())
