"""One moment for all panels of a run's screen: now, or where the chart's cursor or the log is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core import present as shown
from ..panels import Moment

if TYPE_CHECKING:
    from ...core.logview.line import LogLine
    from ...core.model.snapshot import RunSnapshot
    from ..widgets.log_reading import Place
    from .run_body import RunBody


class Moments:
    """The panel moved last leads and the others follow; if the time of a line or step is unknown, that is shown."""

    def __init__(self, body: RunBody, redraw: Callable[[], None]) -> None:
        self.moment: Moment | None = None
        """None: now."""
        self._body, self._redraw = body, redraw
        self._before: tuple[Place | None, int | None] | None = None
        """Where the log was before the chart moved it."""

    def chart_moved(self, step: float | None, snapshot: RunSnapshot) -> None:
        """Follow the chart's cursor to a step; None if it was removed."""
        if step is None:
            self.leave()
            return
        pane = self._body.log_pane
        self.moment = Moment(step, _time_at(snapshot, step), "chart")
        if pane.reading is not None:
            self._before = self._before or pane.reading.place
            line = pane.reading.steps.line_at(step)
            pane.note = f"at step {shown.whole(step)}" if line else f"no line names step {shown.whole(step)}"
            if line is not None:
                pane.reading.show_line(line, pane.page)
            else:
                pane.reading.return_to(self._before)
            pane.repaint()
        self._redraw()

    def log_moved(self, snapshot: RunSnapshot) -> None:
        """Follow the log: move the chart to the step of the marked line, or of the lowest line in view."""
        pane, self._before = self._body.log_pane, None
        reading = pane.reading
        if reading is None or reading.following:
            self.leave()
            return
        lines = reading.lines(pane.page)
        marked: LogLine | None = next((line for line in lines if line.offset == reading.found), None)
        line = marked or (lines[-1] if lines else None)
        step = reading.steps.of(line) if line is not None else None
        if step is None:
            self.leave(note="step of these lines unknown")
            return
        self.moment = Moment(step, _time_at(snapshot, step), "log")
        pane.note = f"chart at step {shown.whole(step)}"
        self._body.chart.look_at(step)
        pane.repaint()
        self._redraw()

    def leave(self, note: str = "") -> bool:
        """Return all panels to the present; True if they were elsewhere."""
        pane, was = self._body.log_pane, self.moment
        pane.note = note
        if was is not None:
            if was.leader == "chart" and self._before is not None and pane.reading is not None:
                pane.reading.return_to(self._before)
            self.moment = self._before = None
            self._body.chart.look_at(None)
            self._redraw()
        pane.repaint()
        return was is not None


def _time_at(snapshot: RunSnapshot, step: float) -> float | None:
    from ...core.logview.times import time_at  # imported with the first cursor

    return time_at(snapshot.series.values(), step)[0]
