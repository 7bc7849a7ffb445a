"""Warnings about a training that still runs, told from its series. Pure functions: series and limits are passed in.

A series is a sequence of ``(x, y)`` pairs in ascending ``x``; thresholds are named below with their reason.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ..model.snapshot import RunSnapshot, SeriesView
from ..present.format import size

Points = Sequence[tuple[float, float]]

PLATEAU_POINTS = 200  # fewer are a beginning; half of them must be constant
PLATEAU_RANGE = 0.001  # of the loss: batches alone differ by more, in every network that answers to its input
GRADIENT_POINTS = 50
GRADIENT_FACTOR = 20.0  # clipping and warm-up move a norm by a few times, not by twenty
MEMORY_POINTS = 60
MEMORY_HORIZON_SECONDS = 3600.0
MEMORY_LEAST_GAIN = 0.02  # of the limit, within the window: caches breathe by less
SLOW_POINTS = 20  # newest steps, against the median of all before them
SLOW_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class LiveWarning:
    """Something that goes wrong right now. ``since`` is the ``x`` (step or time) where it was first seen."""

    id: str
    sentence: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSeries:
    """The series of one run; ``loss`` and ``gradient_norm`` over steps (``loss_extremes``: lowest and
    highest value behind each point of ``loss``, in place of a step), ``memory_bytes`` and ``step_seconds`` over
    Unix time. ``memory_limit_bytes`` is where the device or the system ends the training; ``None`` is unknown."""

    loss: Points = ()
    loss_extremes: Points = ()
    gradient_norm: Points = ()
    memory_bytes: Points = ()
    memory_limit_bytes: int | None = None
    step_seconds: Points = ()


def live_warnings(series: LiveSeries) -> tuple[LiveWarning, ...]:
    """Return every warning that holds, the gravest first."""
    found = (
        nonfinite(series.loss),
        memory_running_out(series.memory_bytes, series.memory_limit_bytes),
        exploding_gradient(series.gradient_norm),
        slowing(series.step_seconds),
        plateau(series.loss, series.loss_extremes),
    )
    return tuple(warning for warning in found if warning)


def nonfinite(loss: Points) -> LiveWarning | None:
    """Warn when the newest loss is NaN or infinite, since the first of this unbroken stretch."""
    since = None
    for x, value in reversed(loss):
        if math.isfinite(value):
            break
        since = x
    if since is None:
        return None
    return LiveWarning("nan_loss", f"The loss is NaN or infinite since step {since:,.0f}.", since)


def plateau(loss: Points, extremes: Points = (), *, points: int = PLATEAU_POINTS) -> LiveWarning | None:
    """Warn when the loss is constant: dead units, a rate of zero, a model that answers with the share of each class.

    A loss that has converged keeps its noise, and one that is printed with two digits may only look constant: of both
    nothing is said. Of a loss that does not fall, but is as noisy as ever, nothing is known either.

    Args:
        extremes: lowest and highest value behind each point of ``loss``, where these are means of many.
    """
    ranges = extremes if len(extremes) == len(loss) else [(value, value) for _, value in loss]
    known = [(x, *ends) for (x, value), ends in zip(loss, ranges, strict=True) if math.isfinite(value)]
    if len(known) < points:
        return None
    value = next(value for _, value in reversed(loss) if math.isfinite(value))
    allowed = PLATEAU_RANGE * abs(value)
    start = _start_of_constant(known, allowed)
    if len(known) - start < points // 2 or _resolution(known[:start]) > allowed:
        return None
    since = known[start][0]
    share = f"{100 * PLATEAU_RANGE:g} %"
    return LiveWarning("plateau", f"The loss has stayed within {share} of {value:.4g} since step {since:,.0f}.", since)


def _start_of_constant(known: Sequence[tuple[float, float, float]], allowed: float) -> int:
    """The index from which on lowest and highest value are at most ``allowed`` apart."""
    low, high = math.inf, -math.inf
    for index in range(len(known) - 1, -1, -1):
        low, high = min(low, known[index][1]), max(high, known[index][2])
        if high - low > allowed:
            return index + 1
    return 0


def _resolution(known: Sequence[tuple[float, float, float]]) -> float:
    """The smallest difference between two values: with how many digits they were printed. 0.0 where none differ."""
    values = sorted({value for _, *ends in known for value in ends})
    return min((after - before for before, after in pairwise(values)), default=0.0)


def exploding_gradient(norm: Points, *, factor: float = GRADIENT_FACTOR) -> LiveWarning | None:
    """Warn when the newest gradient norm is infinite or ``factor`` times the median of those before it."""
    if not norm:
        return None
    x, newest = norm[-1]
    if not math.isfinite(newest):
        return LiveWarning("exploding_gradient", f"The gradient norm is NaN or infinite at step {x:,.0f}.", x)
    before = [value for _, value in norm[-GRADIENT_POINTS - 1 : -1] if math.isfinite(value)]
    if len(before) < GRADIENT_POINTS // 2 or newest <= factor * median(before):
        return None
    usual = median(before)
    return LiveWarning("exploding_gradient", f"The gradient norm is {newest:.3g}, usually {usual:.3g}.", x)


def memory_running_out(
    memory: Points, limit_bytes: int | None, *, horizon_seconds: float = MEMORY_HORIZON_SECONDS
) -> LiveWarning | None:
    """Warn when memory, growing as it does, reaches its limit within ``horizon_seconds``."""
    recent = memory[-MEMORY_POINTS:]
    if not limit_bytes or len(recent) < MEMORY_POINTS // 3:
        return None
    slope = slope_per_second(recent)
    gained = slope * (recent[-1][0] - recent[0][0])
    if slope <= 0 or gained < MEMORY_LEAST_GAIN * limit_bytes:
        return None
    seconds = max(0.0, (limit_bytes - recent[-1][1]) / slope)
    if seconds > horizon_seconds:
        return None
    growth = f"Memory grows by {size(slope * 60)} a minute"
    return LiveWarning("memory_growing", f"{growth} and reaches its limit in {seconds / 60:.0f} minutes.", recent[0][0])


def slope_per_second(points: Points) -> float:
    """Return the median slope between all pairs of points (Theil and Sen): single peaks do not bend it.

    Takes time in the square of the number of points; 0.0 for fewer than two.
    """
    slopes = [
        (later - earlier) / (end - start)
        for index, (start, earlier) in enumerate(points)
        for end, later in points[index + 1 :]
        if end > start
    ]
    return median(slopes) if slopes else 0.0


def slowing(step_seconds: Points, *, factor: float = SLOW_FACTOR) -> LiveWarning | None:
    """Warn when the newest steps take ``factor`` times what steps took before (thermal limits, swapping)."""
    if len(step_seconds) < 3 * SLOW_POINTS:
        return None
    newest = median(seconds for _, seconds in step_seconds[-SLOW_POINTS:])
    usual = median(seconds for _, seconds in step_seconds[:-SLOW_POINTS])
    if usual <= 0 or newest <= factor * usual:
        return None
    since = step_seconds[-SLOW_POINTS][0]
    return LiveWarning("slowing", f"Steps take {newest:.3g} s, {newest / usual:.1f} times as long as before.", since)


SAMPLE_SECONDS = 5.0
"""Memory and pace are noted this often: sixty notes are five minutes."""
MOST_SAMPLES = 360
_GRADIENT_NAMES = ("grad_norm", "gradient_norm", "grad/norm", "train/grad_norm", "gnorm")


class LiveWatch:
    """Remembers what snapshots do not: memory and step times of the last half hour. For one run at a time."""

    def __init__(self) -> None:
        self._of: tuple[str, int] | None = None
        self._memory: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)
        self._pace: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)
        self._limit: int | None = None
        self._noted = -math.inf
        self._found: tuple[LiveWarning, ...] = ()

    def look(self, snapshot: RunSnapshot) -> tuple[LiveWarning, ...]:
        """What goes wrong right now, the gravest first; nothing for a run that has ended or is paused."""
        if not snapshot.state.active or snapshot.is_frozen:
            return ()
        if self._of != (snapshot.run, snapshot.attempt):
            self._forget(snapshot)
        moment = snapshot.numbers.beat.time if snapshot.numbers.beat else snapshot.seen
        if moment - self._noted >= SAMPLE_SECONDS:
            self._noted = moment
            self._note(snapshot, moment)
            self._found = live_warnings(self._series(snapshot))
        return (*_gone(snapshot), *_log_end(snapshot), *self._found)

    def _forget(self, snapshot: RunSnapshot) -> None:
        self._of = snapshot.run, snapshot.attempt
        self._memory.clear()
        self._pace.clear()
        self._noted, self._found = -math.inf, ()

    def _note(self, snapshot: RunSnapshot, moment: float) -> None:
        memory = snapshot.numbers.memory
        used = memory.driver if memory.driver is not None else memory.allocated
        self._limit = memory.limit
        if used is not None:
            self._memory.append((moment, float(used)))
        if snapshot.numbers.steps_per_second:
            self._pace.append((moment, 1 / snapshot.numbers.steps_per_second))

    def _series(self, snapshot: RunSnapshot) -> LiveSeries:
        loss = list(_points(snapshot.train_loss))
        extremes = list(_extremes(snapshot.train_loss))
        if not snapshot.numbers.loss_is_finite and snapshot.numbers.step is not None:
            loss.append((float(snapshot.numbers.step), math.nan))
            extremes.append((math.nan, math.nan))
        return LiveSeries(
            loss=loss,
            loss_extremes=extremes,
            gradient_norm=_points(_gradient_norm(snapshot.series)),
            memory_bytes=tuple(self._memory),
            memory_limit_bytes=self._limit,
            step_seconds=tuple(self._pace),
        )


def _gone(snapshot: RunSnapshot) -> tuple[LiveWarning, ...]:
    if not snapshot.gone:
        return ()
    sentence = f"{snapshot.name} is gone (deleted, or moved away); what is shown was read before."
    return (LiveWarning("gone", sentence, snapshot.updated or snapshot.seen),)


def _log_end(snapshot: RunSnapshot) -> tuple[LiveWarning, ...]:
    exception = snapshot.log_exception
    if exception is None:
        return ()
    sentence = f"The log ends with {exception.rstrip('.')}."
    return (LiveWarning("log_exception", sentence, snapshot.updated or snapshot.seen),)


def _gradient_norm(series: Mapping[str, SeriesView]) -> SeriesView | None:
    return next((series[name] for name in _GRADIENT_NAMES if name in series), None)


def _extremes(view: SeriesView | None) -> Points:
    return tuple(zip(view.low, view.high, strict=False)) if view is not None and view.axis == "step" else ()


def _points(view: SeriesView | None) -> Points:
    """The columns of a curve as points; only over steps, since the warnings name one."""
    return tuple(zip(view.x, view.mean, strict=False)) if view is not None and view.axis == "step" else ()
