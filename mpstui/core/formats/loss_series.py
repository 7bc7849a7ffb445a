"""The series of losses in one log, and what their counters show: it continues, is drawn again, or starts over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .names import PART, classify
from .points import NOWHERE, Counters, LineReading, LossSummary, Number

_UNCOUNTED_NEEDED, _UNCOUNTED_AVERAGES_NEEDED = 3, 5
_MAX_SERIES = 64


@dataclass(slots=True)
class LossSeries:
    """What is known about one series of losses in one run; the values themselves go to whatever draws them."""

    name: str
    format: str
    bar: bool
    rank: int
    run: int = -1
    start: Counters = NOWHERE
    """The counters of its first loss in the run."""
    counters: Counters = NOWHERE
    """The counters of its newest loss."""
    epoch: Number | None = None
    """The epoch at the newest reading, from its own line or one above."""
    epochs_announced: int = 0
    count: int = 0
    headed: bool = False
    """True if a reading came below a line with its position and nothing else."""
    first: float = 0.0
    last: float = 0.0

    def begin(self, run: int, start: Counters) -> None:
        """Forget the previous run: the next value is the first of ``run``."""
        self.run, self.start, self.counters, self.epoch = run, start, start, start.epoch
        self.epochs_announced = self.count = 0
        self.headed = False

    def extend(self, values: Sequence[float], newest: Counters, epoch: Number | None, announced: int) -> None:
        """Add readings, in order.

        Args:
            newest: the counters of the last one.
            epoch: its epoch, from its own line or one above.
            announced: how many epochs lines have named by then.
        """
        if self.count == 0:
            self.first = values[0]
        self.last = values[-1]
        self.count += len(values)
        self.counters, self.epoch, self.epochs_announced = newest, epoch, announced

    def replace_last(self, value: float) -> None:
        """Replace the newest value: its reading was drawn again."""
        if self.count == 1:
            self.first = value
        self.last = value

    @property
    def believable(self) -> bool:
        """False while it may not be a series at all: a loss without a counter may be any sentence, or a report."""
        counted = (self.counters != NOWHERE or self.start != NOWHERE or self.headed) and "final" not in self.name
        return counted or self.count >= (_UNCOUNTED_NEEDED if self.rank == 0 else _UNCOUNTED_AVERAGES_NEEDED)

    @property
    def summary(self) -> LossSummary:
        return LossSummary(self.first, self.last, self.count)


class LossBook:
    """All series of one log by name, and which of them belong to the newest run."""

    def __init__(self) -> None:
        self.run = 0
        """The number of the newest run."""
        self._series: dict[str, LossSeries] = {}

    def begun(self, name: str) -> LossSeries | None:
        """Return the series of that name if it has losses in the newest run."""
        series = self._series.get(name)
        return series if series is not None and series.run == self.run and series.count else None

    @property
    def primary(self) -> LossSeries | None:
        """The series to chart: the newest run's with the most readings; on a tie a line beats a bar."""
        return leader([s for s in self._series.values() if s.count and s.run == self.run and s.believable])

    @property
    def foremost(self) -> LossSeries | None:
        """The series to chart; while none is believable, the plainest one so far."""
        met = (s for s in self._series.values() if s.count and s.run == self.run and s.rank < PART)
        return self.primary or min(met, key=lambda series: (series.rank, -series.count), default=None)

    @property
    def leading(self) -> str | None:
        """The name of the foremost series; empty if there are several and none is the main one."""
        met = [series for series in self._series.values() if series.count and series.run == self.run]
        return main.name if (main := self.foremost) is not None else "" if len(met) > 1 else None

    @property
    def first_format(self) -> str | None:
        """The format of the series that came first, in whatever run."""
        return next((series.format for series in self._series.values()), None)

    def count(self, reading: LineReading, at: Counters, epoch: Number | None, announced: int, *, redrawn: bool) -> bool:
        """Add the loss of a reading to its series; return False if this very reading is known already.

        Args:
            at: where it stands.
            epoch: the epoch that holds if ``at`` has none.
            announced: how many epochs lines have named so far.
            redrawn: whether a bar at an unchanged step was drawn again, rather than a new bar.
        """
        series = self._series.get(reading.series)
        if series is None:
            if len(self._series) >= _MAX_SERIES:
                return True
            rank = classify(reading.loss_name).rank
            series = LossSeries(reading.series, reading.grammar, reading.bar, rank)
            self._series[reading.series] = series
        loss = float(reading.loss) if reading.loss is not None else 0.0
        now, before = reading.counters, series.counters
        # Drawn again at the same position; a running average keeps its position for the whole epoch.
        stands_still = now.epoch == before.epoch and (reading.running or now == before)
        if series.run != self.run or series.count == 0:
            series.begin(self.run, at)
        elif reading.bar and stands_still and redrawn:
            series.replace_last(loss)
            return True
        elif now.positioned and (at, str(loss)) == (before, str(series.last)):
            return False  # compared as text, where NaN equals NaN
        series.extend((loss,), at, first_known(at.epoch, epoch), announced)
        return True


def leader(rivals: Sequence[LossSeries]) -> LossSeries | None:
    """Return the series to chart: a whole loss before a part, then most readings, then a line before a bar.

    None if there are only parts, and several of about the same length.
    """
    whole = [series for series in rivals if series.rank < PART]
    best = max(whole or rivals, key=lambda series: (series.count, not series.bar), default=None)
    if best is None or best.rank < PART:
        return best
    others = {s.name.split("@")[0] for s in rivals if s.count > 0.8 * best.count and s.bar == best.bar}
    return best if len(others) == 1 else None


def goes_back(series: LossSeries, now: Counters, *, new_epoch: bool) -> bool:
    """True if counters return to their start, and neither a resumed run nor the next epoch explains it.

    ``new_epoch``: an epoch was announced since the last reading, so steps may well start again.
    """
    before, start = series.counters, series.start
    if now.epoch is not None and before.epoch is not None and now.epoch != before.epoch:
        first = start.epoch if start.epoch is not None else 0
        return now.epoch < before.epoch and (now.epoch <= max(1, first) or now.epoch < 0.5 * before.epoch)
    step, last = now.shown_step, before.shown_step
    if step is None or last is None or step >= last or step > max(or_zero(start.shown_step), 0.1 * last):
        return False
    if now.epoch is not None and before.epoch is not None:
        return True
    planned = before.shown_steps
    return not new_epoch and (planned is None or last < 0.9 * planned)


def reopens(series: LossSeries, now: Counters) -> bool:
    """True if counters are back at the start of a series, or still there, after a program has started again.

    If an epoch has another number of steps than before, it is another run in any case.
    """
    epoch, start = series.epoch, series.start
    step, last = now.shown_step, series.counters.shown_step
    if now.epoch is not None and epoch is not None:
        behind = now.epoch < epoch or step is None or last is None or step <= last
        behind = behind or now.shown_steps not in (None, series.counters.shown_steps)
        return now.epoch <= max(1, or_zero(start.epoch)) and behind
    return step is not None and last is not None and step <= or_zero(start.shown_step) < last


def next_stage(main: LossSeries | None, reading: LineReading) -> bool:
    """True if a loss of another name begins at the first epoch after the main one has reached a later epoch."""
    epoch = reading.counters.epoch
    if main is None or main.bar or reading.bar or reading.part or reading.loss is None or epoch is None:
        return False
    return epoch <= max(1, or_zero(main.start.epoch)) < or_zero(main.counters.epoch)


def follows(now: Counters, before: Counters) -> bool:
    """True if a reading is plainly the next one: a later epoch, or a later step."""
    if now.epoch is not None and before.epoch is not None and now.epoch != before.epoch:
        return now.epoch > before.epoch
    if now.shown_step is None or before.shown_step is None:
        return now.shown_step is None and before.shown_step is None
    return now.shown_step > before.shown_step


def first_known(*values: Number | None) -> Number | None:
    """Return the first value that is known."""
    return next((value for value in values if value is not None), None)


def or_zero(value: Number | None) -> Number:
    """Return 0 for an unknown counter, which makes it compare like the very start; use for comparisons only."""
    return 0 if value is None else value
