"""Notices that a training became slower than it was: the best sign of throttling that there is.

macOS has reported a nominal thermal level and full clock while the GPU ran at a third of it
(feedback-assistant/reports#830), but steps per second cannot hide that.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..model.snapshot import Health, RunSnapshot, SeriesView, State

# A first step compiles and fills caches; a block of medians hides a slow checkpoint or validation.
WARM_UP_POINTS = 3
BLOCK_POINTS = 10
SLOW_RATIO = 0.8
# A step that takes this many times the usual held a pause, a night's sleep or an evaluation: that is no slowness.
GAP_TIMES = 8.0
SAMPLE_SECONDS = 5.0
MOST_SAMPLES = 720


@dataclass(frozen=True, slots=True)
class Pace:
    """The present speed against the run's own best sustained one, both in steps per second.

    ``slow_since`` is the time of the first point of the present slow stretch, None while it is not slow.
    """

    current: float
    sustained: float
    ratio: float
    slow_since: float | None

    @property
    def is_slow(self) -> bool:
        """Whether the speed fell below four fifths of what was sustained before."""
        return self.slow_since is not None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps ``first`` to ``last``, in which a training went slower than it had gone before (or was throttled)."""

    first: float
    last: float


class RunPace:
    """Whether a run trains slower than it did, from its curve and from its speed while its screen is open."""

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
        """The pace now; None while it is not training, and before there is enough to compare."""
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
        # What a resumed attempt is compared with may have run on another device.
        since = max(curve.attempt_marks, default=-math.inf) if curve is not None else 0.0
        self._past = judge_pace([(time, speed) for step, time, speed in pieces if step > since])


def judge_pace(points: Sequence[tuple[float, float]]) -> Pace | None:
    """Judge steps per second over ``points`` (time, steps per second) of one phase, in order of time.

    The yardstick is the best median of any block of ten points: a median over all would sink with a long slowdown and
    call it normal. None before there are two blocks to compare.
    """
    steady = points[WARM_UP_POINTS:]
    if len(steady) < 2 * BLOCK_POINTS:
        return None
    # Whole blocks counted from the newest point, the oldest first.
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
    """(step, time, steps per second) between neighbouring points of a curve; gaps and steps back are left out."""
    pieces = [
        (step, time, (time - before_time) / (step - before_step))
        for before_step, before_time, step, time in zip(steps, times, steps[1:], times[1:], strict=False)
        if step > before_step and time > before_time
    ]
    if not pieces:
        return []
    longest = GAP_TIMES * median(seconds for _, _, seconds in pieces)
    return [(step, time, 1 / seconds) for step, time, seconds in pieces if seconds <= longest]


def slow_stretches(pieces: Sequence[tuple[float, float, float]]) -> tuple[Stretch, ...]:
    """Where ``pieces`` (see :func:`speeds`) were slower than the best block before them, as stretches of steps.

    The yardstick only looks back: a model that grows faster later makes nothing before it slow.
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
    """Which of two to believe: the speed seen while the run's screen was open, or that of its own curve.

    The curve reaches back to the beginning but is coarse; the live speed shows a recovery at once.
    """
    if past is None or not past.is_slow:
        return live
    if live is None:
        return past
    if live.is_slow:
        return max(live, past, key=lambda found: -(found.slow_since or 0.0))
    return live if live.current >= SLOW_RATIO * past.sustained else past


def slow_words(found: Pace | None, now: float) -> str:
    """``0.7x of its median speed for 4 min``; empty while it is not slow."""
    if found is None or found.slow_since is None:
        return ""
    minutes = max(1, round((now - found.slow_since) / 60))
    lasted = f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
    return f"{found.ratio:.2g}x of its median speed for {lasted}"
