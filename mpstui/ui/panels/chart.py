"""The chart of one metric, with the user's view of it: scale, axis, window, cursor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.events import Leave, MouseMove, MouseScrollDown, MouseScrollUp
from textual.geometry import Region
from textual.message import Message

from ...core.model.snapshot import SeriesView
from ...core.series.pyramid import debiased_average
from ..charting.data import ChartData, chart_data, is_coarse, metric_names, over_time, validations, with_ghost
from ..charting.moving import navigate
from ..charting.plot import GUTTER, ChartView, draw, frame, legend
from ..charting.scale import Frame
from ..graphics import Picture, Raster
from ..rows import Row, row
from ..theme import pixel_inks
from ..widgets.lines import PixelPanel
from . import Panel, RunPanel

if TYPE_CHECKING:
    from ...core.runs.window import Window
    from ..messages import WindowRead

_AVERAGES = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Weights of the past, per column of the curve, from the weakest average to the strongest."""
_OF_KEYS = 6
"""How many leading parts of the redraw key only keys change."""


class CursorMoved(Message):
    """The cursor moved to another step, or was removed."""

    def __init__(self, step: float | None) -> None:
        super().__init__()
        self.step = step


class LossChart(RunPanel, PixelPanel):  # Textual looks for widgets by the first of them
    """The panel; its keys are methods that return a sentence if something could not be done."""

    def __init__(self) -> None:
        super().__init__()
        self.view = ChartView()
        self.data = self._whole = ChartData(name="loss")
        """What is drawn, and the same data over steps."""
        self._metric = "loss"
        self._pinned = ""
        """The metric drawn beside the others."""
        self._is_chosen = False
        """True if the user chose the metric; otherwise a loss replaces it as soon as one is reported."""
        self.expected = ""
        """A metric to draw as soon as it has been read."""
        self._told: float | None = None
        """The step that the cursor was last reported at."""
        self._metrics: list[str] = []
        self._drawn: list[Row] = []
        self._drawn_key: tuple[object, ...] = ()
        self._space: Frame | None = None
        self._read: WindowRead | None = None
        """The part of the curves that was read again at full resolution."""
        self._made: dict[str, tuple[tuple[object, ...], SeriesView]] = {}
        """By metric: the curve that was read again, and what is drawn of it."""
        self._asked: tuple[object, ...] = ()
        self._raster: Raster | None = None

    def repaint(self) -> None:
        self._take_facts()
        super().repaint()
        if self.step != self._told:
            self._told = self.step
            self.post_message(CursorMoved(self._told))

    @property
    def step(self) -> float | None:
        """The measured step closest to the cursor; None without a cursor, or on an axis that has no steps."""
        cursor, curves = self.view.cursor, self._whole.curves
        if cursor is None or not curves or self._whole.axis != "step":
            return None
        drawn = self.data.curves[0]
        place = min(range(len(drawn.x)), key=lambda place: abs(drawn.x[place] - cursor))
        if self.data is self._whole:
            return float(drawn.x[place])
        return float(curves[0].x[list(curves[0].times).index(drawn.times[place])])

    def look_at(self, step: float | None) -> None:
        """Put the cursor on a step, as another panel asks; None removes it."""
        curves, cursor = self._whole.curves, step
        if step is not None and curves and self.data is not self._whole:
            place = min(range(len(curves[0].x)), key=lambda place: abs(curves[0].x[place] - step))
            drawn, time = self.data.curves[0], curves[0].times[place]
            cursor = drawn.x[list(drawn.times).index(time)] if time in drawn.times else None
        self.view = self.view._replace(cursor=cursor if curves and self._whole.axis == "step" else None)
        self._told = self.step
        self.repaint()

    def _take_facts(self) -> None:
        """Choose the metric, and put its curves on the chosen axis."""
        if self.facts is not None:
            self._metrics, over = metric_names(self.facts.snapshot), validations(self.facts.snapshot)
            if self.expected and (drawn := over.get(self.expected, self.expected)) in self._metrics:
                self._is_chosen, self._metric, self.expected = True, drawn, ""
            if self._metric not in self._metrics or ("loss" in self._metrics and not self._is_chosen):
                self._metric = self._metrics[0] if self._metrics else "loss"
            data = chart_data(self.facts.snapshot, self._metric)
            if self.facts.ghost is not None and self.view.ghost:
                data = with_ghost(data, self.facts.snapshot, self.facts.ghost)
            train, evaluation = self._as_wanted(data.train), self._as_wanted(data.evaluation)
            pinned = self.facts.snapshot.series.get(self._pinned) if self._pinned != self._metric else None
            pinned = self._as_wanted(pinned) if pinned is not None and pinned.axis == data.axis else None
            self._whole = replace(data, slow=self.facts.slow, train=train, evaluation=evaluation, pinned=pinned)
        moved = over_time(self._whole) if self.view.by_time else None
        self.data = moved if moved is not None else self._whole

    def _as_wanted(self, curve: SeriesView | None) -> SeriesView | None:
        """Return the curve, refined where it was read again, with the averaging that the user wants."""
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
        """Draw with the part of the curves that was read again."""
        self._read = found
        self.repaint()

    def wanted(self) -> Window | None:
        """What to read again, if anything: each window once, and again when the run has continued for a while."""
        space, zoomed = self._frame(), self.view.left is not None or self.view.right is not None
        if self.facts is None or space is None or not zoomed or self._whole.axis != "step":
            return None
        curves = [curve for curve in self.data.curves if is_coarse(curve, space)]
        left, right = space.x.low - space.x.span / 2, space.x.high + space.x.span / 2
        if curves and self.data is not self._whole:
            left, right = steps_of(self.data.curves[0], self._whole.curves[0], left, right)
        asked = (space.x, *(curve.name for curve in curves), *(round(math.log(curve.count), 2) for curve in curves))
        if not curves or asked == self._asked:
            return None
        from ...core.runs.window import Window

        self._asked = asked
        return Window(self.facts.snapshot.run, tuple(curve.name for curve in self.data.curves), left, right)

    def press(self, what: str) -> str | None:
        """Do what one of the chart's keys asks; return a sentence if it cannot."""
        self._take_facts()
        doing: dict[str, Callable[[], str | None]] = {
            "scale": self._toggle_scale,
            "axis": self._toggle_axis,
            "clip": self._clip,
            "pin": self._pin,
            "smoother": lambda: self._smooth(1),
            "rougher": lambda: self._smooth(-1),
            "metric": lambda: self._next_metric(1),
            "metric_before": lambda: self._next_metric(-1),
        }
        why_not = None
        if what == "blocks":
            self.view = self.view._replace(blocks=not self.view.blocks)
        elif what == "ghost":
            self.view = self.view._replace(ghost=not self.view.ghost)
        elif what == "reset":
            self.view = self.view._replace(left=None, right=None, cursor=None)
        else:
            why_not = doing[what]() if what in doing else self._navigate(what)
        self.repaint()
        return why_not

    def _toggle_scale(self) -> str | None:
        space = self._frame()
        self.view = self.view._replace(log=not (space.y.log if space else self.view.log))
        after = self._frame()
        if self.view.log and after is not None and not after.y.log:
            self.view = self.view._replace(log=False)
            return f"{self._metric} has no value above 0: a log axis cannot show it"
        return None

    def _clip(self) -> str | None:
        """Toggle whether outliers are left beyond the edge of the axis."""
        before, self.view = self._frame(), self.view._replace(clip=not self.view.clip)
        after = self._frame()
        if self.view.clip and (before is None or after is None or before.y == after.y):
            self.view = self.view._replace(clip=False)
            return "No value is far from the others."
        return None

    def _pin(self) -> str | None:
        """Pin this curve, to be drawn beside those of other metrics, or unpin it."""
        if self._pinned:
            self._pinned = ""
            return None
        before, why_not = self._metric, self._next_metric(1)
        self._pinned = before if why_not is None else ""
        return why_not

    def _smooth(self, by: int) -> str | None:
        """Choose the next stronger or weaker average."""
        train = self._whole.train
        if train is None:
            return "Validation is drawn as it was measured: there is nothing to average."
        now = round(self.view.smoothing if self.view.smoothing is not None else train.smoothing, 2)
        others = [one for one in _AVERAGES if (one - now) * by > 0]
        if not others:
            return f"The average is at its {'strongest' if by > 0 else 'weakest'}, {now:.2g}."
        self.view = self.view._replace(smoothing=min(others, key=lambda one: abs(one - now)))
        return None

    def _toggle_axis(self) -> str | None:
        """Switch to the next known axis: steps, epochs, time. A window on one axis means nothing on another."""
        view = self.view._replace(by_epoch=False, by_time=False, left=None, right=None, cursor=None)
        known = [view]
        if self._whole.steps_per_epoch and self._whole.axis == "step":
            known.append(view._replace(by_epoch=True))
        if over_time(self._whole) is not None:
            known.append(view._replace(by_time=True))
        if len(known) == 1:
            return "Neither steps per epoch nor times are known: the axis stays."
        # By epoch, then by time; if neither is known any more, by step.
        axis = (self.view.by_epoch and bool(self._whole.steps_per_epoch), self.data is not self._whole)
        now = next((place for place, one in enumerate(known) if (one.by_epoch, one.by_time) == axis), 0)
        self.view = known[(now + 1) % len(known)]
        return None

    @property
    def metric(self) -> str:
        """The metric being drawn."""
        return self._metric

    def choose(self, name: str) -> None:
        """Draw a metric, keeping window and cursor; nothing changes if it has no curve."""
        self._take_facts()
        drawn = validations(self.facts.snapshot).get(name, name) if self.facts is not None else name
        if drawn in self._metrics and drawn != self._metric:
            self._is_chosen, self._metric = True, drawn
            self.view = self.view._replace(log=None)
            self.repaint()

    def _next_metric(self, by: int) -> str | None:
        if len(self._metrics) < 2:
            unread = self.facts is None or self.data.unread
            return "The run is still being read: press again in a moment." if unread else "There is no other metric."
        self.choose(self._metrics[(self._metrics.index(self._metric) + by) % len(self._metrics)])
        return None

    def _navigate(self, what: str) -> str | None:
        space = self._frame()
        if space is None:
            return "Nothing is drawn yet." if self.display else "The chart is not in view: 1 shows it."
        view, data = self.view, self.data
        self.view = navigate(what, view, space, data)
        return None

    def _frame(self) -> Frame | None:
        return frame(self.data, self.view, *self.rows_size, bare=self.in_pixels)

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`mpstui.ui.charting.plot.draw`; until a curve gets another bucket, only its legend is redrawn."""
        if self.facts is None:
            return [row((" reading …", "dim"))]
        key = (
            self.in_pixels,
            width,
            height,
            self.app.theme if self.in_pixels else "",
            self.view,
            self.data.name,
            self.data.slow,
            self.data.said,
            *map(id, (self._read, *self.data.ghosts)),
            *map(_redraw_key, (*self.data.curves, *filter(None, (self.data.pinned,)))),
        )
        if self._space is None or (key != self._drawn_key and not self._waits_for_the_line(key)):
            self._drawn_key, self._space = key, self._frame()
            self._drawn = draw(self.data, self.view, width, height, bare=self.in_pixels)
            self._draw_pixels()
        else:  # 0.02 ms instead of 4.1 for a curve of 1,024 buckets
            self._drawn = [legend(self.data, self.view, self._space, width), *self._drawn[1:]]
        return self._drawn

    @property
    def in_pixels(self) -> bool:
        return bool(self.data.curves) and super().in_pixels

    @property
    def pictures(self) -> tuple[Picture, ...]:
        space, (x, y, width, height) = self._space, self.content_region
        drawn_so = self._drawn_key[:1] == (True,)
        if self._raster is None or space is None or not (self.display and drawn_so and self.in_pixels):
            return ()
        area = Region(x + GUTTER, y + height - 1 - space.lines, space.columns, space.lines)
        fits = (area.right, height) == (x + width, len(self._painted))
        return (Picture(area, self._raster),) if fits else ()

    def _waits_for_the_line(self, key: tuple[object, ...]) -> bool:
        """True if a new picture must wait; never one that a key asked for."""
        return self.in_pixels and key[:_OF_KEYS] == self._drawn_key[:_OF_KEYS] and self.line_is_busy()

    def _draw_pixels(self) -> None:
        space = self._space
        if self.graphics is None or not self.in_pixels or space is None:
            return
        from ..charting.pixels import rasterise

        inks = pixel_inks(self.app.theme) or {}
        self._raster = rasterise(self.data, self.view, space, self.graphics.cell, inks, self._raster)
        self.want_frame()

    def on_mouse_move(self, event: MouseMove) -> None:
        space = self._frame()
        if space is not None and event.x >= GUTTER and not event.button:
            self.view = self.view._replace(cursor=space.x_at(min(space.columns - 1, event.x - GUTTER)))
            self.repaint()

    async def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Zoom around the pointer."""
        event.stop()
        await self.run_action("screen.chart('in')")

    async def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop()
        await self.run_action("screen.chart('out')")

    def on_leave(self, event: Leave) -> None:
        self.view = self.view._replace(cursor=None)
        self.repaint()


def steps_of(timed: SeriesView, curve: SeriesView, left: float, right: float) -> tuple[float, float]:
    """Return the first and last step that a curve measured between two places on its time axis."""
    moments = {moment for x, moment in zip(timed.x, timed.times, strict=True) if left <= x <= right}
    steps = [x for x, moment in zip(curve.x, curve.times, strict=True) if moment in moments]
    return min(steps, default=math.nan), max(steps, default=math.nan)


def _redraw_key(curve: SeriesView) -> tuple[object, ...]:
    """What must change for the line to move: one more value in the newest bucket moves it by less than a dot."""
    marks = (len(curve.attempt_marks), len(curve.superseded), len(curve.gaps), curve.axis, curve.complete)
    return curve.name, len(curve.x), curve.x[0], curve.minimum, curve.maximum, *marks


PANEL = Panel(order=10, help="the curve of one metric", widget=LossChart, at_left=True)
