"""The chart of one metric, with the person's view of it: scale, axis, window, cursor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.events import Leave, MouseMove

from ...core.model.snapshot import RunSnapshot, SeriesView
from ..charting.over_time import over_time
from ..charting.plot import GUTTER, ChartData, ChartView, Frame, draw, frame, legend
from ..charting.viewport import move_cursor, pan, zoom
from ..rows import Row, row
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.telemetry.throughput import Stretch

_VALIDATION_PREFIXES = ("val_", "valid_", "validation_", "eval_", "test_", "val/", "valid/", "eval/", "test/")


def metric_names(snapshot: RunSnapshot) -> list[str]:
    """What can be drawn: the loss first; a validation series is drawn over its training series, not by itself."""
    names = [name for name, view in snapshot.series.items() if not _is_drawn_over(view, snapshot.series)]
    return sorted(names, key=lambda name: (name != "loss", name))


def _is_drawn_over(view: SeriesView, series: Mapping[str, SeriesView]) -> bool:
    """Whether a validation series shares the chart of its training series: over one axis, or not at all."""
    base = base_name(view.name)
    return base != view.name and base in series and series[base].axis == view.axis


def base_name(name: str) -> str:
    """``val_loss`` and ``eval/loss`` measure the same as ``loss``."""
    for prefix in _VALIDATION_PREFIXES:
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


def chart_data(snapshot: RunSnapshot, name: str) -> ChartData:
    """The curves of one metric."""
    shown: SeriesView | None = snapshot.series.get(name)
    others = (view for other, view in snapshot.series.items() if other != name and base_name(other) == name)
    evaluation = next((view for view in others if shown is None or view.axis == shown.axis), None)
    if shown is not None and shown.evaluation:
        shown, evaluation = None, shown
    return ChartData(
        name=name,
        train=shown,
        evaluation=evaluation,
        steps_per_epoch=_steps_per_epoch(snapshot),
        unread=snapshot.loading or snapshot.brief,
    )


def _steps_per_epoch(snapshot: RunSnapshot) -> float | None:
    if snapshot.numbers.epoch_steps:
        return float(snapshot.numbers.epoch_steps)
    if snapshot.numbers.steps and snapshot.numbers.epochs:
        return snapshot.numbers.steps / snapshot.numbers.epochs
    return None


def _face(curve: SeriesView) -> tuple[object, ...]:
    """What of a curve can move its line: a value more in the newest bucket moves it by less than a dot."""
    marks = (len(curve.attempt_marks), len(curve.superseded), len(curve.gaps), curve.axis, curve.complete)
    return curve.name, len(curve.x), curve.x[0], curve.minimum, curve.maximum, *marks


class LossChart(LinePanel):
    """The panel; its keys are methods that say what could not be done, if anything."""

    TITLE = "chart"

    def __init__(self, *, id: str | None = None, blocks: bool = False) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.view = ChartView(blocks=blocks)
        self.data = self._whole = ChartData(name="loss")
        """What is drawn, and the same by step."""
        self._metric = "loss"
        self._metrics: list[str] = []
        self._snapshot: RunSnapshot | None = None
        self._slow: tuple[Stretch, ...] = ()
        self._drawn: list[Row] = []
        self._drawn_face: tuple[object, ...] = ()
        self._space: Frame | None = None

    def show(self, snapshot: RunSnapshot) -> None:
        """A new picture of the same run keeps the view."""
        self._snapshot = snapshot
        self._metrics = metric_names(snapshot)
        if self._metric not in self._metrics:
            self._metric = self._metrics[0] if self._metrics else "loss"
        self._whole = replace(chart_data(snapshot, self._metric), slow=self._slow)
        self._place()
        self.repaint()

    def mark(self, slow: Sequence[Stretch]) -> None:
        """Where the training was slower than it had been."""
        if tuple(slow) != self._slow:
            self._slow = tuple(slow)
            self._whole = replace(self._whole, slow=self._slow)
            self._place()
            self.repaint()

    def press(self, what: str) -> str | None:
        """One of the chart's keys; a sentence when it cannot work."""
        doing: dict[str, Callable[[], str | None]] = {
            "scale": self._toggle_scale,
            "axis": self._toggle_axis,
            "metric": self._next_metric,
            "blocks": self._toggle_blocks,
            "reset": self._reset,
        }
        why_not = doing[what]() if what in doing else self._navigate(what)
        self.repaint()
        return why_not

    def _toggle_blocks(self) -> None:
        self.view = replace(self.view, blocks=not self.view.blocks)

    def _reset(self) -> None:
        self.view = replace(self.view, left=None, right=None, cursor=None)

    def _toggle_scale(self) -> str | None:
        space = self._frame()
        self.view = replace(self.view, log=not (space.y.log if space else self.view.log))
        after = self._frame()
        if self.view.log and after is not None and not after.y.log:
            self.view = replace(self.view, log=False)
            return f"{self._metric} has no value above 0: a log axis cannot show it"
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
            return "steps per epoch are not known, nor times, so the axis stays as it is"
        now = next((i for i, one in enumerate(known) if (one.by_epoch, one.by_time) == self._axis), 0)
        self.view = known[(now + 1) % len(known)]
        self._place()
        return None

    @property
    def _axis(self) -> tuple[bool, bool]:
        """By epoch, by time; where that is known no more, by step."""
        return (self.view.by_epoch and bool(self._whole.steps_per_epoch), self.data is not self._whole)

    def _place(self) -> None:
        """Put the curves on the axis that is looked at."""
        moved = over_time(self._whole) if self.view.by_time else None
        self.data = moved if moved is not None else self._whole

    def _next_metric(self) -> str | None:
        if len(self._metrics) < 2:
            return "there is no other metric to draw"
        place = self._metrics.index(self._metric) if self._metric in self._metrics else -1
        self._metric = self._metrics[(place + 1) % len(self._metrics)]
        self.view = ChartView(blocks=self.view.blocks, by_epoch=self.view.by_epoch, by_time=self.view.by_time)
        if self._snapshot is not None:
            self._whole = replace(chart_data(self._snapshot, self._metric), slow=self._slow)
            self._place()
        return None

    def _navigate(self, what: str) -> str | None:
        space = self._frame()
        if space is None:
            return "there is nothing drawn yet"
        view, data = self.view, self.data
        moves = {
            "in": lambda: zoom(view, space, data, 0.5),
            "out": lambda: zoom(view, space, data, 2.0),
            "left": lambda: move_cursor(view, space, data, -1),
            "right": lambda: move_cursor(view, space, data, 1),
            "earlier": lambda: pan(view, space, data, -0.25),
            "later": lambda: pan(view, space, data, 0.25),
        }
        self.view = moves[what]()
        return None

    def _frame(self) -> Frame | None:
        return frame(self.data, self.view, *self.room)

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`mpstui.ui.charting.plot.draw`; until a curve has another bucket, its legend alone is news."""
        if self._snapshot is None:
            return [row((" reading …", "dim"))]
        face = (width, height, self.view, self.data.name, self.data.slow, *map(_face, self.data.curves))
        if self._space is None or face != self._drawn_face:
            self._drawn_face, self._space = face, self._frame()
            self._drawn = draw(self.data, self.view, width, height)
        else:
            self._drawn = [legend(self.data, self.view, self._space, width), *self._drawn[1:]]
        return self._drawn

    def on_mouse_move(self, event: MouseMove) -> None:
        """Hovering reads the curve."""
        space = self._frame()
        if space is not None and event.x >= GUTTER and not event.button:
            self.view = replace(self.view, cursor=space.x_at(min(space.columns - 1, event.x - GUTTER)))
            self.repaint()

    def on_leave(self, event: Leave) -> None:
        """The read-out goes with the mouse."""
        self.view = replace(self.view, cursor=None)
        self.repaint()
