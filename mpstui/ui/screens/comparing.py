"""Marked runs side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    from ..widgets.lines import PixelPanel
    from .palette import Entry


class ComparisonScreen(ActingScreen):
    """One metric of all runs on one axis, and a table of settings and results; live runs are followed."""

    CSS_PATH = "../styles/comparing.tcss"
    SCOPES = (Scope.COMPARISON,)
    BINDINGS = bindings(*SCOPES)
    AUTO_FOCUS = None

    def __init__(self, context: Context, runs: Sequence[str]) -> None:
        super().__init__(context)
        self._runs = tuple(runs)

    def compose(self) -> ComposeResult:
        yield Comparison(blocks=self.context.blocks, colours=not self.app.no_color)
        yield KeyLine(footer_keys(Scope.COMPARISON, Scope.EVERYWHERE))

    @property
    def acting_on(self) -> RunSnapshot | None:
        return None

    @property
    def reading(self) -> Focus:
        """All compared runs, to be read in full."""
        return Focus(compared=self._runs)

    def show_runs(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Draw the runs that still exist, in the order they were marked."""
        known = {item.run: item for item in snapshots}
        found = [known[run] for run in self._runs if run in known]
        if not found:
            self.action_back()
            return
        self.take_graphics()
        self.query_one(Comparison).show(found)

    @property
    def pixel_panels(self) -> Sequence[PixelPanel]:
        return tuple(self.query(Comparison))

    def action_back(self) -> None:
        self.app.pop_screen()

    def action_compared(self, what: str) -> None:
        why_not = self.query_one(Comparison).press(what)
        if why_not:
            self.context.say(why_not, "warning")

    def action_open(self) -> None:
        """Open the selected run alone; leaving that returns to the list."""
        run = self.query_one(Comparison).selected
        if run is not None:
            self.context.open_run(run.run)

    def action_scroll(self, by: int) -> None:
        self.query_one(Comparison).scroll_rows(by)

    def places(self) -> Iterable[Entry]:
        """Offer to write the report of all compared runs."""
        from .copying import report_entry

        return (report_entry(self, self.query_one(Comparison).snapshots),)

    def action_copy(self) -> None:
        """Offer the report of all of them, and what can be copied from the selected one."""
        from .copying import entries as copies

        compared = self.query_one(Comparison)

        def known() -> Iterable[Entry]:
            one = compared.selected
            alone = copies(self, one, compared.metric) if one is not None else ()
            return (*self.places(), *(found for found in alone if len(compared.snapshots) > 1 or not found.writes))

        self.choose_copy(known)
