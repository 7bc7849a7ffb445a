"""A look at the selected run below the list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rows import Row, Span, clean, cut
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from .failure_card import Failure


def peek_height(width: int, height: int) -> int:
    """Lines for the selected run below the list, 0 where the list needs them itself."""
    return 0 if height < 24 or width < 50 else max(11, int(height * 0.5))


class Peek(LinePanel):
    """The look as a panel."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot: RunSnapshot | None = None
        self.failure: Failure | None = None

    def show(self, snapshot: RunSnapshot | None) -> None:
        """Another run, or a new picture of it."""
        if snapshot is None or self.snapshot is None or snapshot.run != self.snapshot.run:
            self.failure = None
        self.snapshot = snapshot
        self.titled = snapshot is not None
        self.TITLE = cut(clean(snapshot.name, 60), 40) if snapshot else ""
        self.repaint()

    def explain(self, failure: Failure) -> None:
        """Why the selected run ended, and whether it could go on on the CPU."""
        self.failure = failure
        self.repaint()

    def status(self) -> tuple[Span, ...]:
        """The device in full."""
        if self.snapshot is None:
            return ()
        from .run_header import device_text

        return (Span(device_text(self.snapshot), "dim"),)

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`mpstui.ui.widgets.peek_rows.peek`."""
        if self.snapshot is None:
            return []
        from .peek_rows import peek  # with the first picture: the first paint does not wait for charts

        return peek(self.snapshot, width, height, self.failure)
