"""The first line of the list: who we are, what needs a person, how many runs there are."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.present.states import attention
from ...core.runs.snapshot import RunSnapshot, State
from ..rows import Row, Span, spread
from .lines import LinePanel


def top_line(snapshots: Sequence[RunSnapshot], width: int, loading: bool = False) -> Row:
    """``mpstui   2 failed · 1 stalled      12 runs · 2 live``; trouble is named before anything else."""
    left = [Span(" mpstui", "brand"), Span("  ")]
    for place, (count, shown) in enumerate(attention(snapshots)):
        left += [Span(" · ", "faint")] if place else []
        left.append(Span(f"{shown.glyph} {count} {shown.word}", shown.tone))
    if loading:
        return spread(left, [Span("reading runs… ", "dim")], width)
    live = sum(item.state.active and item.state is not State.QUEUED for item in snapshots)
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
        return [top_line(self.snapshots or (), width, loading=self.snapshots is None)]
