"""A series of readings in bounded memory: first, last, count, and an evenly thinned history."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from .points import Counters, LossSummary, Number

PART = 5
"""From this rank on (`names.Name.rank`) a loss is one of several parts, or a word of a sentence."""
HISTORY_POINTS = 8192
"""At most this many (step, value) pairs are kept per series; beyond, every second one goes."""


class Series:
    """One loss series of one run."""

    __slots__ = (
        "_steps",
        "_stride",
        "_values",
        "bar",
        "count",
        "counters",
        "epoch",
        "epochs_announced",
        "first",
        "format",
        "last",
        "name",
        "rank",
        "run",
        "start",
        "whole",
    )

    def __init__(self, name: str, source: str, *, bar: bool, rank: int = 0) -> None:
        self.name = name
        self.rank = rank
        self.format = source
        self.bar = bar
        self.run = -1
        self.whole = 0
        self.epoch: Number | None = None
        """The epoch that held at the newest reading, on its own line or above it."""
        self.epochs_announced = 0
        self.begin(0, Counters())

    def begin(self, run: int, start: Counters) -> None:
        """Forget the run before: the next value is the first of ``run``."""
        self.run, self.start, self.counters = run, start, start
        self.epoch, self.epochs_announced = start.epoch, 0
        self.count, self.first, self.last = 0, 0.0, 0.0
        self._stride, self._steps, self._values = 1, array("d"), array("d")

    def append(self, value: float, step: float) -> None:
        """One more reading."""
        if self.count == 0:
            self.first = value
        if self.count % self._stride == 0:
            self._steps.append(step)
            self._values.append(value)
            self._thin()
        self.last = value
        self.count += 1
        self.whole += 1

    def extend(self, values: Sequence[float], steps: Sequence[float]) -> None:
        """Many readings at once, in order; ``values`` is not empty."""
        if self.count == 0:
            self.first = values[0]
        offset = -self.count % self._stride
        self._values.extend(values[offset :: self._stride])
        self._steps.extend(steps[offset :: self._stride])
        self.last = values[-1]
        self.count += len(values)
        self.whole += len(values)
        self._thin()

    def replace_last(self, value: float) -> None:
        """The newest reading was drawn again with another value."""
        if self.count == 1:
            self.first = value
        if self._values and (self.count - 1) % self._stride == 0:
            self._values[-1] = value
        self.last = value

    @property
    def summary(self) -> LossSummary:
        """First, last and count of the run."""
        return LossSummary(self.first, self.last, self.count)

    @property
    def history(self) -> tuple[tuple[float, float], ...]:
        """(step, value) pairs, thinned."""
        return tuple(zip(self._steps, self._values, strict=True))

    def _thin(self) -> None:
        while len(self._values) > HISTORY_POINTS:
            self._values = self._values[::2]
            self._steps = self._steps[::2]
            self._stride *= 2


def leader(rivals: Sequence[Series]) -> Series | None:
    """The series to chart: a whole loss before a part, then the one with most readings; a line beats a bar on a tie.

    Where there are only parts, and more than one of about the same length, none of them is the main one.
    """
    whole = [series for series in rivals if series.rank < PART]
    best = max(whole or rivals, key=lambda series: (series.count, not series.bar), default=None)
    if best is None or best.rank < PART:
        return best
    others = {s.name.split("@")[0] for s in rivals if s.count > 0.8 * best.count and s.bar == best.bar}
    return best if len(others) == 1 else None
