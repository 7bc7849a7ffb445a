"""The screen of one run: header, progress, a failure card if it failed, and its panels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from textual import on
from textual.app import ComposeResult
from textual.events import Resize

from ...core.present import needs_explaining, newest_logged
from ..bindings import Scope, bindings, footer_keys, log_footer_keys
from ..messages import GhostReady, RequestAnswered, SystemReady
from ..panels import RunFacts, RunPanel
from ..rows import clean
from ..widgets.failure_card import FailureCard, card_lines, offers
from ..widgets.lines import KeyLine
from ..widgets.search_line import SearchLine
from ..workers.runs import Focus
from ..workers.window import WindowWorker
from .labelling import Label, edit_label
from .moments import Moments
from .picking import PickingScreen
from .run_body import PANELS, Progress, RunBody, RunHeader, Shape, run_layout
from .run_log import RunLog

if TYPE_CHECKING:
    from ...core.diagnosis.live import LiveWatch
    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.ghost import Ghost
    from ..bindings import Key
    from ..context import Context
    from ..widgets.lines import PixelPanel
    from .palette import Entry

_SCOPES = (Scope.RUN, Scope.ACTIONS, Scope.CHART, Scope.LOG)
_FOOTER = footer_keys(*_SCOPES, Scope.EVERYWHERE)
_LEAST_FOR_TWO = 12
"""Below a card, two panels are stacked if at least this many lines are left."""


class RunScreen(PickingScreen):
    """The run with a given id; each new snapshot of it is passed to the panels."""

    CSS_PATH = "../styles/run.tcss"
    SCOPES = _SCOPES
    BINDINGS = bindings(*_SCOPES)
    AUTO_FOCUS = ""  # the search field gets the focus when it is opened
    no_run = "the run is still being read: press again in a moment"

    def __init__(self, context: Context, run: str, log: Path | None = None) -> None:
        """``log``: its output, if known before the first snapshot, so that the first paint can show it."""
        super().__init__(context, run)
        self.snapshot: RunSnapshot | None = None
        self.panel = "log"
        self.zoomed = False
        self._card_lines = 0
        self._in_log = False
        """True if the arrow keys belong to the log: after any log key, until another panel is chosen."""
        self.body = RunBody(blocks=context.blocks)
        self._machine: SystemReady | None = None
        self._ghost: Ghost | None = None
        self._live: LiveWatch | None = None
        """Finds what is going wrong; imported with the first snapshot so as not to delay the first paint."""
        self._warning = ""
        self._log = RunLog(self, self.body, context)
        self._windows = WindowWorker(context.services, self.body.chart.post_message)
        table = self.body.metrics
        self._moments = Moments(self.body, self._show_facts)
        self._filter = SearchLine(table.filter, self._filter_metrics, partial(table.filter, ""), table.scroll_rows)
        if log is not None:
            self._log.open(log)

    def compose(self) -> ComposeResult:
        yield RunHeader()
        yield Progress()
        yield FailureCard()
        yield self.body
        yield self._log.search_line
        yield self._filter
        yield KeyLine(_FOOTER, self.usable)

    @property
    def acting_on(self) -> RunSnapshot | None:
        return self.snapshot

    @property
    def reading(self) -> Focus:
        if self.snapshot is None:
            return Focus(self.place)
        log, live = self.snapshot.output, self.snapshot.state.active
        return Focus(self.place, log, live, sampled=self.snapshot, machine_in_view=self.body.shows_machine)

    def usable(self, key: Key) -> bool:
        logged = self.snapshot is not None and any(newest_logged(self.snapshot))
        return super().usable(key) and (logged or key.action != "images")

    # -- drawing

    def show_runs(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Draw the snapshot of this run, if it still exists."""
        found = next((item for item in snapshots if item.run == self.place), None)
        if found is None:
            if self.snapshot is not None:
                begun = sum(bool(item.store) and item.run.startswith(f"{self.place}/") for item in snapshots)
                if begun:  # an empty folder was watched, and the runs in it now stand for it
                    self.context.say(f"{begun} run{'s' * (begun > 1)} began in {clean(self.place, 40)}", "information")
                else:
                    self.context.say(f"run {self.place} is no longer there", "warning", self.place)
                self.action_back()
            return
        before, self.snapshot = self.snapshot, found
        if before is not None and before.gone != found.gone:
            gone = "is gone (deleted, or moved away)" if found.gone else "is back and read from its start"
            self.context.say(f"{clean(found.name, 40)} {gone}", "warning" if found.gone else "information", self.place)
        if before is None or (before.output, before.attempts) != (found.output, found.attempts):
            self._log.open(found.output, found.attempts, found.attempts)
        if (reading := self.body.log_pane.reading) is not None:
            reading.total_steps = found.numbers.steps
        if before is None or (before.pid, before.state, before.output) != (found.pid, found.state, found.output):
            self.context.focus()
        grown = self.query_one(Progress).grew(found)
        told_anew = before is None or needs_explaining(before) != needs_explaining(found)
        if before is None or told_anew or grown or before.attempt != found.attempt:
            self._arrange()
        if self._live is None:
            from ...core.diagnosis.live import LiveWatch

            self._live = LiveWatch()
        telemetry = self._machine.telemetry if self._machine else None
        warnings = self._live.poll(found, telemetry.headroom if telemetry else None)
        self._warning = warnings[0].sentence if warnings else ""
        self._draw_card(found)
        self._show_facts()
        self.query_one(KeyLine).name_keys(self.key_labels())

    def _draw_card(self, snapshot: RunSnapshot) -> None:
        """Give the card as many lines as it fills, up to the maximum of the layout."""
        panel = self.query_one(FailureCard)
        if not needs_explaining(snapshot):
            panel.take_lines(0)
            self._card_lines = 0
            return
        failure = self.context.state.failure(snapshot)
        width, height = self.size
        plan = run_layout(width, height)
        lines = card_lines(failure, width, plan.card, plan.most_card)
        panel.take_lines(lines)
        panel.show(failure)
        if lines != self._card_lines:
            self._card_lines = lines
            self._take_places()
        self.query_one(KeyLine).elsewhere = frozenset(key for key, *_ in offers(failure, log_in_reach=True))

    def _show_facts(self) -> None:
        if self.snapshot is None or self._live is None:
            return
        sample = self._machine or SystemReady(None, None, None)
        facts = RunFacts(
            snapshot=self.snapshot,
            warning=self._warning,
            slow=(*self._live.slow_stretches, *(sample.telemetry.throttled if sample.telemetry else ())),
            system=sample.system,
            past=sample.past,
            tree=sample.tree,
            telemetry=sample.telemetry,
            cleared=self.context.state.cleared.get(self.place),
            prices=sample.prices,
            ghost=self._ghost if self.snapshot.state.active else None,
            moment=self._moments.moment,
        )
        self.body.chart.graphics = self.context.state.graphics
        for panel in self.query(RunPanel):
            panel.show(facts)
        self.body.share_lines()
        self._look_closely()

    def _look_closely(self) -> None:
        """Have the files read again for the range that the chart is zoomed into, if that can show more detail."""
        wanted = self.body.chart.wanted()
        if self.snapshot is not None and wanted is not None:
            self._windows.read(self.snapshot, wanted)

    def on_unmount(self) -> None:
        self._windows.stop()
        self._log.close()

    def show_system(self, message: SystemReady) -> None:
        if message.run == self.place:
            self._machine = message
            self._show_facts()

    def show_ghost(self, message: GhostReady) -> None:
        if message.run == self.place:
            self._ghost = message.ghost
            self._show_facts()

    def show_log(self, run: str) -> None:
        if run == self.place:
            self.body.log_pane.grew()

    def make_room(self, lines: int) -> None:
        super().make_room(lines)
        if self.can_draw:
            self.body.log_pane.make_room(lines)

    @property
    def pixel_panels(self) -> Sequence[PixelPanel]:
        return (self.body.chart,)

    def show_answer(self, message: RequestAnswered) -> None:
        """Scroll to the end of the log if stacks were printed there."""
        if message.run == self.place and message.request.action == "dump_stacks" and message.ack and message.ack.ok:
            self._bring_log()
            self.body.log_pane.to_edge(1)

    # -- arrangement

    @on(Resize)
    def _arrange(self) -> None:
        """Lay out all parts for the window size."""
        plan = run_layout(*self.size)
        failed = self.snapshot is not None and needs_explaining(self.snapshot)
        wide = plan.shape is Shape.WIDE
        self.set_class(wide and not self.zoomed, "-wide")
        self.query_one(RunHeader).take_lines(plan.header)
        bars = self.query_one(Progress)
        if self.snapshot is not None:
            bars.grew(self.snapshot)
        bars.take_lines(0 if failed and not wide else min(plan.progress, bars.needed))
        if self.snapshot is not None:
            self._draw_card(self.snapshot)
        self._take_places()
        self.query_one(KeyLine).offer(log_footer_keys() if self.zoomed and self.panel == "log" else _FOOTER)

    def _take_places(self) -> None:
        """Show the panels that fit: only one if a card leaves few lines."""
        plan = run_layout(*self.size)
        left = self.size.height - plan.header - self._card_lines
        alone = self._card_lines > 0 and plan.shape is Shape.STACKED and left < _LEAST_FOR_TWO
        shown = self.body.shows_machine
        self.body.take_places(Shape.TINY if alone else plan.shape, self.panel, self.zoomed)
        if shown != self.body.shows_machine:
            self.context.focus()

    # -- keys

    def places(self) -> Iterable[Entry]:
        from .palette import places_of_run

        return places_of_run(self.snapshot, self.action_panel, self.body.chart.choose)

    def action_back(self) -> None:
        """Leave the moment shown, a metric filter, a log search or a maximized panel; otherwise the run."""
        moment = self._moments.moment
        if moment is not None and moment.leader == "chart":
            self._moments.leave()
            return
        if "metrics" in self.body.in_view and self.body.metrics.pattern:
            self.body.metrics.filter("")
            return
        if "log" in self.body.in_view and self.body.log_pane.stop_search():
            return
        if self.zoomed:
            self.action_zoom_panel()
        else:
            self.context.close_run()

    def action_panel(self, number: int) -> None:
        self.panel = PANELS[number - 1]
        self._in_log = self.panel == "log"
        self._arrange()

    def action_next_panel(self, by: int) -> None:
        self.action_panel((PANELS.index(self.panel) + by) % len(PANELS) + 1)

    def action_zoom_panel(self) -> None:
        """Show the current panel alone, or all again."""
        self.zoomed = not self.zoomed
        self._arrange()

    def action_neighbour(self, by: int) -> None:
        """Go to the run above or below this one in the list."""
        run = self.context.state.neighbour(self.place, by)
        if run is None:
            self.context.say("There is no newer run." if by < 0 else "There is no older run.")
            return
        self.context.close_run()
        self.context.open_run(run)

    def action_scroll(self, direction: int, unit: Literal["line", "page", "edge"] = "line") -> None:
        """Scroll the current panel by a line, by its height less one line of overlap, or to its end."""
        panel = self.body.scrolling
        if unit == "edge":
            panel.to_edge(direction)
        else:
            panel.scroll_rows(direction * (max(1, panel.rows_size[1] - 1) if unit == "page" else 1))

    def action_log(self, what: str) -> None:
        """Do what a log key asks, with the log in view. If the metrics panel is current, `/` belongs to it."""
        if what == "search" and self.panel == "metrics":
            self._filter.open(self.body.metrics.pattern)
            return
        if what == "previous" and not (self.body.log_pane.reading and self.body.log_pane.reading.pattern):
            self.action_label("note")
            return
        self._bring_log()
        self._in_log = True
        if what == "times" and self.snapshot is not None:
            self._log.turn_times()
        else:
            self._log.press(what)

    def action_label(self, what: Label) -> None:
        if self.snapshot is not None:
            edit_label(self, self.targets, what)

    @property
    def metric_in_view(self) -> str:
        return self.body.chart.metric

    def action_copy(self) -> None:
        """Copy the selected lines of the log or those in view; for any other panel, open the menu."""
        if self._in_log or (self.zoomed and self.panel == "log"):
            self._log.press("copy")
        else:
            super().action_copy()

    def action_attempt(self, by: int) -> None:
        """Show the output of the previous or next attempt."""
        self._bring_log()
        if self.snapshot is not None and not self._log.turn(self.snapshot, by):
            self.context.say(f"there is no {'earlier' if by < 0 else 'later'} attempt")

    def _bring_log(self) -> None:
        if "log" not in self.body.in_view:
            self.action_panel(PANELS.index("log") + 1)

    def action_edit_code(self) -> None:
        """Open the line of code that failed in an editor."""
        from .editing import edit_code

        if self.snapshot is not None:
            edit_code(self, self.snapshot, self.context.state.shown_by(self.snapshot))

    def action_evidence(self) -> None:
        """Show the log at the line that the diagnosis is based on."""
        failed = self.snapshot is not None and needs_explaining(self.snapshot)
        findings = self.context.state.findings(self.snapshot) if self.snapshot is not None and failed else ()
        if self.snapshot is not None and not failed and self._log.turn(self.snapshot, -1):
            earlier = replace(self.snapshot, attempt=self.snapshot.attempt - 1)
            findings = self.context.state.known_findings(earlier)
            if not findings:
                self.action_log("error")
                return
        exception = self.context.state.last_exception(self.snapshot) if self.snapshot is not None and failed else None
        shown = findings[0].shown_by if findings else exception
        number = shown.line if shown is not None else None
        if number is None:
            self.context.say("No line of the log shows why.", "warning")
            return
        self._bring_log()
        if not self.body.log_pane.to_line(number):
            self.context.say(f"line {number} of the log cannot be shown", "warning")

    def action_aside(self, direction: int) -> None:
        """Handle left and right: move the chart's cursor, or scroll the log sideways."""
        if (self._in_log or "chart" not in self.body.in_view) and "log" in self.body.in_view:
            self.body.log_pane.sideways(direction)
        else:
            self.action_chart("left" if direction < 0 else "right")

    def action_chart(self, what: str) -> None:
        if why_not := self.body.chart.press(what):
            self.context.say(why_not, "warning")
        if what in ("metric", "metric_before", "pin"):  # faster than waiting for the table's message
            self.body.metrics.select(self.body.chart.metric)
        self._look_closely()
