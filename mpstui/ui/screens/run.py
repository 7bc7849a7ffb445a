"""One run: header, progress, chart, log, metrics, memory, checkpoints, events; a card when it failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize

from ...core.runs.snapshot import RunSnapshot
from ...core.telemetry.model import SystemSample, TreeSample
from ...wire.records import Ack
from ..bindings import Scope, footer_keys
from ..pumps import Focus
from ..widgets.failure_card import Failure, FailureCard, wants_card
from ..widgets.footer import KeyLine
from ..widgets.lines import LinePanel
from ..widgets.log_pane import LogPane
from ..widgets.loss_chart import LossChart
from ..widgets.memory import MemoryFacts, MemoryPanel
from ..widgets.progress import Progress
from ..widgets.run_header import RunHeader
from ..widgets.tables import TablePanel, checkpoint_rows, event_rows, metric_rows
from .acting import ActingScreen
from .keys import bindings
from .log_keys import LogKeys
from .sizes import Shape, run_layout

_SCOPES = (Scope.RUN, Scope.ACTIONS, Scope.CHART, Scope.LOG)
PANELS = ("chart", "log", "metrics", "memory", "checkpoints", "events")
_LEFT = frozenset({"chart", "log"})


class RunScreen(ActingScreen):
    """A run, by its id; each new picture of it is handed to the panels that are in view."""

    CSS_PATH = "../styles/run.tcss"
    BINDINGS = bindings(*_SCOPES)
    AUTO_FOCUS = None

    def __init__(self, run: str, *, blocks: bool = False) -> None:
        super().__init__()
        self.run_id = run
        self.snapshot: RunSnapshot | None = None
        self.panel = "log"
        self.zoomed = False
        self._blocks = blocks
        self._facts: tuple[SystemSample | None, TreeSample | None] = (None, None)

    def compose(self) -> ComposeResult:
        """Everything; what has no room is not displayed."""
        yield RunHeader()
        yield Progress()
        yield FailureCard()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield LossChart(id="chart", blocks=self._blocks)
                yield LogPane(id="log")
            with Vertical(id="right"):
                yield TablePanel(metric_rows, id="metrics", heading_rows=1)
                yield MemoryPanel(id="memory")
                yield TablePanel(checkpoint_rows, id="checkpoints")
                yield TablePanel(event_rows, id="events")
        yield KeyLine(footer_keys(Scope.RUN, Scope.ACTIONS, Scope.LOG, Scope.EVERYWHERE), self.usable)

    def on_mount(self) -> None:
        """Number the panels."""
        for number, name in enumerate(PANELS, start=1):
            panel = self._panel(name)
            panel.titled, panel.number, panel.TITLE = True, number, name

    def _panel(self, name: str) -> LinePanel:
        return self.query_one(f"#{name}", LinePanel)

    @property
    def log_pane(self) -> LogPane:
        """The log."""
        return self.query_one(LogPane)

    @property
    def acting_on(self) -> RunSnapshot | None:
        """This run."""
        return self.snapshot

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
                self.mpstui.say(f"run {self.run_id} is no longer there", "warning")
                self.action_back()
            return
        before, self.snapshot = self.snapshot, found
        if before is None or before.output != found.output:
            self._open_log(found)
        if before is None or (before.pid, before.state) != (found.pid, found.state):
            self.mpstui.look()
        if before is None or wants_card(before) != wants_card(found) or before.attempt != found.attempt:
            self._arrange()
        self._draw(found)

    def _open_log(self, snapshot: RunSnapshot) -> None:
        document = self.mpstui.services.open_log(snapshot.output) if snapshot.output else None
        if document is not None:
            document.refresh()
        self.log_pane.open(document)
        self.mpstui.look()

    def _draw(self, snapshot: RunSnapshot) -> None:
        self.query_one(RunHeader).show(snapshot)
        self.query_one(Progress).show(snapshot)
        if wants_card(snapshot):
            self.query_one(FailureCard).show(Failure(snapshot, self.mpstui.board.findings(snapshot)))
        self.query_one(LossChart).show(snapshot)
        for table in self.query(TablePanel):
            table.show(snapshot)
        self._draw_memory()
        keys = self.query_one(KeyLine)
        keys.labels = self.key_labels()
        keys.repaint()

    def _draw_memory(self) -> None:
        if self.snapshot is not None:
            system, tree = self._facts
            cleared: Ack | None = self.mpstui.board.cleared.get(self.run_id)
            facts = MemoryFacts(snapshot=self.snapshot, system=system, tree=tree, cleared=cleared)
            self.query_one(MemoryPanel).show(facts)

    @property
    def watched_processes(self) -> RunSnapshot | None:
        """This run."""
        return self.snapshot

    def show_system(self, run: str | None, system: SystemSample | None, tree: TreeSample | None) -> None:
        """Draw the machine."""
        if run == self.run_id:
            self._facts = (system, tree)
            self._draw_memory()

    def show_log(self, run: str) -> None:
        """Draw the new end of the log."""
        if run == self.run_id:
            self.log_pane.grew()

    # -- arrangement

    def on_resize(self, event: Resize) -> None:
        """Another window, another arrangement."""
        self._arrange()

    def _arrange(self) -> None:
        width, height = self.size
        plan = run_layout(width, height)
        failed = self.snapshot is not None and wants_card(self.snapshot)
        self.set_class(plan.shape is Shape.WIDE and not self.zoomed, "-wide")
        self.query_one(RunHeader).styles.height = plan.header
        self._lines(self.query_one(Progress), 0 if failed and plan.shape is not Shape.WIDE else plan.progress)
        self._lines(self.query_one(FailureCard), plan.card if failed else 0)
        visible = self._visible(plan.shape)
        self.query_one("#left").display = bool(visible & _LEFT)
        self.query_one("#right").display = bool(visible - _LEFT)
        tabs = self._tabs(visible)
        for name in PANELS:
            panel = self._panel(name)
            panel.display = name in visible
            panel.current = name == self.panel
            panel.tabs = tabs if name == self.panel else ()
            panel.repaint()

    def _tabs(self, visible: set[str]) -> tuple[tuple[int, str], ...]:
        """The panels that take turns in the place of the current one."""
        if len(visible) == len(PANELS):
            return ()
        numbered = enumerate(PANELS, start=1)
        return tuple((number, name) for number, name in numbered if name == self.panel or name not in visible)

    def _lines(self, panel: LinePanel, lines: int) -> None:
        panel.display = lines > 0
        panel.styles.height = lines

    def _visible(self, shape: Shape) -> set[str]:
        if shape is Shape.WIDE and not self.zoomed:
            return set(PANELS)
        if shape is Shape.STACKED and not self.zoomed:
            return {"chart", self.panel}
        return {self.panel}

    # -- keys

    def action_back(self) -> None:
        """To the list of runs."""
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

    def action_scroll(self, by: int) -> None:
        """Scroll the current panel."""
        self._scrolling().scroll_rows(by)

    def action_scroll_page(self, direction: int) -> None:
        """Scroll by a window, less one line to hold on to."""
        panel = self._scrolling()
        panel.scroll_rows(direction * max(1, panel.room[1] - 1))

    def action_scroll_edge(self, direction: int) -> None:
        """To the first line, or to the newest and follow."""
        self._scrolling().to_edge(direction)

    def _scrolling(self) -> LogPane | TablePanel:
        panel = self._panel(self.panel)
        return panel if isinstance(panel, (LogPane, TablePanel)) else self.log_pane

    def action_log(self, what: str) -> None:
        """One of the log's keys; it brings the log into view."""
        if "log" not in self._visible(run_layout(*self.size).shape):
            self.action_panel(PANELS.index("log") + 1)
        LogKeys(self.log_pane, self._ask_for_pattern, self.mpstui.say).press(what)

    def _ask_for_pattern(self, last: str, done: Callable[[str | None], None]) -> None:
        from .dialogs import Prompt

        self.app.push_screen(Prompt("search the log (a regular expression works)", last), done)

    def action_chart(self, what: str) -> None:
        """One of the chart's keys."""
        why_not = self.query_one(LossChart).press(what)
        if why_not:
            self.mpstui.say(why_not, "warning")
