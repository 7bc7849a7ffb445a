"""Marked runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from ..bindings import Scope, bindings, footer_keys
from ..widgets.comparison import Comparison
from ..widgets.lines import KeyLine
from ..workers.runs import Focus
from .acting import ActingScreen

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..context import Context


class ComparisonScreen(ActingScreen):
    """Their curves over one axis and the settings they differ in; follows those that still run."""

    CSS_PATH = "../styles/comparing.tcss"
    BINDINGS = bindings(Scope.COMPARISON)
    AUTO_FOCUS = None

    def __init__(self, context: Context, runs: Sequence[str]) -> None:
        super().__init__(context)
        self._runs = tuple(runs)

    def compose(self) -> ComposeResult:
        yield Comparison(blocks=self.context.blocks)
        yield KeyLine(footer_keys(Scope.COMPARISON, Scope.EVERYWHERE))

    @property
    def acting_on(self) -> RunSnapshot | None:
        return None

    @property
    def reading(self) -> Focus:
        """No run is read in full: the curves of the list are enough."""
        return Focus()

    def show_runs(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Draw those that are still there, in the order in which they were marked."""
        known = {item.run: item for item in snapshots}
        found = [known[run] for run in self._runs if run in known]
        if not found:
            self.action_back()
            return
        self.query_one(Comparison).show(found)

    def action_back(self) -> None:
        self.app.pop_screen()

    def action_axis(self) -> None:
        self.query_one(Comparison).next_axis()

    def action_scale(self) -> None:
        self.query_one(Comparison).switch_scale()

    def action_scroll(self, by: int) -> None:
        self.query_one(Comparison).scroll_rows(by)
