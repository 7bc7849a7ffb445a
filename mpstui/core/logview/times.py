"""When a line of a log was printed: its own timestamp, else the time at which its step was measured.

The arrival of lines is not recorded. In a log without timestamps, a line without a step, or with one that was not
measured, therefore has no time.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import NamedTuple

from ..formats.notices import strip_prefix
from ..model.snapshot import SeriesView
from .document import LogDocument
from .line import LogLine
from .steps import LogSteps

_OWN = re.compile(
    r"(?:(\d{4})[-/.](\d\d)[-/.](\d\d)[T ,_-]{1,2})?\b(\d{1,2}:\d\d:\d\d)(?![:\d])|\[(\d{10})(?:\.\d{1,9})?[\]@]"
)
_IN_RECORD = re.compile(
    r'"(?:_?timestamp|ts|time|asctime|datetime)": ?"?(?:(\d{4})-(\d\d)-(\d\d)[T ](\d\d:\d\d:\d\d)|(\d{10})\b)'
)
_LOOKED_AT = 40
"""Lines at each end of a log that are searched for timestamps."""
_NEAR_SECONDS = 60.0
"""Times are interpolated, and shown to the minute, only between points at most this far apart."""


class Stamp(NamedTuple):
    """When a line was printed."""

    clock: str
    """``10:35:12``, or ``~10:35`` if it was interpolated."""
    day: str = ""
    """``2026-11-23``; empty if unknown."""


class LogTimes:
    """Finds when lines of one log were printed, by timestamps or by steps; never both, as their clocks may differ."""

    def __init__(self, document: LogDocument, steps: LogSteps) -> None:
        # Another attempt may have measured the same steps again; its times say nothing about these lines.
        began, ended = document.span
        self._began, self._ended = began if began is not None else -inf, ended if ended is not None else inf
        self._steps = steps
        self._own = any(map(own_stamp, [*document.window(0, _LOOKED_AT), *document.tail(_LOOKED_AT)]))

    def of(self, line: LogLine, series: Iterable[SeriesView]) -> Stamp | None:
        """Return when a line was printed; None if unknown.

        Args:
            series: the metrics of the log's run, with the times at which its steps were measured.
        """
        if self._own:
            return own_stamp(line)
        step = self._steps.told(line)
        if step is None:
            return None
        moment, exact = time_at(series, step)
        if moment is None or not self._began <= moment <= self._ended:
            return None
        local = time.localtime(moment)
        return Stamp(time.strftime("%H:%M:%S" if exact else "~%H:%M", local), time.strftime("%Y-%m-%d", local))

    def untold(self, lines: Iterable[LogLine], series: Sequence[SeriesView]) -> tuple[int, int] | None:
        """Return the first and last step in ``lines``; None if all of them were measured at a known time."""
        steps = [] if self._own else [step for line in lines if (step := self._steps.told(line)) is not None]
        missing = any(not time_at(series, step)[1] for step in steps)
        return (min(steps), max(steps)) if missing else None


def own_stamp(line: LogLine) -> Stamp | None:
    """Return the timestamp in the prefix of a line, or in its JSON record, as it was written."""
    text = line.text.rstrip()
    before = "" if text.startswith("{") else text[: len(text) - len(strip_prefix(text))]
    found = _OWN.search(before) or (None if before else _IN_RECORD.search(text))
    if found is None:
        return None
    *date, clock, seconds = found.groups()
    if seconds:
        local = time.localtime(int(seconds))
        return Stamp(time.strftime("%H:%M:%S", local), time.strftime("%Y-%m-%d", local))
    return Stamp(clock.rjust(8, "0"), "-".join(date) if all(date) else "")


def time_at(series: Iterable[SeriesView], step: float) -> tuple[float | None, bool]:
    """Return when a step was measured, and whether that is exact rather than interpolated between two close points.

    The time is None if no two points are close enough.
    """
    found: float | None = None
    for view in series:
        if view.axis != "step" or not len(view.x) or not view.x[0] <= step <= view.x[-1]:
            continue
        place = bisect_left(view.x, step)
        after = _at(view.times, place)
        if view.x[place] == step and isfinite(after):
            return after, True
        before = _at(view.times, place - 1)
        if 0 <= after - before <= _NEAR_SECONDS and found is None:
            share = (step - view.x[place - 1]) / (view.x[place] - view.x[place - 1])
            found = before + share * (after - before)
    return found, False


def _at(times: Sequence[float], place: int) -> float:
    return times[place] if 0 <= place < len(times) else float("nan")
