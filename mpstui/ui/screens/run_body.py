"""The panels of one run and where each of them stands."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from ...core.model.snapshot import RunSnapshot
from ..widgets.lines import LinePanel
from ..widgets.log_pane import LogPane
from ..widgets.loss_chart import LossChart
from ..widgets.memory import MemoryFacts, MemoryPanel
from ..widgets.tables import TablePanel, checkpoint_rows, event_rows, metric_rows
from .sizes import Shape

PANELS = ("chart", "log", "metrics", "memory", "checkpoints", "events")
_LEFT = frozenset({"chart", "log"})


def visible_panels(shape: Shape, current: str, zoomed: bool) -> frozenset[str]:
    """Which panels have room."""
    if zoomed or shape is Shape.TINY:
        return frozenset({current})
    return frozenset(PANELS) if shape is Shape.WIDE else frozenset({"chart", current})


class RunBody(Horizontal):
    """All panels; what has no room is not displayed."""

    def __init__(self, *, blocks: bool) -> None:
        super().__init__(id="body")
        self.in_view: frozenset[str] = frozenset()
        self._current = "log"
        self._blocks = blocks

    def compose(self) -> ComposeResult:
        """Chart and log at the left, everything else at the right."""
        with Vertical(id="left"):
            yield LossChart(id="chart", blocks=self._blocks)
            yield LogPane(id="log")
        with Vertical(id="right"):
            yield TablePanel(metric_rows, id="metrics", heading_rows=1)
            yield MemoryPanel(id="memory")
            yield TablePanel(checkpoint_rows, id="checkpoints")
            yield TablePanel(event_rows, id="events")

    def on_mount(self) -> None:
        """Number the panels."""
        for number, name in enumerate(PANELS, start=1):
            panel = self._panel(name)
            panel.titled, panel.number, panel.TITLE = True, number, name

    def _panel(self, name: str) -> LinePanel:
        return self.query_one(f"#{name}", LinePanel)

    @property
    def chart(self) -> LossChart:
        """The chart."""
        return self.query_one(LossChart)

    @property
    def log_pane(self) -> LogPane:
        """The log."""
        return self.query_one(LogPane)

    @property
    def scrolling(self) -> LogPane | TablePanel:
        """The panel that the scrolling keys move: the current one where it can scroll, else the log."""
        panel = self._panel(self._current)
        return panel if isinstance(panel, (LogPane, TablePanel)) else self.log_pane

    def show(self, snapshot: RunSnapshot) -> None:
        """Draw a new picture."""
        self.chart.show(snapshot)
        for table in self.query(TablePanel):
            table.show(snapshot)

    def show_memory(self, facts: MemoryFacts) -> None:
        """Draw the memory."""
        self.query_one(MemoryPanel).show(facts)

    def take_places(self, shape: Shape, current: str, zoomed: bool) -> None:
        """Give every panel its place, or none."""
        self._current = current
        self.in_view = visible_panels(shape, current, zoomed)
        self.query_one("#left").display = bool(self.in_view & _LEFT)
        self.query_one("#right").display = bool(self.in_view - _LEFT)
        for name in PANELS:
            panel = self._panel(name)
            panel.display = name in self.in_view
            panel.current = name == current
            panel.tabs = self._tabs() if name == current else ()
            panel.repaint()

    def _tabs(self) -> tuple[tuple[int, str], ...]:
        """The panels that take turns in the place of the current one."""
        if len(self.in_view) == len(PANELS):
            return ()
        numbered = enumerate(PANELS, start=1)
        return tuple((number, name) for number, name in numbered if name == self._current or name not in self.in_view)
