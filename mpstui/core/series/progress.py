"""Rate and remaining time from (time, step) samples, through pauses, evaluations, sleeps and resumes.

Two estimates answer two questions. The *pace* (steps per second of the training phases) leaves out gaps: an evaluation,
a pause or a night's sleep is no slowness. The *remaining time* counts the evaluations that will come again, as a share
of working time, but never pauses or sleeps, which will not.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median

WINDOW = 240
"""Intervals kept: about four minutes of heartbeats."""
FEWEST_INTERVALS = 2
GAP_TIMES = 5.0
"""An interval whose time per step is this many medians long held a pause, an evaluation or a sleep."""
LEAST_GAP_SECONDS = 2.0
OFF_SECONDS = 300.0
"""A gap longer than this, and than 20 usual evaluation gaps, is a pause or a sleep: it does not foretell the future."""


@dataclass(frozen=True, slots=True)
class _Interval:
    seconds: float
    steps: float

    @property
    def seconds_per_step(self) -> float:
        return self.seconds / self.steps


class Progress:
    """How fast one run goes. Feed samples in order; ask at any time."""

    def __init__(self) -> None:
        self._intervals: deque[_Interval] = deque(maxlen=WINDOW)
        self._time: float | None = None
        self._step: float | None = None
        self._advanced: float | None = None
        self._idle = 0.0

    @property
    def step(self) -> float | None:
        """The newest step."""
        return self._step

    @property
    def advanced_at(self) -> float | None:
        """Time at which the step last changed."""
        return self._advanced

    def add(self, time: float, step: float, *, idle_seconds: float = 0.0) -> None:
        """One sample.

        Args:
            time: seconds on any one clock.
            step: steps done, fractions allowed (epochs serve as well).
            idle_seconds: of the time since the last sample, how much is known to have been a pause or a sleep.
        """
        before_time, before_step = self._time, self._step
        if before_time is not None and time < before_time:
            return
        if before_step is not None and step == before_step:
            self._idle += idle_seconds
            return
        self._time, self._step, self._advanced = time, step, time
        idle, self._idle = self._idle + idle_seconds, 0.0
        if before_time is None or before_step is None or step < before_step:
            return
        seconds = time - before_time - idle
        if seconds > 0:
            self._intervals.append(_Interval(seconds, step - before_step))

    def cut(self) -> None:
        """A new attempt begins: time until its first sample is no work, and its device may be another."""
        self._intervals.clear()
        self._time = self._step = self._advanced = None
        self._idle = 0.0

    @property
    def seconds_per_step(self) -> float | None:
        """Median over the window, None until two intervals are known."""
        if len(self._intervals) < FEWEST_INTERVALS:
            return None
        return median(item.seconds_per_step for item in self._intervals)

    @property
    def steps_per_second(self) -> float | None:
        """The pace of the training phases now; None until known."""
        usual = self._pace(list(self._intervals)[-WINDOW // 4 :])
        return 1.0 / usual if usual else None

    def remaining_seconds(self, target: float | None) -> float | None:
        """Seconds until ``target`` steps; None until known, 0 when reached."""
        if target is None or self._step is None:
            return None
        left = target - self._step
        if left <= 0:
            return 0.0
        pace = self._pace_with_evaluations()
        return left * pace if pace is not None else None

    def _gap_limit(self) -> float | None:
        usual = self.seconds_per_step
        return None if usual is None else GAP_TIMES * usual

    def _is_gap(self, item: _Interval, limit: float) -> bool:
        return item.seconds_per_step > limit and item.seconds > LEAST_GAP_SECONDS

    def _pace(self, intervals: list[_Interval]) -> float | None:
        limit = self._gap_limit()
        if limit is None:
            return None
        work = [item for item in intervals if not self._is_gap(item, limit)]
        steps = sum(item.steps for item in work)
        return sum(item.seconds for item in work) / steps if steps else self.seconds_per_step

    def _pace_with_evaluations(self) -> float | None:
        """Seconds per step, evaluations spread over the steps between them."""
        limit = self._gap_limit()
        if limit is None:
            return None
        gaps = [item.seconds for item in self._intervals if self._is_gap(item, limit)]
        longest = max(OFF_SECONDS, 20 * median(gaps)) if len(gaps) > 1 else OFF_SECONDS
        work = [i for i in self._intervals if not self._is_gap(i, limit) or i.seconds <= longest]
        steps = sum(item.steps for item in work)
        return sum(item.seconds for item in work) / steps if steps else None
