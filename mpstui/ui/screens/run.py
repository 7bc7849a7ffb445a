"""One run: header, progress, a card when it failed, and its panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.events import Resize

from ...core.actions import BY_ID
from ...core.present.states import needs_explaining
from ..bindings import Scope, bindings, footer_keys, log_footer_keys
from ..messages import SystemReady
from ..news import Severity
from ..panels import RunFacts, RunPanel
from ..rows import clean
from ..widgets.failure_card import Failure, FailureCard, card, evidence_line
from ..widgets.lines import KeyLine, LinePanel
from ..widgets.run_header import Progress, RunHeader
from ..workers import Focus
from .acting import ActingScreen
from .log_keys import LogKeys
from .run_body import PANELS, RunBody, Shape, run_layout

if TYPE_CHECKING:
    from ...core.diagnosis.live import LiveWatch
    from ...core.model.snapshot import RunSnapshot
    from ..ports import LogPort

_SCOPES = (Scope.RUN, Scope.ACTIONS, Scope.CHART, Scope.LOG)
_FOOTER = footer_keys(Scope.RUN, Scope.ACTIONS, Scope.LOG, Scope.EVERYWHERE)


class RunScreen(ActingScreen):
    """A run, by its id; each new picture of it is handed to the panels."""

    CSS_PATH = "../styles/run.tcss"
    BINDINGS = bindings(*_SCOPES)
    AUTO_FOCUS = None
    no_run = "the run is still being read: press again in a moment"

    def __init__(self, run: str, *, blocks: bool = False, log: Path | None = None) -> None:
        """``log``: its output, where that is known before its first picture."""
        super().__init__()
        self.run_id = run
        self.snapshot: RunSnapshot | None = None
        self.panel = "log"
        self.zoomed = False
        self.body = RunBody(blocks=blocks)
        self._machine: SystemReady | None = None
        self._warning = ""
        self._shown_log = log

    @cached_property
    def _live(self) -> LiveWatch:
        """What goes wrong right now; imported with the first picture, which the first paint does not wait for."""
        from ...core.diagnosis.live import LiveWatch

        return LiveWatch()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield RunHeader()
        yield Progress()
        yield FailureCard()
        yield self.body
        yield KeyLine(_FOOTER, self.usable)

    @property
    def acting_on(self) -> RunSnapshot | None:
        """This run."""
        return self.snapshot

    @property
    def place(self) -> str:
        """This run."""
        return self.run_id

    @property
    def focus_of_reading(self) -> Focus:
        """This run and its output."""
        if self.snapshot is None:
            return Focus(self.run_id)
        return Focus(self.run_id, self.snapshot.output, self.snapshot.state.active)

    # -- pictures

    def show_runs(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Draw the picture of this run, if it is still there."""
        found = next((item for item in snapshots if item.run == self.run_id), None)
        if found is None:
            if self.snapshot is not None:
                self.mpstui.toasts.say(f"run {self.run_id} is no longer there", "warning", self.run_id)
                self.action_back()
            return
        before, self.snapshot = self.snapshot, found
        if before is not None and before.gone != found.gone:
            self._tell_gone(found)
        if before is None or before.output != found.output:
            self._open_log(found.output)
        if before is None or (before.pid, before.state) != (found.pid, found.state):
            self.mpstui.look()
        if before is None or needs_explaining(before) != needs_explaining(found) or before.attempt != found.attempt:
            self._arrange()
        self._draw(found)

    def _tell_gone(self, watched: RunSnapshot) -> None:
        told = "is gone (deleted, or moved away)" if watched.gone else "is there again, and read anew"
        severity: Severity = "warning" if watched.gone else "information"
        self.mpstui.toasts.say(f"{clean(watched.name, 40)} {told}", severity, self.run_id)

    def on_mount(self) -> None:
        """A log that is known already is there with the first paint."""
        if self._shown_log is not None:
            self.body.log_pane.open(self._document(self._shown_log))

    def _document(self, log: Path | None) -> LogPort | None:
        document = self.mpstui.services.open_log(log) if log is not None else None
        if document is not None:
            document.refresh()
        return document

    def _open_log(self, log: Path | None) -> None:
        if log is None or log != self._shown_log or self.body.log_pane.reading is None:
            self.body.log_pane.open(self._document(log))
        self._shown_log = log
        self.mpstui.look()

    def _draw(self, snapshot: RunSnapshot) -> None:
        telemetry = self._machine.telemetry if self._machine else None
        warnings = self._live.poll(snapshot, telemetry.headroom if telemetry else None)
        self._warning = warnings[0].sentence if warnings else ""
        self._draw_card(snapshot)
        self._show_facts()
        keys = self.query_one(KeyLine)
        keys.labels = self.key_labels()
        keys.repaint()

    def _draw_card(self, snapshot: RunSnapshot) -> None:
        """The card takes the lines that it fills, up to those the arrangement gives it."""
        panel = self.query_one(FailureCard)
        if not needs_explaining(snapshot):
            _give_lines(panel, 0)
            return
        on_cpu = self._allowed(snapshot, BY_ID["restart_cpu"]).ok
        board = self.mpstui.board
        failure = Failure(snapshot, board.findings(snapshot), on_cpu, board.last_exception(snapshot))
        width, height = self.size
        _give_lines(panel, len(card(failure, width, run_layout(width, height).card)))
        panel.show(failure)

    def _show_facts(self) -> None:
        """Hand every panel what is known now."""
        if self.snapshot is None:
            return
        sample = self._machine
        telemetry = sample.telemetry if sample else None
        facts = RunFacts(
            snapshot=self.snapshot,
            warning=self._warning,
            slow=(*self._live.slow_stretches, *(telemetry.throttled if telemetry else ())),
            system=sample.system if sample else None,
            tree=sample.tree if sample else None,
            telemetry=telemetry,
            cleared=self.mpstui.board.cleared.get(self.run_id),
            prices=sample.prices if sample else None,
        )
        for panel in self.query(RunPanel):
            panel.show(facts)

    @property
    def watched_processes(self) -> RunSnapshot | None:
        """This run."""
        return self.snapshot

    @property
    def shows_machine(self) -> bool:
        """Whether a panel is in view that shows it."""
        return self.body.shows_machine

    def show_system(self, news: SystemReady) -> None:
        """Draw the machine."""
        if news.run == self.run_id:
            self._machine = news
            self._show_facts()

    def show_log(self, run: str) -> None:
        """Draw the new end of the log."""
        if run == self.run_id:
            self.body.log_pane.grew()

    # -- arrangement

    def on_resize(self, event: Resize) -> None:
        """Another window, another arrangement."""
        self._arrange()

    def _arrange(self) -> None:
        plan = run_layout(*self.size)
        failed = self.snapshot is not None and needs_explaining(self.snapshot)
        wide = plan.shape is Shape.WIDE
        self.set_class(wide and not self.zoomed, "-wide")
        _give_lines(self.query_one(RunHeader), plan.header)
        _give_lines(self.query_one(Progress), 0 if failed and not wide else plan.progress)
        if self.snapshot is not None:
            self._draw_card(self.snapshot)
        shown = self.shows_machine
        self.body.take_places(plan.shape, self.panel, self.zoomed)
        self.query_one(KeyLine).offer(log_footer_keys() if self.zoomed and self.panel == "log" else _FOOTER)
        if shown != self.shows_machine:
            self.mpstui.look()

    # -- keys

    def action_back(self) -> None:
        """Out of a selection or a search of the log, else to the list of runs."""
        if "log" not in self.body.in_view or not self.body.log_pane.stop_search():
            self.mpstui.close_run()

    def action_panel(self, number: int) -> None:
        """Go to a panel."""
        self.panel = PANELS[number - 1]
        self._arrange()

    def action_next_panel(self, by: int) -> None:
        """Go round the panels."""
        self.action_panel((PANELS.index(self.panel) + by) % len(PANELS) + 1)

    def action_zoom_panel(self) -> None:
        """The current panel alone, and back."""
        self.zoomed = not self.zoomed
        self._arrange()

    def action_neighbour(self, by: int) -> None:
        """The run above or below this one in the list."""
        run = self.mpstui.board.neighbour(self.run_id, by)
        if run is None:
            self.mpstui.say("there is no newer run" if by < 0 else "there is no older run")
            return
        self.mpstui.close_run()
        self.mpstui.open_run(run)

    def action_scroll(self, direction: int, unit: Literal["line", "page", "edge"] = "line") -> None:
        """Move the current panel by a line, by its height less one line to hold on to, or to its end."""
        panel = self.body.scrolling
        if unit == "edge":
            panel.to_edge(direction)
        else:
            panel.scroll_rows(direction * (max(1, panel.rows_size[1] - 1) if unit == "page" else 1))

    def action_log(self, what: str) -> None:
        """One of the log's keys; it brings the log into view."""
        self._bring_log()
        LogKeys(self.body.log_pane, self._ask_for_pattern, self.mpstui.say, self.app.copy_to_clipboard).press(what)

    def _ask_for_pattern(self, last: str, done: Callable[[str | None], None]) -> None:
        from .dialogs import Prompt

        self.app.push_screen(Prompt("search the log (a regular expression works)", last), done)

    def _bring_log(self) -> None:
        if "log" not in self.body.in_view:
            self.action_panel(PANELS.index("log") + 1)

    def action_evidence(self) -> None:
        """The log at the line that the diagnosis rests on."""
        failed = self.snapshot is not None and needs_explaining(self.snapshot)
        findings = self.mpstui.board.findings(self.snapshot) if self.snapshot is not None and failed else ()
        number = evidence_line(findings[0]) if findings else None
        if number is None:
            self.mpstui.say("no line of the log is known to show a cause", "warning")
            return
        self._bring_log()
        if not self.body.log_pane.to_line(number):
            self.mpstui.say(f"line {number} of the log cannot be shown", "warning")

    def action_chart(self, what: str) -> None:
        """One of the chart's keys."""
        why_not = self.body.chart.press(what)
        if why_not:
            self.mpstui.say(why_not, "warning")


def _give_lines(panel: LinePanel, lines: int) -> None:
    panel.display = lines > 0
    panel.styles.height = lines
