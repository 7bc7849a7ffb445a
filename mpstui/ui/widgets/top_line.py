"""The first line of the list: who we are, what needs a person, how many runs there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..rows import Row, Span, clean, row, spread, width_of
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot


_BRAND = (Span(" mpstui", "brand"), Span("  "))


def top_line(snapshots: Sequence[RunSnapshot], width: int, paused_groups: Sequence[str] = ()) -> Row:
    """``mpstui   2 failed · 1 stalled      12 runs · 2 live``; trouble is named before anything else.

    A paused queue is named too: nobody may wait in it now, and what is queued next would wait without a word.
    """
    from ...core.present.states import attention  # with the first picture: the first paint does not wait for it

    left = [*_BRAND]
    for place, (count, shown) in enumerate(attention(snapshots)):
        left += [Span(" · ", "faint")] if place else []
        left.append(Span(f"{shown.glyph} {count} {shown.word}", shown.tone))
    live = sum(item.state.active and item.state != "queued" for item in snapshots)
    counted = f"{len(snapshots)} run{'' if len(snapshots) == 1 else 's'}"
    right = [Span(f"{counted} · {live} live " if snapshots else "", "dim")]
    if paused_groups:
        left += [Span(" · ", "faint")] if len(left) > len(_BRAND) else []
        words = _paused_words(paused_groups, width - row(*left, *right).width - 1)
        left.append(Span(words, "warn"))
        right = right if row(*left, *right).width < width else []
    return spread(left, right, width)


def _paused_words(groups: Sequence[str], room: int) -> str:
    """Which queue, and the key for it, as far as there is room."""
    more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
    named = f"‖ queue {clean(groups[0], 30)}{more} paused"
    choices = (f"{named}: P lets it go on", named, "‖ queue paused: P")
    return next((words for words in choices if width_of(words) <= room), "‖ queue paused")


class TopLine(LinePanel):
    """The line as a panel."""

    snapshots: Sequence[RunSnapshot] | None = None

    paused_groups: Sequence[str] = ()

    def show(self, snapshots: Sequence[RunSnapshot], paused_groups: Sequence[str] = ()) -> None:
        """New pictures."""
        self.snapshots, self.paused_groups = snapshots, paused_groups
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        """One line; before the first picture it says so."""
        if self.snapshots is None:
            return [spread(_BRAND, [Span("reading runs… ", "dim")], width)]
        return [top_line(self.snapshots, width, self.paused_groups)]
