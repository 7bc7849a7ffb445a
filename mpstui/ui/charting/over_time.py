"""The same curves with time as x: minutes or hours since the first point that has a time."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace

from ...core.model.snapshot import SeriesView
from .plot import ChartData

_LONG_SECONDS = 2 * 3600.0


def over_time(data: ChartData) -> ChartData | None:
    """None where no point tells when it was measured. What a later attempt measured again is left out."""
    told = [moment for curve in data.curves for moment in curve.times if math.isfinite(moment)]
    if not told:
        return None
    start, unit = min(told), ("h", 3600.0) if max(told) - min(told) > _LONG_SECONDS else ("min", 60.0)
    return replace(
        data,
        train=_moved(data.train, start, *unit) if data.train is not None else None,
        evaluation=_moved(data.evaluation, start, *unit) if data.evaluation is not None else None,
    )


def _moved(curve: SeriesView, start: float, unit: str, seconds: float) -> SeriesView:
    """Points without a time are left out: they were there before anybody looked."""
    rows = zip(curve.times, curve.low, curve.high, curve.mean, curve.smooth, strict=False)
    kept = [(time, *rest) for time, *rest in rows if math.isfinite(time)]
    times, low, high, mean, smooth = ([list(column) for column in zip(*kept, strict=True)]) if kept else ([],) * 5
    marks = [curve.times[bisect_left(curve.x, mark)] for mark in curve.attempt_marks if mark <= curve.x[-1]]
    return replace(
        curve,
        axis=unit,
        x=[(time - start) / seconds for time in times],
        low=low,
        high=high,
        mean=mean,
        smooth=smooth,
        attempt_marks=[(mark - start) / seconds for mark in marks if math.isfinite(mark)],
        gaps=(),
        superseded=(),
        times=times,
    )
