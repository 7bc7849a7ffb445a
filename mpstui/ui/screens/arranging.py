"""What the list's screen does with its lines: order, columns, filter and marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ..widgets.run_list import RunTable, TopLine
from ..widgets.search_line import FilterLine
from .acting import ActingScreen

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot


class ArrangingScreen(ActingScreen):
    """The part of the list's screen that changes how the list looks, but no run."""

    table: RunTable

    def show_selected(self) -> None:
        """Draw what depends on the selected run and on the marks."""
        raise NotImplementedError

    @property
    def hidden(self) -> int:
        """How many of the marked runs a filter hides."""
        return len({*self.table.marked} - {item.run for item in self.table.snapshots})

    @property
    def beside(self) -> Sequence[str]:
        return [f"{self.hidden} of the marked runs are hidden by the filter."] if self.hidden else []

    def show_marks(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Draw the top line, which counts them."""
        paused = self.context.state.paused_queues
        order = f"{self.table.order} (esc) · " if self.table.is_sorted else ""
        line = self.query_one(TopLine)
        line.troubles = self.context.state.troubles
        if self.table.troubles != line.troubles:
            self.table.troubles = line.troubles
            self.table.repaint()
        line.show(snapshots, paused, len(self.table.marked), self.hidden, order)

    # -- order and columns

    def action_sort(self, what: Literal["next", "reverse"]) -> None:
        """Sort by the next column, or in the other direction."""
        table = self.table
        if not self.context.state.snapshots:
            self.context.say(self.no_run, "warning")
        elif what == "next":
            table.sort_next()
        else:
            table.want(table.view._replace(reverse=not table.view.reverse))

    def action_columns(self) -> None:
        """Choose the columns of the list."""
        from .columns import ColumnChooser

        def chosen(names: tuple[str, ...] | None) -> None:
            if names is not None:
                self.table.want(self.table.view._replace(columns=names))

        self.app.push_screen(ColumnChooser(self.table.shown_columns, self.context.state.snapshots or ()), chosen)

    # -- filter

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    def action_unfilter(self) -> None:
        """Drop the filter; without one, the marks; with neither, sort newest first again."""
        table = self.table
        if self.query_one(FilterLine).drop():
            return
        if not table.marked and table.is_sorted:
            table.want(table.view._replace(sort="", reverse=False))
        table.mark_only(())
        self._marked()

    # -- marks

    def action_mark(self) -> None:
        if self.table.line is None:
            self.context.say(self.no_run, "warning")
            return
        self.table.mark()
        self._marked()

    def action_mark_all(self) -> None:
        if self.table.line is None:
            self.context.say(self.no_run, "warning")
            return
        self.table.mark_all()
        self._marked()

    def _marked(self) -> None:
        self.context.focus()
        self.show_marks(self.context.state.snapshots or ())
        self.show_selected()

    def action_compare(self) -> None:
        """Compare the marked runs, a single marked one with the selected one, or without marks the selected group."""
        from ...core.runs.comparison import MOST_COMPARED

        marked, selected, line = self.table.marked, self.acting_on, self.table.line
        runs = marked
        if len(marked) == 1 and selected is not None:
            runs = tuple(dict.fromkeys([*marked, selected.run]))
        elif not marked and line is not None and line.group is not None:
            runs = tuple(one.run for one in reversed(line.group.runs))
        if len(runs) < 2:
            self.context.say("compare: mark two or more runs with space, or select one of a sweep", "warning")
            return
        if len(runs) > MOST_COMPARED:
            what = f"{len(runs)} runs are marked" if marked else f"its group has {len(runs)} runs"
            self.context.say(f"compare: {what}; the first {MOST_COMPARED} are shown", "warning")
        from .comparing import ComparisonScreen

        self.app.push_screen(ComparisonScreen(self.context, runs[:MOST_COMPARED]))
