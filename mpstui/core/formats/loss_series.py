"""The series of losses in one log, and what their counters say of each other: goes on, is drawn again, starts anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .names import PART
from .points import NOWHERE, Counters, LineReading, LossSummary, Number

_UNCOUNTED_NEEDED, _UNCOUNTED_AVERAGES_NEEDED = 3, 5


@dataclass(slots=True)
class LossSeries:
    """What is known of one series of losses in one run; the values themselves go to whoever draws them."""

    name: str
    format: str
    bar: bool
    rank: int
    run: int = -1
    start: Counters = NOWHERE
    """Where its first loss of the run stood."""
    counters: Counters = NOWHERE
    """Where its newest one stands."""
    epoch: Number | None = None
    """The epoch that held at the newest reading, on its own line or above it."""
    epochs_announced: int = 0
    count: int = 0
    first: float = 0.0
    last: float = 0.0

    def begin(self, run: int, start: Counters) -> None:
        """Forget the run before: the next value is the first of ``run``."""
        self.run, self.start, self.counters, self.epoch = run, start, start, start.epoch
        self.epochs_announced = self.count = 0

    def extend(self, values: Sequence[float]) -> None:
        """More readings, in order."""
        if self.count == 0:
            self.first = values[0]
        self.last = values[-1]
        self.count += len(values)

    def replace_last(self, value: float) -> None:
        """The newest reading was drawn again with another value."""
        if self.count == 1:
            self.first = value
        self.last = value

    @property
    def believable(self) -> bool:
        """Whether it is one: what nothing counts may be any sentence, or a report, until it has come some times."""
        counted = (self.counters != NOWHERE or self.start != NOWHERE) and "final" not in self.name
        return counted or self.count >= (_UNCOUNTED_NEEDED if self.rank == 0 else _UNCOUNTED_AVERAGES_NEEDED)

    @property
    def summary(self) -> LossSummary:
        return LossSummary(self.first, self.last, self.count)


def leader(rivals: Sequence[LossSeries]) -> LossSeries | None:
    """The series to chart: a whole loss before a part, then the one with most readings; a line beats a bar on a tie.

    Where there are only parts, and more than one of about the same length, none of them is the main one.
    """
    whole = [series for series in rivals if series.rank < PART]
    best = max(whole or rivals, key=lambda series: (series.count, not series.bar), default=None)
    if best is None or best.rank < PART:
        return best
    others = {s.name.split("@")[0] for s in rivals if s.count > 0.8 * best.count and s.bar == best.bar}
    return best if len(others) == 1 else None


def goes_back(series: LossSeries, now: Counters, *, new_epoch: bool) -> bool:
    """Whether counters return to their start, which neither a resumed run nor a next epoch explains.

    ``new_epoch``: an epoch was announced since the last reading, so that steps may well begin again.
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
    """Whether counters are back at the start of a series, or have stayed there, after a program has begun anew."""
    epoch, start = series.epoch, series.start
    step, last = now.shown_step, series.counters.shown_step
    if now.epoch is not None and epoch is not None:
        behind = now.epoch < epoch or step is None or last is None or step <= last
        return now.epoch <= max(1, or_zero(start.epoch)) and behind
    return step is not None and last is not None and step <= or_zero(start.shown_step) < last


def next_stage(main: LossSeries | None, reading: LineReading) -> bool:
    """Whether a loss of another name begins at the first epoch, where the main one has come to a later one."""
    epoch = reading.counters.epoch
    if main is None or main.bar or reading.bar or reading.part or reading.loss is None or epoch is None:
        return False
    return epoch <= max(1, or_zero(main.start.epoch)) < or_zero(main.counters.epoch)


def follows(now: Counters, before: Counters) -> bool:
    """Whether a reading is plainly the next one: a later epoch, or a later step."""
    if now.epoch is not None and before.epoch is not None and now.epoch != before.epoch:
        return now.epoch > before.epoch
    if now.shown_step is None or before.shown_step is None:
        return now.shown_step is None and before.shown_step is None
    return now.shown_step > before.shown_step


def first_known(*values: Number | None) -> Number | None:
    """The first value that is known."""
    return next((value for value in values if value is not None), None)


def or_zero(value: Number | None) -> Number:
    """For comparisons alone: an unknown counter compares like the very start."""
    return 0 if value is None else value


_TOLERANCE = 0.02
"""Share of all steps by which a plan and what becomes of it may differ."""


class EpochSteps:
    """Watches the counters of one program's training lines."""

    def __init__(self, steps: int | None = None) -> None:
        """``steps``: of the whole run, where that is known from elsewhere; a step out of so many is one of these."""
        self._steps_of_run = steps
        self.anew = False
        """Whether each epoch counts from its start."""
        self.through = False
        """Whether the steps were seen to go on from one epoch to the next."""
        self.length: Number | None = None
        """Steps of an epoch where no line tells them, as far as one was seen to go."""
        self._last = NOWHERE
        self._distance: Number = 1
        """Between the last two steps that were printed."""
        self._alone = False
        """Whether no other step of its epoch came before the last one."""
        self._open = False
        """Whether the newest steps may be those of the epoch or of the run."""

    def forget_place(self) -> None:
        """Another launch of the program follows."""
        self._last = NOWHERE

    def watch(self, counters: Counters, lines: int = 1) -> None:
        """Take in the counters of a training line.

        Args:
            lines: how many lines after the one taken in before it stands; above 1, all between are of the same epoch.
        """
        step, epoch, before = counters.shown_step, counters.epoch, self._last
        if step is None or epoch is None or counters.epoch_steps or (counters.step is not None and counters.epoch_step):
            return
        self._last, fell, alone = counters, False, self._alone
        self._alone = epoch != before.epoch or (alone and step == before.shown_step)
        if before.shown_step is not None and before.epoch is not None:
            # A count of the run cannot stand still for a whole epoch; where it was printed twice at its end, it may.
            fell = epoch > before.epoch and (step < before.shown_step or (alone and step == before.shown_step))
            if fell and counters.steps is None:
                # What is printed is seldom every step, and the last one may stand between two of those.
                self.length = max(before.shown_step + self._distance - step, before.shown_step, self.length or 1)
            self.through = self.through or (epoch > before.epoch and step > before.shown_step)
            if epoch == before.epoch and step > before.shown_step:
                self._distance = max(1, (step - before.shown_step) // lines)
        steps, epochs = counters.steps, counters.epochs
        if steps and epochs and counters.step is not None and math.isfinite(epoch):
            # Out of place among the steps of the run, whether epochs are counted from 0 or from 1.
            in_epoch, slack = steps / epochs, 1 + _TOLERANCE * steps
            fell = fell or not (epoch - 1) * in_epoch - slack <= step <= (epoch + 1) * in_epoch + slack
        self.anew = self.anew or fell

    def read(self, counters: Counters) -> Counters:
        """The counters as they are meant.

        ``epoch 1/5 step 3/20`` counts the steps of an epoch more often than those of the run: so it is read until they
        go on into the second.
        """
        if counters.step is None or counters.epoch is None or counters.epoch_step is not None:
            return counters
        first = counters.epoch in (0, 1) or not counters.epochs
        likely = counters.steps and isinstance(counters.epoch, int) and first
        of_run = self._steps_of_run is not None and counters.steps == self._steps_of_run
        if not self.anew and (self.through or of_run or not likely):
            return counters
        self._open = not self.anew and _may_be_of_run(counters)
        return counters._replace(step=None, steps=None, epoch_step=counters.step, epoch_steps=counters.steps)

    def beyond_doubt(self, counters: Counters) -> Counters:
        """Without a total that may be that of an epoch or of the run, until a late step or the second epoch tells."""
        return counters._replace(epoch_steps=None) if self._open and counters.epoch_steps else counters


def _may_be_of_run(now: Counters) -> bool:
    """Whether a step of the first epoch may be counted out of those of the run: epochs divide these."""
    epochs, steps = or_zero(now.epochs), or_zero(now.steps)
    return epochs > 1 and steps % epochs == 0 and or_zero(now.step) <= steps / epochs
