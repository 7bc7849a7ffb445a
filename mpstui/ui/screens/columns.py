"""Choosing the columns of the list, among all in which some run has a value; current ones come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.events import Click
from textual.screen import ModalScreen

from ...core.runs.listing import columns_of
from ..rows import EMPTY, Row, clean, cut, row
from ..widgets.lines import LinePanel, WheelScrolled

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot

_WIDTH = 46
_ALWAYS = ("state", "name")
_KINDS = {"set": "setting", "last": "last value", "best": "best value"}


class ColumnList(WheelScrolled, LinePanel):
    """One line per column, with a tick if it is shown."""

    def __init__(self, names: Sequence[tuple[str, str]], chosen: Sequence[str]) -> None:
        super().__init__()
        self.names = names
        self.chosen = list(chosen)
        self.place = 0
        self._top = 0

    def scroll_rows(self, by: int) -> None:
        """Select another line."""
        self.place = max(0, min(len(self.names) - 1, self.place + by))
        self.repaint()

    def toggle(self) -> None:
        """Add the column of this line after the others, or remove it."""
        name = self.names[self.place][0]
        if name in self.chosen:
            self.chosen.remove(name)
        else:
            self.chosen.append(name)
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        keys = row(
            ("space", "key"),
            (" show or not   ", "dim"),
            ("⏎", "key"),
            (" done   ", "dim"),
            ("r", "key"),
            (" reset", "dim"),
        )
        room = max(1, height - 3)
        self._top = max(min(self._top, self.place), self.place - room + 1, 0)
        lines = []
        for place, (name, title) in enumerate(self.names[self._top : self._top + room], start=self._top):
            kind = _KINDS.get(name.partition(":")[0], "") if ":" in name else ""
            sign = ("✓ ", "good") if name in self.chosen else ("  ", "")
            text = cut(clean(title.removeprefix("best ") if kind else title, 200), width - len(kind) - 4)
            filler = " " * max(1, width - 3 - len(kind) - row(text).width)
            lines.append(row(sign, text, filler, (kind, "dim"), base="selected" if place == self.place else ""))
        return [row(("columns of the list", "title")), *lines, EMPTY, keys]

    def on_click(self, event: Click) -> None:
        """Show or hide the clicked column."""
        place = event.screen_y - self.content_region.y - 1
        if 0 <= place < min(len(self.names), self.content_size.height - 3):
            self.place = self._top + place
            self.toggle()


class ColumnChooser(ModalScreen[tuple[str, ...] | None]):
    """Returns the ids of the chosen columns in order; none: as many as fit the width."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [  # noqa: RUF012 - Textual's name and kind
        ("escape,q", "leave"),
        ("enter,vertical_line", "done"),
        ("space", "tick"),
        ("r", "reset"),
        ("up,k", "move(-1)"),
        ("down,j", "move(1)"),
        ("pageup", "move(-10)"),
        ("pagedown", "move(10)"),
    ]

    def __init__(self, chosen: Sequence[str], snapshots: Sequence[RunSnapshot]) -> None:
        super().__init__()
        known = {one.id: one.title for one in columns_of(snapshots) if one.id not in _ALWAYS}
        shown = [name for name in chosen if name in known]
        names = [(name, known[name]) for name in [*shown, *(name for name in known if name not in shown)]]
        self._list = ColumnList(names, shown)

    def compose(self) -> ComposeResult:
        self._list.styles.width = min(_WIDTH, self.app.size.width)
        self._list.styles.height = min(len(self._list.names) + 5, self.app.size.height)
        yield self._list

    def action_move(self, by: int) -> None:
        self._list.scroll_rows(by)

    def action_tick(self) -> None:
        self._list.toggle()

    def action_done(self) -> None:
        self.dismiss(tuple(self._list.chosen))

    def action_reset(self) -> None:
        self.dismiss(())

    def action_leave(self) -> None:
        self.dismiss(None)
