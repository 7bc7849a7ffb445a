"""What a chart shows: the curves of one metric, taken from a snapshot and put on the axis that is chosen. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.model.snapshot import RunSnapshot, SeriesView
from ...core.present import loss_text
from ...core.series.series import measured

if TYPE_CHECKING:
    from ...core.telemetry.model import Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartData:
    """What is drawn. ``steps_per_epoch`` turns a step axis into epochs, where it is known."""

    name: str
    train: SeriesView | None = None
    evaluation: SeriesView | None = None
    steps_per_epoch: float | None = None
    slow: tuple[Stretch, ...] = ()
    """Steps in which the training was slower than before; told on an axis of steps alone."""
    now: str = ""
    """The newest value of the training curve, as everywhere else; empty: the curve's own."""
    unread: bool = False
    """The history has not been read to its end: no curve does not mean that there is none."""

    @property
    def curves(self) -> tuple[SeriesView, ...]:
        return tuple(view for view in (self.train, self.evaluation) if view is not None and len(view.x))

    @property
    def axis(self) -> str:
        """What x counts: ``step``, ``epoch``, ``time`` ..."""
        return self.curves[0].axis if self.curves else "step"

    def extent(self) -> tuple[float, float] | None:
        """The first and the last x of all curves."""
        positions = [x for view in self.curves for x in (view.x[0], view.x[-1]) if math.isfinite(x)]
        return (min(positions), max(positions)) if positions else None


def metric_names(snapshot: RunSnapshot) -> list[str]:
    """What can be drawn: the loss or losses first; a validation series is drawn over its training series, not alone."""
    series = snapshot.series
    drawn = {(measured(name), view.axis) for name, view in series.items() if not view.evaluation}
    names = [name for name, view in series.items() if not view.evaluation or (measured(name), view.axis) not in drawn]
    return sorted(names, key=lambda name: (name != "loss", "loss" not in name.lower(), name))


def chart_data(snapshot: RunSnapshot, name: str) -> ChartData:
    shown: SeriesView | None = snapshot.series.get(name)
    others = (view for other, view in snapshot.series.items() if view.evaluation and measured(other) == measured(name))
    evaluation = next((view for view in others if shown is None or view.axis == shown.axis), None)
    if shown is not None and shown.evaluation:
        shown, evaluation = None, shown
    unread = snapshot.loading or snapshot.brief
    epoch = steps_per_epoch(snapshot)
    known = snapshot.numbers.loss is not None or not snapshot.numbers.loss_is_finite
    now = loss_text(snapshot.numbers) if name == "loss" and known else ""
    return ChartData(name=name, train=shown, evaluation=evaluation, steps_per_epoch=epoch, now=now, unread=unread)


def steps_per_epoch(snapshot: RunSnapshot) -> float | None:
    """As reported, else as planned."""
    known = snapshot.numbers
    if known.epoch_steps:
        return float(known.epoch_steps)
    return known.steps / known.epochs if known.steps and known.epochs else None


def over_time(data: ChartData) -> ChartData | None:
    """The same curves over the time since the first point; None where no point tells when it was measured."""
    times = [moment for curve in data.curves for moment in known_times(curve)]
    if not times:
        return None
    start, unit = min(times), time_unit(max(times) - min(times))
    train, evaluation = data.train, data.evaluation
    return replace(
        data,
        train=moved_to_time(train, start, unit) if train is not None else None,
        evaluation=moved_to_time(evaluation, start, unit) if evaluation is not None else None,
    )


def known_times(curve: SeriesView) -> list[float]:
    """When its points were measured, as far as that is known."""
    return [moment for moment in curve.times if math.isfinite(moment)]


def time_unit(longest_seconds: float) -> tuple[str, float]:
    """Hours where something took some, else minutes."""
    return ("h", 3600.0) if longest_seconds > 2 * 3600 else ("min", 60.0)


def moved_to_time(curve: SeriesView, start: float, unit: tuple[str, float]) -> SeriesView:
    """Without the points that have no time (they were there before anybody looked) and those measured again later."""
    rows = zip(curve.times, curve.low, curve.high, curve.mean, curve.smooth, curve.values, strict=False)
    kept = [(time, *rest) for time, *rest in rows if math.isfinite(time)]
    times, low, high, mean, smooth, values = [list(column) for column in zip(*kept, strict=True)] if kept else ([],) * 6
    marks = [curve.times[bisect_left(curve.x, mark)] for mark in curve.attempt_marks if mark <= curve.x[-1]]
    return replace(
        curve,
        axis=unit[0],
        x=[(time - start) / unit[1] for time in times],
        low=low,
        high=high,
        mean=mean,
        smooth=smooth,
        attempt_marks=[(mark - start) / unit[1] for mark in marks if math.isfinite(mark)],
        gaps=(),
        superseded=(),
        times=times,
        values=values,
    )
