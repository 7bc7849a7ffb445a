"""How fast a run progresses, and how long it still takes: steps over time.

Two estimates answer two questions. The *pace* (steps per second of the training phases) leaves out gaps: an evaluation,
a pause or a night's sleep does not make a training slow. The *remaining time* counts the evaluations that will come
again, as a share of working time, but never pauses or sleeps, which will not.
"""

from __future__ import annotations

from typing import NamedTuple

WINDOW = 240
"""Intervals kept: about four minutes of heartbeats."""
FEWEST_INTERVALS = 2
GAP_TIMES = 5.0
"""An interval whose time per step exceeds this many medians contained a pause, an evaluation or a sleep."""
LEAST_GAP_SECONDS = 2.0
OFF_SECONDS = 300.0
"""A gap longer than this, and than 20 usual evaluation gaps, is a pause or a sleep: it predicts nothing."""


class _Interval(NamedTuple):
    seconds: float
    steps: float


class StepRate:
    """How fast one run progresses. Feed samples in order; ask at any time."""

    def __init__(self) -> None:
        self._intervals: list[_Interval] = []  # an empty deque takes 760 bytes: 3 MB of 500 runs that have ended
        self._time: float | None = None
        self._timed = False
        """The newest interval ends at the newest time."""
        self._idle = 0.0
        self.step: float | None = None
        """The newest step."""
        self.advanced_at: float | None = None
        """Time at which the step last changed."""

    def add(self, time: float, step: float, *, idle_seconds: float = 0.0) -> None:
        """Add a sample; of several with the same time (lines that were read in one look) the steps count together.

        Args:
            time: seconds on any one clock.
            step: steps done, fractions allowed (epochs serve as well).
            idle_seconds: how much of the time since the last sample is known to have been a pause or a sleep.
        """
        before_time, before_step = self._time, self.step
        if before_time is not None and time < before_time:
            return
        if before_step is not None and step == before_step:
            self._idle += idle_seconds
            return
        self._time, self.step, self.advanced_at = time, step, time
        idle, self._idle = self._idle + idle_seconds, 0.0
        self._timed = self._timed and time == before_time
        if before_time is None or before_step is None or step < before_step:
            return
        if self._timed:
            last = self._intervals[-1]
            self._intervals[-1] = last._replace(steps=last.steps + step - before_step)
        elif (seconds := time - before_time - idle) > 0:
            self._timed = True
            self._intervals.append(_Interval(seconds, step - before_step))
            del self._intervals[:-WINDOW]

    def cut(self) -> None:
        """A new attempt begins: the time until its first sample is not work, and its device may be another."""
        self._intervals.clear()
        self._timed = False
        self._time = self.step = self.advanced_at = None
        self._idle = 0.0

    @property
    def seconds_per_step(self) -> float | None:
        """Median over the window, None until two intervals are known."""
        if len(self._intervals) < FEWEST_INTERVALS:
            return None
        paces = sorted(item.seconds / item.steps for item in self._intervals)
        return (paces[(len(paces) - 1) // 2] + paces[len(paces) // 2]) / 2

    @property
    def steps_per_second(self) -> float | None:
        """The pace of the training phases now; None until known."""
        usual = self.seconds_per_step
        if usual is None:
            return None
        work = [item for item in self._intervals[-WINDOW // 4 :] if not self._is_gap(item, usual)]
        steps = sum(item.steps for item in work)
        pace = sum(item.seconds for item in work) / steps if steps else usual
        return 1.0 / pace if pace else None

    def remaining_seconds(self, target: float | None) -> float | None:
        """Seconds until ``target`` steps; None until known, 0 when reached."""
        if target is None or self.step is None:
            return None
        left, usual = target - self.step, self.seconds_per_step
        if left <= 0:
            return 0.0
        if usual is None:
            return None
        # Evaluations are spread over the steps between them.
        gaps = [item.seconds for item in self._intervals if self._is_gap(item, usual)]
        longest = max(OFF_SECONDS, 20 * sorted(gaps)[len(gaps) // 2]) if len(gaps) > 1 else OFF_SECONDS
        work = [i for i in self._intervals if not self._is_gap(i, usual) or i.seconds <= longest]
        steps = sum(item.steps for item in work)
        return left * (sum(item.seconds for item in work) / steps) if steps else None

    def _is_gap(self, item: _Interval, usual: float) -> bool:
        return item.seconds > GAP_TIMES * usual * item.steps and item.seconds > LEAST_GAP_SECONDS
