"""The chart of one metric, with the user's view of it: scale, axis, window, cursor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.events import Leave, MouseMove, MouseScrollDown, MouseScrollUp
from textual.message import Message

from ...core.model.snapshot import SeriesView
from ...core.series.pyramid import debiased_average
from ..charting.data import ChartData, chart_data, drawn_with, is_coarse, metric_names, over_time, with_ghost
from ..charting.plot import GUTTER, ChartView, draw, frame, legend
from ..charting.scale import Frame
from ..rows import Row, row
from . import Panel, RunPanel

if TYPE_CHECKING:
    from ...core.runs.window import Window
    from ..messages import WindowRead

_AVERAGES = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Weights of the past, per column of the curve, in which the average grows stronger."""
_CLOSEST_POINTS = 8
"""Zooming in stops where the window would hold no more points than this."""


class CursorMoved(Message):
    """The cursor is at another step, or gone."""

    def __init__(self, step: float | None) -> None:
        super().__init__()
        self.step = step


class LossChart(RunPanel):
    """The panel; its keys are methods that say what could not be done, if anything."""

    def __init__(self) -> None:
        super().__init__()
        self.view = ChartView()
        self.data = self._whole = ChartData(name="loss")
        """What is drawn, and the same by step."""
        self._metric = "loss"
        self._is_chosen = False
        """Whether a person chose the metric: else a loss that comes later takes the place of what came first."""
        self._told: float | None = None
        """The step that the cursor was last said to be at."""
        self._metrics: list[str] = []
        self._drawn: list[Row] = []
        self._drawn_key: tuple[object, ...] = ()
        self._space: Frame | None = None
        self._read: WindowRead | None = None
        """What was read again of a part of the curves."""
        self._made: dict[str, tuple[tuple[object, ...], SeriesView]] = {}
        """By metric: of what, and the curve as it is drawn."""
        self._asked: tuple[object, ...] = ()

    def repaint(self) -> None:
        self._take_facts()
        super().repaint()
        if self.step != self._told:
            self._told = self.step
            self.post_message(CursorMoved(self._told))

    @property
    def step(self) -> float | None:
        """The measured step next to the cursor; None without a cursor, or where the axis does not tell steps."""
        cursor, curves = self.view.cursor, self._whole.curves
        if cursor is None or not curves or self._whole.axis != "step":
            return None
        drawn = self.data.curves[0]
        place = min(range(len(drawn.x)), key=lambda place: abs(drawn.x[place] - cursor))
        if self.data is self._whole:
            return float(drawn.x[place])
        return float(curves[0].x[list(curves[0].times).index(drawn.times[place])])

    def look_at(self, step: float | None) -> None:
        """Put the cursor on a step, as somebody else asks for; None takes it away."""
        curves, cursor = self._whole.curves, step
        if step is not None and curves and self.data is not self._whole:
            place = min(range(len(curves[0].x)), key=lambda place: abs(curves[0].x[place] - step))
            drawn, time = self.data.curves[0], curves[0].times[place]
            cursor = drawn.x[list(drawn.times).index(time)] if time in drawn.times else None
        self.view = replace(self.view, cursor=cursor if curves and self._whole.axis == "step" else None)
        self._told = self.step
        self.repaint()

    def _take_facts(self) -> None:
        """Choose the metric, and put its curves on the axis that is chosen."""
        if self.facts is not None:
            self._metrics = metric_names(self.facts.snapshot)
            if self._metric not in self._metrics or ("loss" in self._metrics and not self._is_chosen):
                self._metric = self._metrics[0] if self._metrics else "loss"
            data = chart_data(self.facts.snapshot, self._metric)
            if self.facts.ghost is not None and self.view.ghost:
                data = with_ghost(data, self.facts.snapshot, self.facts.ghost)
            train, evaluation = self._as_wanted(data.train), self._as_wanted(data.evaluation)
            self._whole = replace(data, slow=self.facts.slow, train=train, evaluation=evaluation)
        moved = over_time(self._whole) if self.view.by_time else None
        self.data = moved if moved is not None else self._whole

    def _as_wanted(self, curve: SeriesView | None) -> SeriesView | None:
        """The curve with what was read again of it, averaged as a person wants it."""
        if curve is None:
            return None
        part = self._read.curves.get(curve.name) if self._read is not None else None
        wanted, (had, made) = (curve, part, self.view.smoothing), self._made.get(curve.name, ((), curve))
        if had == wanted:
            return made
        made = curve
        if part is not None and self._read is not None:
            from ...core.runs.window import in_detail

            made = in_detail(curve, part, self._read.window)
        if self.view.smoothing is not None:
            smooth = debiased_average(made.mean, self.view.smoothing)
            made = replace(made, smooth=smooth, smoothing=self.view.smoothing)
        self._made[curve.name] = wanted, made
        return made

    def on_window_read(self, found: WindowRead) -> None:
        """Draw with what was read again."""
        self._read = found
        self.repaint()

    def wanted(self) -> Window | None:
        """What is to be read again, if anything: once each, and once more when the run has gone on for a while."""
        space, zoomed = self._frame(), self.view.left is not None or self.view.right is not None
        if self.facts is None or space is None or not zoomed or self.data.axis != "step":
            return None
        curves = [curve for curve in self.data.curves if is_coarse(curve, space)]
        left, right = space.x.low - space.x.span / 2, space.x.high + space.x.span / 2
        asked = (space.x, *(curve.name for curve in curves), *(round(math.log(curve.count), 2) for curve in curves))
        if not curves or asked == self._asked:
            return None
        from ...core.runs.window import Window

        self._asked = asked
        return Window(self.facts.snapshot.run, tuple(curve.name for curve in self.data.curves), left, right)

    def press(self, what: str) -> str | None:
        """One of the chart's keys; a sentence when it cannot work."""
        self._take_facts()
        doing: dict[str, Callable[[], str | None]] = {
            "scale": self._toggle_scale,
            "axis": self._toggle_axis,
            "clip": self._clip,
            "smoother": lambda: self._smooth(1),
            "rougher": lambda: self._smooth(-1),
            "metric": lambda: self._next_metric(1),
            "metric_before": lambda: self._next_metric(-1),
        }
        why_not = None
        if what == "blocks":
            self.view = replace(self.view, blocks=not self.view.blocks)
        elif what == "ghost":
            self.view = replace(self.view, ghost=not self.view.ghost)
        elif what == "reset":
            self.view = replace(self.view, left=None, right=None, cursor=None)
        else:
            why_not = doing[what]() if what in doing else self._navigate(what)
        self.repaint()
        return why_not

    def _toggle_scale(self) -> str | None:
        space = self._frame()
        self.view = replace(self.view, log=not (space.y.log if space else self.view.log))
        after = self._frame()
        if self.view.log and after is not None and not after.y.log:
            self.view = replace(self.view, log=False)
            return f"{self._metric} has no value above 0: a log axis cannot show it"
        return None

    def _clip(self) -> str | None:
        """Have outliers leave the axis to the others, or not."""
        before, self.view = self._frame(), replace(self.view, clip=not self.view.clip)
        after = self._frame()
        if self.view.clip and (before is None or after is None or before.y == after.y):
            self.view = replace(self.view, clip=False)
            return "No value lies far from the others."
        return None

    def _smooth(self, by: int) -> str | None:
        """The next stronger average, or the next weaker one."""
        train = self._whole.train
        if train is None:
            return "Validation is drawn as it was measured: there is nothing to average."
        now = round(self.view.smoothing if self.view.smoothing is not None else train.smoothing, 2)
        others = [one for one in _AVERAGES if (one - now) * by > 0]
        if not others:
            return f"The average is at its {'strongest' if by > 0 else 'weakest'}, {now:.2g}."
        self.view = replace(self.view, smoothing=min(others, key=lambda one: abs(one - now)))
        return None

    def _toggle_axis(self) -> str | None:
        """Steps, epochs, time: those of them that are known, in turn. A window on one axis means nothing on another."""
        view = replace(self.view, by_epoch=False, by_time=False, left=None, right=None, cursor=None)
        known = [view]
        if self._whole.steps_per_epoch and self._whole.axis == "step":
            known.append(replace(view, by_epoch=True))
        if over_time(self._whole) is not None:
            known.append(replace(view, by_time=True))
        if len(known) == 1:
            return "Neither steps per epoch nor times are known: the axis stays."
        # By epoch, by time; where that is known no more, by step.
        axis = (self.view.by_epoch and bool(self._whole.steps_per_epoch), self.data is not self._whole)
        now = next((place for place, one in enumerate(known) if (one.by_epoch, one.by_time) == axis), 0)
        self.view = known[(now + 1) % len(known)]
        return None

    @property
    def metric(self) -> str:
        """The metric that it draws."""
        return self._metric

    def choose(self, name: str) -> None:
        """Draw a metric, with the window and the cursor as they are; of one without a curve nothing changes."""
        self._take_facts()
        snapshot = self.facts.snapshot if self.facts is not None else None
        drawn = drawn_with(snapshot, name) if snapshot is not None else name
        if drawn in self._metrics and drawn != self._metric:
            self._is_chosen, self._metric = True, drawn
            self.view = replace(self.view, log=None)
            self.repaint()

    def _next_metric(self, by: int) -> str | None:
        if len(self._metrics) < 2:
            return "There is no other metric."
        self.choose(self._metrics[(self._metrics.index(self._metric) + by) % len(self._metrics)])
        return None

    def _navigate(self, what: str) -> str | None:
        space = self._frame()
        if space is None:
            return "Nothing is drawn yet."
        view, data = self.view, self.data
        self.view = navigate(what, view, space, data)
        return None

    def _frame(self) -> Frame | None:
        return frame(self.data, self.view, *self.rows_size)

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`mpstui.ui.charting.plot.draw`; until a curve has another bucket, its legend alone is new."""
        if self.facts is None:
            return [row((" reading …", "dim"))]
        key = (
            width,
            height,
            self.view,
            self.data.name,
            self.data.slow,
            self.data.said,
            *map(id, (self._read, *self.data.ghosts)),
            *map(_redraw_key, self.data.curves),
        )
        if self._space is None or key != self._drawn_key:
            self._drawn_key, self._space = key, self._frame()
            self._drawn = draw(self.data, self.view, width, height)
        else:  # 0.02 ms instead of 4.1 for a curve of 1,024 buckets
            self._drawn = [legend(self.data, self.view, self._space, width), *self._drawn[1:]]
        return self._drawn

    def on_mouse_move(self, event: MouseMove) -> None:
        space = self._frame()
        if space is not None and event.x >= GUTTER and not event.button:
            self.view = replace(self.view, cursor=space.x_at(min(space.columns - 1, event.x - GUTTER)))
            self.repaint()

    async def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """The wheel zooms around the pointer."""
        event.stop()
        await self.run_action("screen.chart('in')")

    async def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop()
        await self.run_action("screen.chart('out')")

    def on_leave(self, event: Leave) -> None:
        self.view = replace(self.view, cursor=None)
        self.repaint()


def _redraw_key(curve: SeriesView) -> tuple[object, ...]:
    """What of a curve can move its line: a value more in the newest bucket moves it by less than a dot."""
    marks = (len(curve.attempt_marks), len(curve.superseded), len(curve.gaps), curve.axis, curve.complete)
    return curve.name, len(curve.x), curve.x[0], curve.minimum, curve.maximum, *marks


def navigate(what: str, view: ChartView, space: Frame, data: ChartData) -> ChartView:
    """The view after a key that moves or zooms: ``in``, ``out``, ``left``, ``right``, ``earlier`` or ``later``."""
    moves = {
        "in": lambda: zoom(view, space, data, 0.5),
        "out": lambda: zoom(view, space, data, 2.0),
        "left": lambda: move_cursor(view, space, data, -1),
        "right": lambda: move_cursor(view, space, data, 1),
        "earlier": lambda: pan(view, space, data, -0.25),
        "later": lambda: pan(view, space, data, 0.25),
    }
    return moves[what]()


def zoom(view: ChartView, space: Frame, data: ChartData, factor: float) -> ChartView:
    """Show ``factor`` times as much of x, around the cursor, or holding the right edge."""
    extent = data.extent()
    if extent is None:
        return view
    span = (space.x.high - space.x.low) * factor
    whole_span = extent[1] - extent[0]
    if span >= whole_span:
        return replace(view, left=None, right=None)
    # By step a window is read again, point for point; on other axes there is no more than is held.
    most = max(curve.count if curve.axis == "step" else len(curve.x) for curve in data.curves)
    span = max(span, whole_span * min(1, _CLOSEST_POINTS / most))
    if view.cursor is None and view.right is None:
        return replace(view, left=extent[1] - span)
    anchor = view.cursor if view.cursor is not None else space.x.high
    share = (anchor - space.x.low) / (space.x.high - space.x.low)
    left = anchor - span * min(1.0, max(0.0, share))
    return _inside(view, left, span, extent)


def pan(view: ChartView, space: Frame, data: ChartData, share: float) -> ChartView:
    """Move the window by a share of its own width; at the right end it follows again."""
    extent = data.extent()
    if extent is None or (view.left is None and view.right is None):
        return view
    span = min(space.x.high, extent[1]) - space.x.low
    return _inside(view, space.x.low + share * span, span, extent)


def _inside(view: ChartView, left: float, span: float, extent: tuple[float, float]) -> ChartView:
    left = max(extent[0], left)
    if left + span >= extent[1]:
        return replace(view, left=max(extent[0], extent[1] - span), right=None)
    return replace(view, left=left, right=left + span)


def move_cursor(view: ChartView, space: Frame, data: ChartData, cells: int) -> ChartView:
    """Move the read-out by cells; the first key press puts it on the newest point."""
    extent = data.extent()
    if extent is None:
        return view
    now = view.cursor
    if now is None:
        return replace(view, cursor=min(extent[1], space.x.high))
    column = space.column_of(now)
    target = (space.columns - 1 if column is None else column) + cells
    there = space.x_at(max(0, min(space.columns - 1, target)))
    ahead = (x for x in data.curves[0].x if (x - now) * cells > 0 and space.x.low <= x <= space.x.high)
    point = min(ahead, key=lambda x: abs(x - now), default=there)
    if abs(point - now) > abs(there - now) + space.x.span / space.columns:
        there = point  # points lie farther apart than cells: it goes from one to the next
    return replace(view, cursor=min(extent[1], there))


PANEL = Panel(order=10, help="the curve of one metric", widget=LossChart, at_left=True)
