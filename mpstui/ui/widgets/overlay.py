"""The curves of several runs on one axis: placed, drawn over each other, and each labelled on its line. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from ...core.model.snapshot import RunSnapshot, SeriesView
from ...core.runs.comparison import compared_values, curve_of
from ..charting.canvas import DOTTED, WHOLE, Canvas, draw_line
from ..charting.data import ChartData, known_times, moved_to_time, steps_per_epoch, time_unit
from ..charting.plot import ChartView, frame, x_axis, y_labels
from ..charting.scale import Frame
from ..rows import Row, Span, row
from ..theme import RUN_ROLES

AXES = ("step", "epoch", "time")
_COUNTS = frozenset(("sample", "printed step", "optimizer step"))
LABELS = "123456789abcdefghijk"
"""The labels of the runs on their curves, one cell each."""
_LABEL_EVERY = 28
"""Cells between two labels on one curve."""
_DASHES = DOTTED, (8, 4), (1, 3), (3, 3)
"""Line styles that tell the curves apart where there are no colours."""


_PLACED: WeakKeyDictionary[SeriesView, dict[object, SeriesView | None]] = WeakKeyDictionary()
_ENDS: WeakKeyDictionary[SeriesView, SeriesView] = WeakKeyDictionary()
_DRAWN: WeakKeyDictionary[SeriesView, tuple[object, Canvas]] = WeakKeyDictionary()
"""Cached per curve: a key or one new point does not place, measure and draw twenty curves again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay(ChartData):
    """Curves of different runs; a run without a curve over this axis has None."""

    runs: tuple[SeriesView | None, ...] = ()
    hidden: frozenset[int] = frozenset()
    """Indices of the runs that are hidden."""

    @property
    def curves(self) -> tuple[SeriesView, ...]:
        return tuple(view for place, view in enumerate(self.runs) if view is not None and place not in self.hidden)


def overlay(
    snapshots: Sequence[RunSnapshot], axis: str, metric: str = "loss", hidden: frozenset[int] = frozenset()
) -> Overlay:
    """Return a metric of each run over steps, over epochs, or over the time since its own first point."""
    views = [curve_of(snapshot, metric) for snapshot in snapshots]
    unit = None
    if axis == "time":
        times = [known for view in views if view is not None and (known := known_times(view))]
        unit = time_unit(max((max(known) - min(known) for known in times), default=0.0))
    axis = _counted(views) if axis == "step" else axis
    placed = (_placed(view, snapshot, axis, unit) for view, snapshot in zip(views, snapshots, strict=True))
    return Overlay(name=metric, runs=tuple(placed), hidden=hidden)


def _counted(views: Sequence[SeriesView | None]) -> str:
    """The unit to use for steps: if no run has its curve over steps, the unit that all of them count instead."""
    counts = {view.axis for view in views if view is not None}
    return counts.pop() if len(counts) == 1 and counts <= _COUNTS else "step"


def _placed(
    curve: SeriesView | None, snapshot: RunSnapshot, axis: str, unit: tuple[str, float] | None
) -> SeriesView | None:
    """Return the compared values over an axis, without their extremes; None if there are none. Unchanged curves stay
    the same object."""
    if curve is None:
        return None
    steps, made = steps_per_epoch(snapshot), _PLACED.setdefault(curve, {})
    key = axis, unit, steps if axis == "epoch" else None
    if key not in made:
        made[key] = _over(curve, steps, axis, unit)
    return made[key]


def _over(curve: SeriesView, steps: float | None, axis: str, unit: tuple[str, float] | None) -> SeriesView | None:
    view: SeriesView | None = curve
    if unit is not None:
        times = known_times(curve)
        view = moved_to_time(curve, times[0], unit) if times else None
    elif axis == "epoch" and curve.axis == "step" and steps:
        view = replace(curve, axis=axis, x=[x / steps for x in curve.x])
    elif axis != curve.axis:
        view = None
    if view is None or not len(view.x):
        return None
    values = compared_values(view)
    return replace(
        view, low=values, high=values, mean=values, smooth=values, attempt_marks=(), mark_attempts=(), superseded=()
    )


def best_axis(snapshots: Sequence[RunSnapshot], metric: str = "loss") -> str:
    """Return the first axis over which the most runs have a curve."""
    found = {}
    for axis in AXES:
        found[axis] = len(overlay(snapshots, axis, metric).curves)
        if found[axis] == len(snapshots):
            break
    return max(found, key=lambda axis: (found[axis], -AXES.index(axis)))


def overlay_frame(data: Overlay, view: ChartView, width: int, height: int) -> Frame | None:
    """Return the axes of a chart of ``height`` lines; unless zoomed, only each curve's ends and extremes matter."""
    if view.left is None and view.right is None:
        data = replace(data, runs=tuple(one and _ends(one) for one in data.runs))
    return frame(data, view, width, height + 1)  # a frame reserves a line for the legend


def _ends(curve: SeriesView) -> SeriesView:
    found = _ENDS.get(curve)
    if found is None:
        known = [value for value in curve.smooth if math.isfinite(value)] or [math.nan]
        above = min((value for value in known if value > 0), default=math.nan)  # where a log axis would begin
        values = [min(known), above, max(known)]
        places = [curve.x[0], curve.x[0], curve.x[-1]]
        found = _ENDS[curve] = replace(curve, x=places, low=values, high=values, mean=values, smooth=values)
    return found


def draw_overlay(
    data: Overlay,
    view: ChartView,
    width: int,
    height: int,
    first: int | None = None,
    *,
    bare: bool = False,
    colours: bool = True,
) -> list[Row]:
    """Return the chart without a legend, in ``height`` lines; empty if there is nothing to draw or no room.

    Args:
        first: index of the run that is drawn in front of the others.
        bare: leave out curves and cursor, which a picture shows.
        colours: tell curves apart by colour; otherwise the first is solid and the others are dotted or dashed.
    """
    space = overlay_frame(data, view, width, height)
    if space is None:
        return []
    canvas, names = Canvas(space.columns, space.lines, view.blocks), {}
    for place, curve in enumerate(data.runs):
        if curve is not None and place not in data.hidden:
            dashes = WHOLE if colours or first in (None, place) else _DASHES[place % len(_DASHES)]
            now, (key, drawn) = (space, view.blocks, place, dashes), _DRAWN.get(curve, (None, canvas))
            if key != now:  # most curves are unchanged: only a live one grows
                drawn = Canvas(space.columns, space.lines, view.blocks)
                draw_line(drawn, curve, curve.smooth, space, RUN_ROLES[place], dashes=dashes)
                _DRAWN[curve] = now, drawn
            canvas.take(RUN_ROLES[place], drawn)
            names[RUN_ROLES[place]] = Span(LABELS[place], f"{RUN_ROLES[place]} strong")
    canvas.in_front = RUN_ROLES[first] if first is not None else None
    under = {}
    column = space.column_of(view.cursor) if view.cursor is not None else None
    if column is not None and not bare:
        under[column] = Span("│", "cursor")
    named, before = canvas.labels(names, _LABEL_EVERY, () if column is None else (column,)), y_labels(space)
    if bare:
        canvas.leave_out_curves()
    body = [row(*before[line], *canvas.spans(line, under, named.get(line))) for line in range(space.lines)]
    return [*body, x_axis(data, view, space)]
