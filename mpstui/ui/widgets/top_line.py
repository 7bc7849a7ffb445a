"""The first line of the list: who we are, what needs a person, how many runs there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..rows import Row, Span, spread
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.runs.snapshot import RunSnapshot


_BRAND = (Span(" mpstui", "brand"), Span("  "))


def top_line(snapshots: Sequence[RunSnapshot], width: int) -> Row:
    """``mpstui   2 failed · 1 stalled      12 runs · 2 live``; trouble is named before anything else."""
    from ...core.present.states import attention  # with the first picture: the first paint does not wait for it

    left = [*_BRAND]
    for place, (count, shown) in enumerate(attention(snapshots)):
        left += [Span(" · ", "faint")] if place else []
        left.append(Span(f"{shown.glyph} {count} {shown.word}", shown.tone))
    live = sum(item.state.active and item.state != "queued" for item in snapshots)
    counted = f"{len(snapshots)} run{'' if len(snapshots) == 1 else 's'}"
    return spread(left, [Span(f"{counted} · {live} live " if snapshots else "", "dim")], width)


class TopLine(LinePanel):
    """The line as a panel."""

    snapshots: Sequence[RunSnapshot] | None = None

    def show(self, snapshots: Sequence[RunSnapshot]) -> None:
        """New pictures."""
        self.snapshots = snapshots
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        """One line; before the first picture it says so."""
        if self.snapshots is None:
            return [spread(_BRAND, [Span("reading runs… ", "dim")], width)]
        return [top_line(self.snapshots, width)]
