"""Warnings about a training that is still running, from its curves, pace and memory.

The pace is the best available sign of throttling: macOS has reported a nominal thermal level and full clock while the
GPU ran at a third of it (feedback-assistant/reports#830), but steps per second reveal it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ..model.snapshot import Health, RunSnapshot, SeriesView, State
from ..present import size
from ..telemetry.headroom import LIMIT_WORDS, Headroom
from ..telemetry.model import Stretch

Points = Sequence[tuple[float, float]]
"""(step, value) pairs, in ascending order of step."""

SAMPLE_SECONDS = 5.0
PLATEAU_POINTS = 200  # fewer are too early to judge; at least half as many must be constant
PLATEAU_RANGE = 0.001  # of the loss: in any network that responds to its input, batches alone differ by more
GRADIENT_POINTS = 50
GRADIENT_FACTOR = 20.0  # clipping and warm-up change a norm by a small factor, not by twenty
MEMORY_HORIZON_SECONDS = 3600.0
# The first steps compile and fill caches; the median of a block hides a slow checkpoint or validation.
WARM_UP_POINTS = 3
BLOCK_POINTS = 10
SLOW_RATIO = 0.8
_LEAST_RATIO = 0.01
"""Below this, ``under 0.01x`` is shown: the digits would mean nothing."""
# A step that takes this many times the median contained a pause, system sleep or an evaluation: not a slowdown.
GAP_TIMES = 8.0
MOST_SAMPLES = 720
_GRADIENT_NAMES = ("grad_norm", "gradient_norm", "grad/norm", "train/grad_norm", "gnorm")


@dataclass(frozen=True, slots=True)
class LiveWarning:
    """One thing that is going wrong right now."""

    id: str
    sentence: str


class LiveWatch:
    """Judges the snapshots of one run at a time and remembers its pace."""

    def __init__(self) -> None:
        self._pace = RunPace()
        self._of: tuple[str, int] | None = None
        self._judged = -math.inf
        self._of_curves: dict[str, LiveWarning] = {}

    @property
    def slow_stretches(self) -> tuple[Stretch, ...]:
        """Steps in which it was slower, from the newest snapshot's curve."""
        return self._pace.slow

    def poll(self, snapshot: RunSnapshot, headroom: Headroom | None = None) -> tuple[LiveWarning, ...]:
        """Return what is going wrong right now, most serious first; nothing for a run that has ended or is paused.

        Args:
            headroom: what telemetry knows about its memory.
        """
        slow = slow_words(self._pace.poll(snapshot), snapshot.seen)
        if not snapshot.state.active or snapshot.is_frozen:
            return ()
        beat = snapshot.numbers.beat
        moment = beat.time if beat else snapshot.seen
        if self._of != (snapshot.run, snapshot.attempt) or moment - self._judged >= SAMPLE_SECONDS:
            self._of, self._judged = (snapshot.run, snapshot.attempt), moment
            self._of_curves = {warning.id: warning for warning in curve_warnings(snapshot)}
        gone = f"{snapshot.name} is gone (deleted, or moved away); what is shown was read before."
        exception = (snapshot.log_exception or "").rstrip(".")
        found = (
            LiveWarning("gone", gone) if snapshot.gone else None,
            LiveWarning("log_exception", f"The log ends with {exception}.") if exception else None,
            self._of_curves.get("nan_loss"),
            memory_running_out(headroom),
            self._of_curves.get("exploding_gradient"),
            LiveWarning("slowing", slow) if slow else None,
            self._of_curves.get("plateau"),
        )
        return tuple(warning for warning in found if warning)


def curve_warnings(snapshot: RunSnapshot) -> tuple[LiveWarning, ...]:
    """Return warnings about the loss and the gradient norm of a snapshot, most serious first."""
    loss, numbers = snapshot.train_loss, snapshot.numbers
    values = list(_points(loss))
    extremes = list(zip(loss.low, loss.high, strict=False)) if loss is not None and values else []
    unit = loss.axis if loss is not None else "step"
    if not numbers.loss_is_finite and numbers.step is not None and unit == "step":
        values.append((float(numbers.step), math.nan))
        extremes.append((math.nan, math.nan))
    norm = next((snapshot.series[name] for name in _GRADIENT_NAMES if name in snapshot.series), None)
    found = nonfinite(values, unit), exploding_gradient(_points(norm)), plateau(values, extremes, unit)
    return tuple(warning for warning in found if warning)


def _points(view: SeriesView | None) -> Points:
    """Return the columns of a curve as points; none if x is not a count such as steps, since warnings quote it."""
    counts = view is not None and view.axis in ("step", "sample", "point")
    return tuple(zip(view.x, view.mean, strict=False)) if view is not None and counts else ()


def memory_running_out(headroom: Headroom | None) -> LiveWarning | None:
    """Warn if memory, at its current growth, will reach a limit within the hour."""
    if headroom is None or headroom.seconds_to_limit is None or headroom.soonest is None:
        return None
    seconds, growth = headroom.seconds_to_limit, headroom.growth_bytes_per_second or 0.0
    if seconds > MEMORY_HORIZON_SECONDS:
        return None
    grows = f"{LIMIT_WORDS[headroom.soonest]} grows by {size(growth * 60)} a minute"
    return LiveWarning("memory_growing", f"{grows} and reaches its limit in {seconds / 60:.0f} minutes.")


def nonfinite(loss: Points, unit: str = "step") -> LiveWarning | None:
    """Warn if the newest loss is NaN or infinite, naming the x since which it has been without a break."""
    since = None
    for step, value in reversed(loss):
        if math.isfinite(value):
            break
        since = step
    if since is None:
        return None
    return LiveWarning("nan_loss", f"The loss is NaN or infinite since {unit} {since:,.0f}.")


def plateau(loss: Points, extremes: Points = (), unit: str = "step") -> LiveWarning | None:
    """Warn if the loss is constant: dead units, a learning rate of zero, a model that only predicts class frequencies.

    Does not warn about a loss that has converged or stopped falling but is still noisy, nor about one printed with too
    few digits to tell.

    Args:
        extremes: lowest and highest value behind each point of ``loss``, if these are means of several.
        unit: what x counts.
    """
    ranges = extremes if len(extremes) == len(loss) else [(value, value) for _, value in loss]
    known = [(x, *ends) for (x, value), ends in zip(loss, ranges, strict=True) if math.isfinite(value)]
    if len(known) < PLATEAU_POINTS:
        return None
    value = next(value for _, value in reversed(loss) if math.isfinite(value))
    allowed = PLATEAU_RANGE * abs(value)
    low, high, start = math.inf, -math.inf, len(known)
    while start and max(high, known[start - 1][2]) - min(low, known[start - 1][1]) <= allowed:
        start -= 1
        low, high = min(low, known[start][1]), max(high, known[start][2])
    # The resolution at which it was printed: the smallest difference between two earlier values.
    before = sorted({value for _, *ends in known[:start] for value in ends})
    resolution = min((after - earlier for earlier, after in pairwise(before)), default=0.0)
    if len(known) - start < PLATEAU_POINTS // 2 or resolution > allowed:
        return None
    share = f"{100 * PLATEAU_RANGE:g} %"
    since = known[start][0]
    return LiveWarning("plateau", f"The loss has stayed within {share} of {value:.4g} since {unit} {since:,.0f}.")


def exploding_gradient(norm: Points) -> LiveWarning | None:
    """Warn if the newest gradient norm is not finite, or many times the median of the norms before it."""
    if not norm:
        return None
    x, newest = norm[-1]
    if not math.isfinite(newest):
        return LiveWarning("exploding_gradient", f"The gradient norm is NaN or infinite at step {x:,.0f}.")
    before = [value for _, value in norm[-GRADIENT_POINTS - 1 : -1] if math.isfinite(value)]
    if len(before) < GRADIENT_POINTS // 2 or newest <= GRADIENT_FACTOR * median(before):
        return None
    return LiveWarning("exploding_gradient", f"The gradient norm is {newest:.3g}, usually {median(before):.3g}.")


@dataclass(frozen=True, slots=True)
class Pace:
    """The current speed and the best speed the run has sustained, both in steps per second.

    ``slow_since`` is the time of the first point of the current slow stretch; None if it is not slow.
    """

    current: float
    sustained: float
    ratio: float
    slow_since: float | None

    @property
    def is_slow(self) -> bool:
        """True if the speed is below ``SLOW_RATIO`` of the best sustained speed."""
        return self.slow_since is not None


class RunPace:
    """Judges whether a run trains slower than before, by its curve and by its speed while its screen is open."""

    def __init__(self) -> None:
        self._attempt: int | None = None
        self._points: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)
        self._live: Pace | None = None
        self._curve: SeriesView | None = None
        self._curve_read = -math.inf
        self._past: Pace | None = None
        self.slow: tuple[Stretch, ...] = ()
        """Steps in which it was slower, from the newest snapshot's curve."""

    def poll(self, snapshot: RunSnapshot) -> Pace | None:
        """Return the current pace; None if it is not training, or until there is enough to compare."""
        if snapshot.train_loss is not self._curve and abs(snapshot.seen - self._curve_read) >= SAMPLE_SECONDS:
            self._curve_read = snapshot.seen
            self._read_curve(snapshot.train_loss)
        if snapshot.attempt != self._attempt:
            self._attempt, self._live = snapshot.attempt, None
            self._points.clear()
        if snapshot.state is not State.RUNNING or snapshot.health is not Health.TRAINING:
            return None
        numbers = snapshot.numbers
        moment = numbers.beat.time if numbers.beat else snapshot.seen
        is_due = not self._points or moment - self._points[-1][0] >= SAMPLE_SECONDS
        if numbers.steps_per_second is not None and is_due:
            self._points.append((moment, numbers.steps_per_second))
            self._live = judge_pace(tuple(self._points))
        return present_pace(self._live, self._past)

    def _read_curve(self, curve: SeriesView | None) -> None:
        self._curve = curve
        known = curve is not None and curve.axis == "step" and curve.complete
        pieces = speeds(curve.x, curve.times) if known and curve is not None else []
        self.slow = slow_stretches(pieces)
        # Do not compare with earlier attempts: they may have run on another device.
        since = max(curve.attempt_marks, default=-math.inf) if curve is not None else 0.0
        self._past = judge_pace([(time, speed) for step, time, speed in pieces if step > since])


def judge_pace(points: Sequence[tuple[float, float]]) -> Pace | None:
    """Judge the pace from ``points`` (time, steps per second) of one phase, in order of time.

    The reference is the best median of any block of ten points: a median over all points would sink during a long
    slowdown and make it look normal. None until there are two blocks to compare.
    """
    steady = points[WARM_UP_POINTS:]
    if len(steady) < 2 * BLOCK_POINTS:
        return None
    # Whole blocks, aligned to the newest point, oldest first.
    ends = range(len(steady), BLOCK_POINTS - 1, -BLOCK_POINTS)
    blocks = [steady[end - BLOCK_POINTS : end] for end in ends][::-1]
    medians = [median(speed for _, speed in block) for block in blocks]
    current, sustained = medians[-1], max(medians)
    if sustained <= 0:
        return None
    slow = [value < SLOW_RATIO * sustained for value in medians]
    first = len(slow) - next((age for age, is_slow in enumerate(reversed(slow)) if not is_slow), len(slow))
    return Pace(current, sustained, current / sustained, blocks[first][0][0] if slow[-1] else None)


def speeds(steps: Sequence[float], times: Sequence[float]) -> list[tuple[float, float, float]]:
    """Return (step, time, steps per second) between neighbouring points of a curve, without gaps and backward steps."""
    pieces = [
        (step, time, (time - before_time) / (step - before_step))
        for before_step, before_time, step, time in zip(steps, times, steps[1:], times[1:], strict=False)
        if step > before_step and time > before_time
    ]
    if not pieces:
        return []
    longest = GAP_TIMES * median(seconds for _, _, seconds in pieces)
    return [(step, time, 1 / seconds) for step, time, seconds in pieces if 0 < seconds <= longest]


def slow_stretches(pieces: Sequence[tuple[float, float, float]]) -> tuple[Stretch, ...]:
    """Return the stretches of steps where ``pieces`` (see :func:`speeds`) were slower than the best block before them.

    Only earlier blocks count: speeding up later does not make the beginning slow.
    """
    steady = pieces[WARM_UP_POINTS:]
    best, found = 0.0, list[Stretch]()
    for start in range(0, len(steady) - BLOCK_POINTS + 1, BLOCK_POINTS):
        block = steady[start : start + BLOCK_POINTS]
        speed = median(piece[2] for piece in block)
        if start and speed < SLOW_RATIO * best:
            first = steady[start - 1][0]
            if found and found[-1].last >= first:
                first = found.pop().first
            found.append(Stretch(first, block[-1][0]))
        best = max(best, speed)
    return tuple(found)


def present_pace(live: Pace | None, past: Pace | None) -> Pace | None:
    """Choose between the pace seen while the run's screen was open and the pace of its curve.

    The curve reaches back to the beginning but is coarse; the live pace shows a recovery at once.
    """
    if past is None or not past.is_slow:
        return live
    if live is None:
        return past
    if live.is_slow:
        return max(live, past, key=lambda found: -(found.slow_since or 0.0))
    return live if live.current >= SLOW_RATIO * past.sustained else past


def slow_words(found: Pace | None, now: float) -> str:
    """Return ``0.7x of its median speed for 4 min``, ``under 0.01x ...``; empty if it is not slow."""
    if found is None or found.slow_since is None:
        return ""
    minutes = max(1, round((now - found.slow_since) / 60))
    lasted = f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
    ratio = f"{found.ratio:.2g}x" if found.ratio >= _LEAST_RATIO else f"under {_LEAST_RATIO}x"
    return f"{ratio} of its median speed for {lasted}"
