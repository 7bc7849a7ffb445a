"""The list of runs, newest first: what is selected is a run, never a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.message import Message

from ..rows import EMPTY, Row, row
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from .run_rows import Namesakes


class RunTable(LinePanel):
    """Rows of runs with one selected; the selection is a run, never a place."""

    class Opened(Message):
        """A run was clicked while it was selected."""

    class Selected(Message):
        """Another run is selected."""

        def __init__(self, run: str | None) -> None:
            super().__init__()
            self.run = run

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.snapshots: Sequence[RunSnapshot] = ()
        self.unread = True
        """No picture has come yet: nothing is known, not even that there is nothing."""
        self.selected: str | None = None
        self.marked: tuple[str, ...] = ()
        """Runs to be compared, in the order in which they were marked."""
        self._top = 0
        self._namesakes: Namesakes | None = None

    @property
    def index(self) -> int | None:
        """The place of the selected run now."""
        return next((place for place, item in enumerate(self.snapshots) if item.run == self.selected), None)

    def show(self, snapshots: Sequence[RunSnapshot]) -> None:
        """New pictures. The selected run stays selected, and on its line unless the newest were in view."""
        self.unread = False
        before = self.index
        self.snapshots = snapshots
        self.marked = tuple(run for run in self.marked if any(item.run == run for item in snapshots))
        self._namesakes = None
        after = self.index
        if after is None:
            self._select_at(min(before or 0, len(snapshots) - 1))
        elif before is not None and self._top > 0:
            self._top += after - before
        self.repaint()

    def select(self, run: str | None) -> None:
        """Select a run by its id."""
        if run != self.selected:
            self.selected = run
            self.post_message(self.Selected(run))
        self.repaint()

    def mark(self) -> None:
        """Mark the selected run, or no longer; the next one is then selected."""
        if self.selected is not None:
            rest = tuple(run for run in self.marked if run != self.selected)
            self.marked = rest if self.selected in self.marked else (*rest, self.selected)
        self.move(1)

    def move(self, by: int) -> None:
        """Select the run ``by`` places further down; stops at the ends."""
        self._select_at((self.index or 0) + by)
        self.repaint()

    def _select_at(self, place: int) -> None:
        place = max(0, min(len(self.snapshots) - 1, place))
        self.select(self.snapshots[place].run if self.snapshots else None)

    @property
    def page(self) -> int:
        """Runs in view."""
        return max(1, self.size.height - 1)

    def rows(self, width: int, height: int) -> list[Row]:
        """The titles, then the runs around the selected one."""
        if not self.snapshots:
            return [] if self.unread else empty_state(width, height)
        from .run_rows import (
            Namesakes,
            heading,
            run_row,
        )  # with the first picture: the first paint does not wait for it

        self._scroll_to_selection(height - 1)
        seen = self.snapshots[self._top : self._top + height - 1]
        among = self._namesakes = self._namesakes or Namesakes(self.snapshots)
        return [
            heading(width),
            *(
                run_row(item, width, selected=item.run == self.selected, marked=item.run in self.marked, among=among)
                for item in seen
            ),
        ]

    def _scroll_to_selection(self, room: int) -> None:
        index = self.index or 0
        self._top = max(min(self._top, index, max(0, len(self.snapshots) - room)), index - room + 1, 0)

    def on_click(self, event: Click) -> None:
        """The first click selects, the second opens."""
        place = self._top + event.y - 1
        if event.y < 1 or place >= len(self.snapshots):
            return
        if self.snapshots[place].run == self.selected:
            self.post_message(self.Opened())
        else:
            self._select_at(place)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """The wheel moves the selection."""
        self.move(1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """The wheel moves the selection."""
        self.move(-1)


def empty_state(width: int, height: int) -> list[Row]:
    """What to do when there is nothing yet."""
    lines = [
        row(("no runs yet", "title")),
        EMPTY,
        row(("press ", "dim"), ("n", "key"), (" to launch a training from a profile", "dim")),
        row(("or start one from a shell:", "dim")),
        row(("mpstui run -- python train.py", "")),
    ]
    top = max(0, (height - len(lines)) // 2)
    return [EMPTY] * top + [row(" " * max(0, (width - line.width) // 2), *line.spans) for line in lines]
