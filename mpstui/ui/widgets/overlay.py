"""The curves of several runs over one axis: placed, drawn over each other, and each named on its own line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.model.snapshot import RunSnapshot, SeriesView
from ...core.runs.comparison import compared_values, curve_of
from ..charting.canvas import Canvas, draw_line
from ..charting.data import ChartData, known_times, moved_to_time, steps_per_epoch, time_unit
from ..charting.plot import ChartView, frame, x_axis, y_labels
from ..rows import Row, Span, row
from ..theme import RUN_ROLES

AXES = ("step", "epoch", "time")
LABELS = "123456789abcdefghijk"
"""The name of each run on its curve, in one cell."""
_LABEL_EVERY = 28
"""Cells between two labels on one curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay(ChartData):
    """Curves of different runs; one that has none over this axis is None."""

    runs: tuple[SeriesView | None, ...] = ()
    hidden: frozenset[int] = frozenset()
    """Places of the runs that are not drawn."""

    @property
    def curves(self) -> tuple[SeriesView, ...]:
        return tuple(view for place, view in enumerate(self.runs) if view is not None and place not in self.hidden)


def overlay(
    snapshots: Sequence[RunSnapshot], axis: str, metric: str = "loss", hidden: frozenset[int] = frozenset()
) -> Overlay:
    """A metric of each run over steps, over epochs, or over the time since its own first point."""
    views = [curve_of(snapshot, metric) for snapshot in snapshots]
    times = [known for view in views if view is not None and (known := known_times(view))]
    unit = time_unit(max((max(known) - min(known) for known in times), default=0.0))
    placed = (_placed(view, snapshot, axis, unit) for view, snapshot in zip(views, snapshots, strict=True))
    return Overlay(name=metric, runs=tuple(placed), hidden=hidden)


def _placed(view: SeriesView | None, snapshot: RunSnapshot, axis: str, unit: tuple[str, float]) -> SeriesView | None:
    """The compared values over an axis, without their extremes; None where there are none."""
    if view is None:
        return None
    steps = steps_per_epoch(snapshot)
    if axis == "time":
        times = known_times(view)
        view = moved_to_time(view, times[0], unit) if times else None
    elif axis == "epoch" and view.axis == "step" and steps:
        view = replace(view, axis=axis, x=[x / steps for x in view.x])
    elif axis != view.axis:
        view = None
    if view is None or not len(view.x):
        return None
    values = compared_values(view)
    return replace(view, low=values, high=values, mean=values, smooth=values, attempt_marks=(), superseded=())


def best_axis(snapshots: Sequence[RunSnapshot], metric: str = "loss") -> str:
    """The first axis over which the most runs have a curve."""
    return max(AXES, key=lambda axis: (len(overlay(snapshots, axis, metric).curves), -AXES.index(axis)))


def draw_overlay(data: Overlay, view: ChartView, width: int, height: int, first: int | None = None) -> list[Row]:
    """The chart without a legend, of ``height`` lines; empty where there is nothing to draw or no place for it.

    Args:
        first: the place of the run that is drawn over the others.
    """
    space = frame(data, view, width, height + 1)  # a frame leaves a line for the legend
    if space is None:
        return []
    canvas, names = Canvas(space.columns, space.lines, view.blocks), {}
    for place, curve in enumerate(data.runs):
        if curve is not None and place not in data.hidden:
            draw_line(canvas, curve, curve.smooth, space, RUN_ROLES[place])
            names[RUN_ROLES[place]] = Span(LABELS[place], f"{RUN_ROLES[place]} strong")
    canvas.in_front = RUN_ROLES[first] if first is not None else None
    under = {}
    column = space.column_of(view.cursor) if view.cursor is not None else None
    if column is not None:
        under[column] = Span("│", "cursor")
    named, before = canvas.labels(names, _LABEL_EVERY, () if column is None else (column,)), y_labels(space)
    body = [row(*before[line], *canvas.spans(line, under, named.get(line))) for line in range(space.lines)]
    return [*body, x_axis(data, view, space)]
