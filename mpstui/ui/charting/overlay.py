"""The averaged curves of several runs over one axis: each has a colour, and its number where it ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.model.snapshot import RunSnapshot, SeriesView
from ..rows import Row, Span, row
from .canvas import Canvas
from .plot import ChartData, ChartView, Frame, frame, x_axis, y_labels
from .strokes import draw_buckets

AXES = ("step", "epoch", "time")
ROLES = ("train", "val", "mark", "good", "bad", "bar")
"""The look of each run's curve; no more can be told apart."""
_HOUR, _MINUTE = 3600.0, 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay(ChartData):
    """Curves of different runs; one that has none over this axis is None."""

    runs: tuple[SeriesView | None, ...] = ()

    @property
    def curves(self) -> tuple[SeriesView, ...]:
        """Those that there are."""
        return tuple(view for view in self.runs if view is not None)


def overlay(snapshots: Sequence[RunSnapshot], axis: str) -> Overlay:
    """The loss of each run over steps, over epochs, or over the time since its own first point."""
    views = [snapshot.train_loss for snapshot in snapshots]
    unit = _time_unit(views)
    placed = (_placed(view, snapshot, axis, unit) for view, snapshot in zip(views, snapshots, strict=True))
    return Overlay(name="loss", runs=tuple(placed))


def best_axis(snapshots: Sequence[RunSnapshot]) -> str:
    """The first axis over which the most runs have a curve."""
    return max(AXES, key=lambda axis: (len(overlay(snapshots, axis).curves), -AXES.index(axis)))


def draw_overlay(data: Overlay, view: ChartView, width: int, height: int) -> list[Row]:
    """The chart without a legend, of ``height`` lines; empty where there is nothing to draw or no room for it."""
    space = frame(data, view, width, height + 1)  # a frame leaves a line for the legend
    if space is None:
        return []
    canvas = Canvas(space.columns, space.lines, view.blocks)
    for role, curve in zip(ROLES, data.runs, strict=False):
        if curve is not None:
            draw_buckets(canvas, space, role, zip(curve.x, curve.smooth, curve.smooth, curve.smooth, strict=False))
    labels, ends = y_labels(space), _ends(data, space)
    body = [row(*labels[line], *_numbered(canvas.spans(line), ends, line)) for line in range(space.lines)]
    return [*body, x_axis(data, view, space)]


def _placed(view: SeriesView | None, snapshot: RunSnapshot, axis: str, unit: tuple[str, float]) -> SeriesView | None:
    if view is None or not len(view.x):
        return None
    if axis == view.axis:
        return view
    steps = float(snapshot.numbers.epoch_steps or 0) or _ratio(snapshot.numbers.steps, snapshot.numbers.epochs)
    if axis == "epoch" and view.axis == "step" and steps:
        return replace(view, axis=axis, x=[x / steps for x in view.x], attempt_marks=())
    return _over_time(view, *unit) if axis == "time" else None


def _ratio(part: float | None, whole: float | None) -> float:
    return part / whole if part and whole else 0.0


def _time_unit(views: Sequence[SeriesView | None]) -> tuple[str, float]:
    """Hours where the longest run took some, else minutes: one unit for all."""
    spans = [max(known) - min(known) for view in views if view is not None and (known := _known(view.times))]
    return ("h", _HOUR) if max(spans, default=0.0) > 2 * _HOUR else ("min", _MINUTE)


def _known(times: Sequence[float]) -> list[float]:
    return [moment for moment in times if math.isfinite(moment)]


def _over_time(view: SeriesView, unit: str, seconds: float) -> SeriesView | None:
    kept = [(time, value) for time, value in zip(view.times, view.smooth, strict=False) if math.isfinite(time)]
    if not kept:
        return None
    start, values = kept[0][0], [value for _, value in kept]
    x = [(time - start) / seconds for time, _ in kept]
    return replace(view, axis=unit, x=x, low=values, high=values, mean=values, smooth=values, attempt_marks=())


def _ends(data: Overlay, space: Frame) -> dict[int, dict[int, Span]]:
    """Where each curve ends, by line and column: its number. Of those that end in one cell the last is seen."""
    found: dict[int, dict[int, Span]] = {}
    for number, (role, curve) in enumerate(zip(ROLES, data.runs, strict=False), 1):
        ended = next((at for at in _finite_from_the_end(curve)), None) if curve is not None else None
        column = space.column_of(ended[0]) if ended else None
        position = space.y.position(ended[1]) if ended else None
        if column is not None and position is not None and 0 <= position <= 1:
            line = min(space.lines - 1, int((1 - position) * space.lines))
            found.setdefault(line, {})[min(column + 1, space.columns - 1)] = Span(str(number), f"{role} strong")
    return found


def _finite_from_the_end(curve: SeriesView) -> list[tuple[float, float]]:
    pairs = zip(reversed(curve.x), reversed(curve.smooth), strict=False)
    return [(x, value) for x, value in pairs if math.isfinite(value)][:1]


def _numbered(spans: Sequence[Span], ends: dict[int, dict[int, Span]], line: int) -> list[Span]:
    """The spans of a line with single cells replaced."""
    if line not in ends:
        return list(spans)
    cells = [Span(character, span.role) for span in spans for character in span.text]
    for column, span in ends[line].items():
        cells += [Span(" ")] * (column + 1 - len(cells))
        cells[column] = span
    return cells
