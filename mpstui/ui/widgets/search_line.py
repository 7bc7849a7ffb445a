"""A line to type a search in; what is searched stays in view and follows each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from ..rows import Row, fit, row
from .lines import KeyLine, LinePanel

if TYPE_CHECKING:
    from textual.widgets import Input

    from ...core.runs.query import Query
    from .text_field import TextField


class LineWords(LinePanel):
    """A few words beside the field."""

    def __init__(self, text: str = "", role: str = "dim") -> None:
        super().__init__()
        self._text, self._role = text, role

    def tell(self, text: str, role: str = "dim") -> None:
        self._text, self._role = text, role
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        return [row((fit(self._text, width - 1, "right"), self._role))]


class SearchLine(Horizontal):
    """Hidden until opened, then in place of the footer. Keys typed right after it was opened go to it.

    Its widgets are made when it is first opened: otherwise each start of the screen would take 8 ms longer.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("up", "step(-1)", show=False),
        Binding("down", "step(1)", show=False),
        Binding("tab,shift+tab", "nothing", show=False),
    ]
    _hint = ""
    """Shown while it is empty."""

    def __init__(
        self,
        typed: Callable[[str], object],
        entered: Callable[[str], object],
        left: Callable[[], object],
        stepped: Callable[[int], object],
    ) -> None:
        """Callbacks: with the text so far, with the final text, when the search is left, and on up or down."""
        super().__init__()
        self._field: TextField | None = None
        self._typed, self._entered, self._left, self._stepped = typed, entered, left, stepped
        self.display = False

    def parts(self, field: TextField) -> Iterable[Widget]:
        """Return the widgets of the line, including its field."""
        return LineWords(" /", "key strong").add_class("sign"), field

    @property
    def field(self) -> TextField:
        """The input field; it exists once the line has been opened."""
        assert self._field is not None
        return self._field

    @property
    def typing(self) -> bool:
        return self._field is not None and self.screen.focused is self._field

    def open(self, text: str = "") -> None:
        """Show it and take the keys from now on; typing replaces ``text``."""
        if self._field is None:
            from .text_field import TextField

            self._field = TextField("", self._hint, compact=True)
            self.mount(*self.parts(self._field))
        self.field.entered = self._enter
        self.field.value = text
        self._show(here=True)
        self.field.select_all()
        self.screen.set_focus(self.field)

    def _show(self, *, here: bool) -> None:
        self.display = here
        for footer in self.screen.query(KeyLine):
            footer.display = not here
        if not here:
            self.screen.set_focus(None)

    def _enter(self, text: str) -> None:
        self._show(here=False)
        self._entered(text)

    def action_leave(self) -> None:
        self._show(here=False)
        self._left()

    def action_step(self, by: int) -> None:
        self._stepped(by)

    def action_nothing(self) -> None:
        """Ignore tab: while typing, the focus stays in the field."""

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display and event.value == self.field.value:
            self._typed(event.value)


class FilterLine(SearchLine):
    """A search line above a list, which it filters; it stays as long as there is a filter."""

    def __init__(self, hint: str, changed: Callable[[], object], stepped: Callable[[int], object]) -> None:
        """``changed`` is called if the query changes, or if letters start or stop going to the line."""
        super().__init__(self._looked_for, lambda text: None, lambda: None, stepped)
        self._hint, self._changed, self._count = hint, changed, LineWords()
        self.wanted: Query | None = None
        """The query; None shows everything."""

    def parts(self, field: TextField) -> Iterable[Widget]:
        return *super().parts(field), self._count.add_class("count")

    def open(self, text: str = "") -> None:
        super().open(text or (self._field.value if self._field is not None else ""))
        self._changed()

    def _show(self, *, here: bool) -> None:
        self.display = here or bool(self.field.value.strip())
        if not here:
            self.screen.set_focus(None)
            self._looked_for(self.field.value)  # the field's change message may arrive after the next key

    def _looked_for(self, text: str) -> None:
        from ...core.runs.query import parse_query

        self.wanted = parse_query(text) if text.strip() else None
        self._changed()

    def drop(self) -> bool:
        """Drop the search; return False if there was none."""
        there, self.wanted = self.display, None
        if self._field is not None:
            self._field.value = ""
            self._show(here=False)
        return there

    def show(self, count: int, total: int, things: str) -> None:
        """Show how many of the total match."""
        mistake = self.wanted.mistake if self.wanted else ""
        self._count.tell(mistake or f"{count} of {total} {things}", "warn" if mistake else "dim")
