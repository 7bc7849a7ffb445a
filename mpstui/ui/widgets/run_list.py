"""The list of runs, below a line about what needs attention. What is selected is a run or a group, not a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.message import Message

from ...core.model.snapshot import RunSnapshot
from ...core.present import attention
from ..rows import EMPTY, Row, Span, clean, cut, row, spread, width_of
from .lines import LinePanel
from .machine_strip import machine_strip

if TYPE_CHECKING:
    from ...core.runs.listing import Line, ListView
    from ...core.telemetry.model import SystemSample
    from .run_row import Layout, NameDisambiguator

_BRAND = (Span(" mpstui", "brand"), Span("  "))


class TopLine(LinePanel):
    """The line above the list: what needs attention, the machine, and the number of runs."""

    snapshots: Sequence[RunSnapshot] | None = None
    paused_groups: Sequence[str] = ()
    marked = ""
    order = ""
    past: Sequence[SystemSample] = ()
    """Samples of the machine from the last minute."""
    troubles: Sequence[str] = ()
    """Problems with the connections to other machines."""

    def show(
        self,
        snapshots: Sequence[RunSnapshot],
        paused_groups: Sequence[str] = (),
        marked: int = 0,
        hidden: int = 0,
        order: str = "",
    ) -> None:
        """``hidden``: how many of the marked runs a filter hides. ``order``: how the list is sorted, if at all."""
        self.snapshots, self.paused_groups = snapshots, paused_groups
        self.marked = f"◆ {marked} marked{f', {hidden} of them hidden' if hidden else ''} · " if marked else ""
        self.order = order
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        if self.snapshots is None:
            return [spread(_BRAND, [Span("reading runs… ", "dim")], width)]
        return [top_line(self.snapshots, width, self.paused_groups, self.marked, self.past, self.order, self.troubles)]


def top_line(
    snapshots: Sequence[RunSnapshot],
    width: int,
    paused_groups: Sequence[str] = (),
    marked: str = "",
    past: Sequence[SystemSample] = (),
    order: str = "",
    troubles: Sequence[str] = (),
) -> Row:
    """``mpstui   2 failed · 1 stalled      cpu ▂▅▇ 87 %   12 runs · 2 live``; problems come before anything else.

    A paused queue is shown even if it is empty: otherwise the next run queued would wait in it without explanation.
    """
    left = [*_BRAND]
    for place, (count, look) in enumerate(attention(snapshots)):
        left += [Span(" · ", "faint")] if place else []
        left.append(Span(f"{look.glyph} {count} {look.word}", look.tone))
    live = sum(item.is_live for item in snapshots)
    counted = f"{len(snapshots)} run{'' if len(snapshots) == 1 else 's'}"
    right = [Span(marked, "mark"), Span(order, "key"), Span(f"{counted} · {live} live " if snapshots else "", "dim")]
    if paused_groups:
        left += [Span(" · ", "faint")] if len(left) > len(_BRAND) else []
        more = f" and {len(paused_groups) - 1} more" if len(paused_groups) > 1 else ""
        named = f"‖ queue {clean(paused_groups[0], 30)}{more} paused"
        choices = (f"{named}: P resumes it", named, "‖ queue paused: P")
        columns = width - row(*left, *right).width - 1
        left.append(Span(next((words for words in choices if width_of(words) <= columns), "‖ queue paused"), "warn"))
        right = right if row(*left, *right).width < width else []
    if troubles:
        left += [Span(" · ", "faint")] if len(left) > len(_BRAND) else []
        more = f" · and {len(troubles) - 1} more" if len(troubles) > 1 else ""
        fits = row(*left, *right).width + width_of(troubles[0] + more) + 4 <= width
        right, past = right if fits else [], ()
        left.append(Span(cut(f"! {clean(troubles[0], 200)}{more}", max(1, width - row(*left).width - 1)), "warn"))
    strip = machine_strip(past, width - row(*left, *right).width - 3)
    return spread(left, [*strip, *right], width)


class RunTable(LinePanel):
    """Lines of runs and groups. ``snapshots`` are those that match, in list order, including those in folded groups."""

    class Opened(Message):
        """A run was clicked while already selected."""

    class Selected(Message):
        """Another run was selected."""

        def __init__(self, run: str | None) -> None:
            super().__init__()
            self.run = run

    class Rearranged(Message):
        """The order, the columns or the folding of a group was changed."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshots: Sequence[RunSnapshot] = ()
        self.lines: Sequence[Line] = ()
        self.unread = True
        """True until the first snapshots arrive: the list may not be called empty before."""
        self.selected: str | None = None
        """The id of a run or a group."""
        self.marked: tuple[str, ...] = ()
        """The marked runs, for actions and comparisons, in the order they were marked."""
        self.troubles: Sequence[str] = ()
        """Why the runs of other machines are not known."""
        self.program = "train.py"
        """A program that could be started, suggested while there are no runs yet."""
        self._view: ListView | None = None
        self._matching: Sequence[RunSnapshot] = ()
        self._columns: tuple[int, Layout] | None = None
        """The columns, with the window width they were chosen for."""
        self._now = 0.0
        self._top = self._room = 0
        self._hides = False
        """True if a filter hides some of the runs."""
        self._names: NameDisambiguator | None = None

    @property
    def view(self) -> ListView:
        """How the user wants the list."""
        from ...core.runs.listing import ListView

        return self._view or ListView()

    @property
    def is_sorted(self) -> bool:
        """True if the order is not newest first."""
        return bool(self.view.sort or self.view.reverse)

    @property
    def order(self) -> str:
        """``by loss``, ``oldest first``."""
        from ...core.runs.listing import column

        by = column(self.view.sort) if self.view.sort else None
        return f"by {clean(by.title, 20)}" if by is not None else "oldest first"

    @property
    def index(self) -> int | None:
        return next((place for place, line in enumerate(self.lines) if line.key == self.selected), None)

    @property
    def line(self) -> Line | None:
        """The selected line."""
        return None if self.index is None else self.lines[self.index]

    @property
    def page(self) -> int:
        return max(1, self.size.height - 1)

    def show(self, snapshots: Sequence[RunSnapshot], everything: Sequence[RunSnapshot], now: float) -> None:
        """Show these runs. The selected run stays selected, and on its line unless the top of the list was in view.

        Args:
            everything: all runs, including those that a filter hides, whose marks are kept.
            now: Unix seconds.
        """
        self.unread = False
        self._hides, self._now = len(snapshots) < len(everything), now
        self._matching = snapshots
        there = {item.run for item in everything}
        self.marked = tuple(run for run in self.marked if run in there)
        self._line_up()

    def _line_up(self) -> None:
        from ...core.runs.listing import arranged, groups_of, is_folded, ordered

        before = self.index
        view = self.view._replace(folds=dict.fromkeys(self._group_ids(), False)) if self._hides else self.view
        self.lines = arranged(self._matching, view, self._now)
        self.snapshots = ordered(self._matching, view, self._now)
        self._names = self._columns = None
        if self.selected is not None and self.index is None:
            group = groups_of(self._matching).get(self.selected)
            self.selected = group.id if group is not None and is_folded(group, view) else self.selected
        after = self.index
        if after is None and self.lines:  # without lines, the selection waits for its line to appear
            self._choose(self.lines[min(before or 0, len(self.lines) - 1)].key)
        elif after is not None and before is not None and self._top > 0:
            self._top += after - before
        self.repaint()

    def _group_ids(self) -> set[str]:
        from ...core.runs.listing import groups_of

        return {group.id for group in groups_of(self._matching).values()}

    def want(self, view: ListView, *, chosen: bool = True) -> None:
        """Apply another order, other columns or other folds.

        Args:
            chosen: the user made the choice and wants it remembered.
        """
        self._view = view
        self._line_up()
        if chosen:
            self.post_message(self.Rearranged())

    @property
    def folds(self) -> str:
        """What enter does to the selected group, in a word; empty if the line is not a group's heading, and while a
        filter hides runs, as all groups are then open.
        """
        line = self.line
        if line is None or line.run is not None or self._hides:
            return ""
        return "unfold" if line.folded else "fold"

    def fold(self, group: str) -> None:
        """Open or close a group."""
        line = next((line for line in self.lines if line.key == group), None)
        if line is not None and not self._hides:
            self.want(self.view._replace(folds={**self.view.folds, group: not line.folded}))

    def sort(self, column: str) -> None:
        """Sort by a column; if the list is sorted by it already, in the other direction."""
        if column != "trend":  # curves have no order
            same = column == self.view.sort
            self.want(self.view._replace(sort=column, reverse=same and not self.view.reverse))

    def sort_next(self) -> None:
        """Sort by the next column in view; after the last one, newest first again."""
        names = ["", *(name for name in self.shown_columns if name != "trend")]
        place = names.index(self.view.sort) + 1 if self.view.sort in names else 1
        self.want(self.view._replace(sort=names[place % len(names)], reverse=False))

    def select(self, run: str | None) -> None:
        """Select a run or a group; selecting a run opens its group."""
        from ...core.runs.listing import groups_of

        if run is not None and all(line.key != run for line in self.lines):
            group = groups_of(self._matching).get(run)
            if group is not None:
                self._view = self.view._replace(folds={**self.view.folds, group.id: False})
                self._line_up()
        self._choose(run)
        self.repaint()

    def _choose(self, run: str | None) -> None:
        if run != self.selected:
            self.selected = run
            self.post_message(self.Selected(run))

    def mark(self) -> None:
        """Mark or unmark the selected run, or all runs of the selected group, and select the next line."""
        line = self.line
        if line is not None:
            meant = [line.run] if line.run is not None else list(line.group.runs if line.group is not None else ())
            runs = [item.run for item in meant]
            rest = tuple(run for run in self.marked if run not in runs)
            self.marked = rest if set(runs) <= set(self.marked) else (*rest, *runs)
        self.move(1)

    def mark_all(self) -> None:
        """Mark every run shown; if all are marked, unmark them."""
        shown = [item.run for item in self.snapshots]
        rest = tuple(run for run in self.marked if run not in shown)
        self.mark_only(rest if {*shown} <= {*self.marked} else (*rest, *shown))

    def mark_only(self, runs: tuple[str, ...]) -> None:
        self.marked = runs
        self.repaint()

    def move(self, by: int) -> None:
        """Select the line ``by`` places further down, stopping at both ends."""
        self._select_at((self.index or 0) + by)

    def _select_at(self, place: int) -> None:
        place = max(0, min(len(self.lines) - 1, place))
        self.select(self.lines[place].key if self.lines else None)

    def _layout(self, width: int) -> Layout:
        from .run_row import layout

        if self._columns is None or self._columns[0] != width:
            self._columns = width, layout(width, self.view, self.snapshots, self._now)
        return self._columns[1]

    @property
    def shown_columns(self) -> list[str]:
        """The ids of the columns in view."""
        return [one.id for one, _ in self._layout(self.size.width)]

    def rows(self, width: int, height: int) -> list[Row]:
        if not self.lines:
            if self.troubles and not self._hides:
                return [row((f" {clean(one, 200)}", "dim")) for one in self.troubles]
            return [] if self.unread else NOTHING_MATCHES if self._hides else empty_state(width, height, self.program)
        from .run_row import NameDisambiguator, heading, line_row

        room, index = height - 1, self.index or 0
        self._top -= max(0, room - self._room)  # when the list grows, it reveals more of what is above
        self._room = room
        self._top = max(min(self._top, index, max(0, len(self.lines) - room)), index - room + 1, 0)
        names = self._names = self._names or NameDisambiguator(self.snapshots)
        columns, marked = self._layout(width), set(self.marked)
        ended = all(one.is_over for one in self.snapshots)
        rows = [heading(width, columns, self.view, ended=ended)]
        for line in self.lines[self._top : self._top + room]:
            meant = (
                {line.key} if line.run is not None else {one.run for one in line.group.runs} if line.group else set()
            )
            chosen = line.key == self.selected
            rows.append(line_row(line, width, columns, self._now, selected=chosen, marked=meant <= marked, names=names))
        return rows

    def on_click(self, event: Click) -> None:
        """Select on the first click, open on the second; a click on a title sorts."""
        from .run_row import column_at

        place = self._top + event.y - 1
        if event.y < 1:
            column = column_at(event.x, self.size.width, self._layout(self.size.width)) if self.lines else None
            if column is not None:
                self.sort(column)
        elif place < len(self.lines):
            if self.lines[place].key == self.selected:
                self.post_message(self.Opened())
            else:
                self._select_at(place)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.move(1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.move(-1)


def empty_state(width: int, height: int, program: str) -> list[Row]:
    """What to do while there are no runs yet."""
    ways = [
        ("n", "launch a profile; quickstart takes a minute"),
        ("mpstui demo", "launch quickstart and look at it"),
        (f"mpstui run -- python {clean(program, 40)}", "start a program of your own"),
        ("mpstui watch PATH", "look at a log or folder that something else writes"),
    ]
    cells = max(width_of(way) for way, _ in ways) + 3
    beside = width > cells + max(width_of(told) for _, told in ways)
    lines = [row(("no runs yet", "title")), EMPTY]
    for way, told in ways:
        lines += (
            [row((way.ljust(cells), "key"), (told, "dim"))] if beside else [row((way, "key")), row("  ", (told, "dim"))]
        )
    taken = max(line.width for line in lines)
    left, top = " " * max(0, (width - taken) // 2), max(0, (height - len(lines)) // 2)
    return [EMPTY] * top + [row(left, *line.spans) for line in lines]


NOTHING_MATCHES = [EMPTY, row((" no run matches", "title"), ("   esc shows all of them", "dim"))]
