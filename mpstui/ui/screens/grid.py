"""All metrics of one run as a grid of small charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from ..bindings import Scope, bindings, footer_keys
from ..widgets.lines import KeyLine
from ..widgets.metric_grid import MetricGrid
from ..widgets.search_line import SearchLine
from .following import FollowingScreen

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..context import Context
    from ..widgets.lines import PixelPanel


class GridScreen(FollowingScreen):
    """The grid; enter shows the chart in focus on the run's screen."""

    CSS_PATH = "../styles/grid.tcss"
    SCOPES = (Scope.GRID,)
    BINDINGS = bindings(*SCOPES)

    def __init__(self, context: Context, snapshot: RunSnapshot, metric: str, chosen: Callable[[str], None]) -> None:
        """``chosen`` is called with the metric to enlarge."""
        super().__init__(context, snapshot)
        self._chosen = chosen
        self.grid = MetricGrid(blocks=context.blocks, focus=metric)
        self.grid.titled, self.grid.TITLE, self.grid.current = True, f"metrics of {snapshot.name}", True
        left = partial(self.grid.filter, "")
        self._filter = SearchLine(self.grid.filter, self._filter_by, left, lambda by: self.grid.move(0, by))

    def compose(self) -> ComposeResult:
        yield self.grid
        yield self._filter
        yield KeyLine(footer_keys(Scope.GRID, Scope.EVERYWHERE))

    def on_mount(self) -> None:
        self.grid.show(self.snapshot)

    def draw(self) -> None:
        self.take_graphics()
        self.grid.show(self.snapshot)

    @property
    def pixel_panels(self) -> Sequence[PixelPanel]:
        return (self.grid,)

    # -- keys

    def action_back(self) -> None:
        """Drop a filter, else the cursor, else return to the run."""
        if self.grid.pattern:
            self.grid.filter("")
        elif not self.grid.drop_cursor():
            self.app.pop_screen()

    def action_focus_chart(self, columns: int, lines: int) -> None:
        self.grid.move(columns, lines)

    def action_page(self, by: int) -> None:
        self.grid.page(by)

    def action_cursor(self, by: int) -> None:
        self.grid.move_cursor(by)

    def action_filter(self) -> None:
        self._filter.open(self.grid.pattern)

    def action_enlarge(self) -> None:
        if self.grid.focus_name:
            self.app.pop_screen()
            self._chosen(self.grid.focus_name)

    def _filter_by(self, pattern: str) -> None:
        why_not = self.grid.filter(pattern)
        if why_not:
            self.context.say(why_not, "warning")
