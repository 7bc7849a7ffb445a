"""Metrics and moments on a run's screen: table and grid choose the charted metric, a cursor the moment of all."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from textual import on

from ...core.present import newest_logged
from ..panels.chart import CursorMoved
from ..panels.log import LogMoved
from ..panels.metrics import MetricChosen
from .acting import ActingScreen
from .run_body import PANELS

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..bindings import Key
    from .moments import Moments
    from .run_body import RunBody


class PickingScreen(ActingScreen):
    """The part of a run's screen that is about metrics and moments."""

    body: RunBody
    snapshot: RunSnapshot | None
    panel: str
    zoomed: bool
    _moments: Moments
    _in_log: bool

    def action_panel(self, number: int) -> None:
        """Make a panel the current one."""
        raise NotImplementedError

    def action_info(self) -> None:
        """Open the run's info page, once the run is read."""
        if self.snapshot is None:
            self._pressed_early = self.place, self.action_info
        else:
            super().action_info()

    def action_copy(self) -> None:
        """Open the menu of what to copy, once the run is read."""
        if self.snapshot is None:
            self._pressed_early = self.place, self.action_copy
        else:
            super().action_copy()

    # -- metrics

    def action_grid(self) -> None:
        """Open all metrics as small charts, of which one can be enlarged. In the log, go to its beginning instead."""
        from .grid import GridScreen

        if self._in_log:
            self.body.log_pane.to_edge(-1)
            return
        if self.snapshot is None:
            self._pressed_early = self.place, self.action_grid
            return

        def enlarge(metric: str) -> None:
            self._draw_metric(MetricChosen(metric, enlarge=True))
            self.body.metrics.select(metric)

        self.app.push_screen(GridScreen(self.context, self.snapshot, self.body.chart.metric, enlarge))

    def action_images(self) -> None:
        """Open the images at the moment that the panels show; afterwards the panels go to the step last looked at."""
        why_not, snapshot = self.why_no_images, self.snapshot
        if why_not or snapshot is None:
            self.context.say(f"images: {why_not}", "warning")
            return
        from .images import ImagesScreen

        def left(step: float | None) -> None:
            self._moments.leave()
            if step is not None and self.snapshot is not None:
                self.body.chart.look_at(step)
                self._moments.chart_moved(step, self.snapshot)

        moment = self._moments.moment
        self.app.push_screen(ImagesScreen(self.context, snapshot, moment.step if moment else None, left))

    @property
    def why_no_images(self) -> str:
        """Why there are no images to look at, or an empty string."""
        if self.snapshot is None:
            return self.no_run
        return "" if any(newest_logged(self.snapshot)) else "nothing was logged (use report.image, report.text)"

    def why_not(self, key: Key) -> str:
        return self.why_no_images if key.action == "images" else super().why_not(key)

    @on(MetricChosen)
    def _draw_metric(self, message: MetricChosen) -> None:
        """Chart the metric chosen in the table."""
        self.body.chart.choose(message.name)
        if message.enlarge:
            self.zoomed = self.zoomed or self.has_class("-wide")
            self.action_panel(PANELS.index("chart") + 1)

    def action_enter(self) -> None:
        """On a row of the metrics, see :meth:`MetricTable.enter`; on the chart, show the log at the cursor's step."""
        if self.panel == "metrics":
            self.body.metrics.enter()
        elif self.panel == "chart" and self._moments.moment is not None:
            self.zoomed = False
            self.action_panel(PANELS.index("log") + 1)

    # -- the moment that all panels show

    @on(CursorMoved)
    def _follow_chart(self, message: CursorMoved) -> None:
        if self.snapshot is not None:
            self._moments.chart_moved(message.step, self.snapshot)

    @on(LogMoved)
    def _follow_log(self) -> None:
        if self.snapshot is not None:
            self._moments.log_moved(self.snapshot)

    def _filter_metrics(self, pattern: str) -> None:
        why_not = self.body.metrics.filter(pattern)
        if why_not:
            self.context.say(why_not, "warning")

    def action_branch(self) -> None:
        """Open the form for a new run from the checkpoint before the cursor, or from the newest one."""
        if self.snapshot is None:
            self._pressed_early = self.place, self.action_branch
            return
        from .opening import open_form

        snapshot, moment = self.snapshot, self._moments.moment
        step = moment.step if moment else inf
        open_form(self, self.context, lambda launcher: launcher.branch_of(snapshot, step))
