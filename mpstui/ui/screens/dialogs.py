"""Small screens over another one: a question, a line to type, the page of keys."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from ..asking import Question
from ..bindings import KEYS, Scope
from ..rows import EMPTY, Row, Span, clean, fit, row, wrap
from ..widgets.lines import LinePanel

_WIDTH = 64
_KEY_CELLS, _LABEL_CELLS = 7, 14


class Sheet(LinePanel):
    """Fixed lines that can be scrolled."""

    def __init__(self, lines: list[Row]) -> None:
        super().__init__()
        self._lines = lines
        self._top = 0

    def scroll_rows(self, by: int) -> None:
        """Move the view."""
        self._top = max(0, min(self._top + by, len(self._lines) - self.size.height))
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        """The lines in view."""
        shown = self._lines[self._top : self._top + height]
        more = len(self._lines) - self._top > height
        return [*shown[:-1], row(("↓ more", "key"))] if more else shown


class Confirm(ModalScreen[bool]):
    """A question with its consequences; only ``y`` says yes."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [("y", "answer(True)"), ("n,escape,q", "answer(False)")]  # noqa: RUF012 - Textual's name and kind

    def __init__(self, asked: Question) -> None:
        super().__init__()
        self._asked = asked

    def compose(self) -> ComposeResult:
        """The sheet."""
        width = min(_WIDTH, self.app.size.width - 4)
        lines = question_rows(self._asked, width - 4)
        sheet = Sheet(lines)
        sheet.styles.width = width
        sheet.styles.height = min(len(lines) + 2, self.app.size.height)
        sheet.set_class(self._asked.dangerous, "-dangerous")
        yield sheet

    def action_answer(self, yes: bool) -> None:
        """Leave with the answer."""
        self.dismiss(yes)


def question_rows(asked: Question, width: int) -> list[Row]:
    """The question, what will happen, and the keys."""
    body = [row(line) for text in asked.lines for line in wrap(clean(text), width, 4)]
    keys = row(("y", "key strong"), f" {asked.yes}", "    ", ("esc", "key strong"), (" leave it as it is", "dim"))
    return [row((clean(asked.title, width), "title")), EMPTY, *body, EMPTY, keys]


class Prompt(ModalScreen[str | None]):
    """One line to type."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [("escape", "leave")]  # noqa: RUF012 - Textual's name and kind

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        """A title and the line."""
        title = Sheet([row((self._title, "dim"))])
        title.styles.height = 1
        with Vertical(id="prompt"):
            yield title
            yield Input(self._value, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Leave with the text."""
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Leave without."""
        self.dismiss(None)


class Help(ModalScreen[None]):
    """Every key, by where it works."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [  # noqa: RUF012 - Textual's name and kind
        ("escape,q,question_mark,f1,enter", "leave"),
        ("up,k", "scroll_rows(-1)"),
        ("down,j", "scroll_rows(1)"),
        ("pageup", "scroll_rows(-10)"),
        ("pagedown,space", "scroll_rows(10)"),
    ]

    def compose(self) -> ComposeResult:
        """The page, in two columns where there is room."""
        width, height = self.app.size
        lines = help_rows(two_columns=width >= 130)
        sheet = Sheet(lines)
        sheet.styles.width = min(width, 128 if width >= 130 else 76)
        sheet.styles.height = min(len(lines) + 2, height)
        yield sheet

    def action_scroll_rows(self, by: int) -> None:
        """Move the page."""
        self.query_one(Sheet).scroll_rows(by)

    def action_leave(self) -> None:
        """Back to where we were."""
        self.dismiss(None)


def help_rows(two_columns: bool = False) -> list[Row]:
    """The page of keys, made from the table."""
    blocks = [_help_block(scope) for scope in Scope]
    closing = [EMPTY, row(("esc closes this page; every training goes on when you leave the screen", "dim"))]
    if not two_columns:
        return [line for block in blocks for line in (*block, EMPTY)][:-1] + closing
    left = [line for block in blocks[:3] for line in (*block, EMPTY)]
    right = [line for block in blocks[3:] for line in (*block, EMPTY)]
    count = max(len(left), len(right))
    left += [EMPTY] * (count - len(left))
    right += [EMPTY] * (count - len(right))
    pairs = zip(left, right, strict=True)
    return [row(*a.spans, " " * max(1, 62 - a.width), *b.spans) for a, b in pairs] + closing


def _help_block(scope: Scope) -> list[Row]:
    lines = [row((scope.value, "title"))]
    for key in KEYS:
        if key.scope is scope and key.shown:
            name = Span(fit(key.shown, _KEY_CELLS, "right"), "key")
            lines.append(row(name, "  ", (fit(key.label, _LABEL_CELLS), "strong"), (key.help, "dim")))
    return lines
