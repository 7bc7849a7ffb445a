"""One moment for all panels of a run's screen: the newest, or the one that the chart's cursor or the log stands at."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING

from ...core import present as shown
from ..panels import Moment

if TYPE_CHECKING:
    from ...core.logview.document import LogDocument
    from ...core.logview.line import LogLine
    from ...core.logview.steps import LogSteps
    from ...core.model.snapshot import RunSnapshot
    from ..widgets.log_reading import Place
    from .run_body import RunBody


class Moments:
    """Whoever was moved last leads, the others follow; a line or step that nobody can place is said to be so."""

    def __init__(self, body: RunBody, redraw: Callable[[], None]) -> None:
        self.moment: Moment | None = None
        """None: now."""
        self._body, self._redraw = body, redraw
        self._steps: tuple[LogDocument, LogSteps] | None = None
        self._before: tuple[Place | None, int | None] | None = None
        """Where the log stood before the chart led it."""

    def chart_moved(self, step: float | None, snapshot: RunSnapshot) -> None:
        """The chart's cursor is at a step, or was taken away."""
        if step is None:
            self.leave()
            return
        pane = self._body.log_pane
        self.moment = Moment(step, time_at(snapshot, step), "chart")
        if pane.reading is not None:
            self._before = self._before or pane.reading.place
            line = self._log_steps(pane.reading.document).line_at(step)
            pane.note = f"at step {shown.whole(step)}" if line else f"no line tells step {shown.whole(step)}"
            if line is not None:
                pane.reading.show_line(line, pane.page)
            else:
                pane.reading.return_to(self._before)
            pane.repaint()
        self._redraw()

    def log_moved(self, snapshot: RunSnapshot) -> None:
        """The log was scrolled: the chart goes to the step of the line that is marked, else of the lowest in view."""
        pane, self._before = self._body.log_pane, None
        reading = pane.reading
        if reading is None or reading.following:
            self.leave()
            return
        lines = reading.lines(pane.page)
        marked: LogLine | None = next((line for line in lines if line.offset == reading.found), None)
        line = marked or (lines[-1] if lines else None)
        step = self._log_steps(reading.document).of(line) if line is not None else None
        if step is None:
            self.leave(note="step of these lines unknown")
            return
        self.moment = Moment(step, time_at(snapshot, step), "log")
        pane.note = f"chart at step {shown.whole(step)}"
        self._body.chart.look_at(step)
        pane.repaint()
        self._redraw()

    def leave(self, note: str = "") -> bool:
        """All panels back to now; whether they were elsewhere."""
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

    def _log_steps(self, document: LogDocument) -> LogSteps:
        from ...core.logview.steps import LogSteps  # with the first cursor

        if self._steps is None or self._steps[0] is not document:
            self._steps = document, LogSteps(document)
        return self._steps[1]


def time_at(snapshot: RunSnapshot, step: float) -> float | None:
    """When a step was measured, by a metric that has a point with a time exactly there, else between two a minute
    apart at most; None where nobody knows."""
    found: float | None = None
    for view in snapshot.series.values():
        if view.axis != "step" or not len(view.x) or not view.x[0] <= step <= view.x[-1]:
            continue
        place = bisect_left(view.x, step)
        after = view.times[place] if place < len(view.times) else float("nan")
        if view.x[place] == step and isfinite(after):
            return after
        before = view.times[place - 1] if 0 < place <= len(view.times) else float("nan")
        if isfinite(before) and isfinite(after) and 0 <= after - before <= 60 and found is None:
            share = (step - view.x[place - 1]) / (view.x[place] - view.x[place - 1])
            found = before + share * (after - before)
    return found
