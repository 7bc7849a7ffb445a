"""Where one launch of a program ends in a log and the next one begins: several may share a file."""

from __future__ import annotations

from dataclasses import replace

from .facts import Fact
from .loss_series import LossBook, LossSeries, goes_back, next_stage, or_zero, reopens
from .points import NOWHERE, Counters, LineReading, Phase

_FEW_EPOCHS = 2
"""A fall from a later epoch cannot be explained by a line that was printed late."""


class Launches:
    """Knows what lines have said about launches since the last reading that counted."""

    def __init__(self, losses: LossBook) -> None:
        self._losses = losses
        self._resumed = self._opened = False
        """True if a line has said that training was resumed, or that a program begins."""
        self._without = NOWHERE
        """The newest position of training without a loss, as long as no line has reported a loss."""
        self._first: frozenset[str] = frozenset()
        """The measures on the line that such a training began with."""
        self.in_rounds = False
        """True if epochs are rounds of trainings: counters back at their start belong to the next of these."""
        self._beside: frozenset[str] = frozenset()
        """Measures of evaluations that have stood beside a training loss: a step on their line is one of training."""

    def learn(self, fact: Fact) -> None:
        """Take in what a line says about the run as a whole."""
        self._resumed = (self._resumed or fact.resumed) and not fact.failure  # no other launch goes on with what failed
        self._opened = self._opened or fact.opened

    def begins(self, reading: LineReading, current: Counters, announced: int) -> bool:
        """True if a reading can only be the first of another run.

        Args:
            current: the counters as they stand.
            announced: how many epochs lines have named so far.
        """
        self.in_rounds = self.in_rounds or reading.of_trainings
        if self.in_rounds and reading.counters.epoch is None:
            return False
        if self._begins_without(reading) or self._begins_evaluated(reading, current):
            return True
        series = self._losses.begun(reading.series)
        evaluates = reading.phase is Phase.EVAL and reading.counters.epoch is not None
        if self._opened and (reading.loss is not None or reading.learning_rate is not None or evaluates):
            main, now = self._losses.primary, reading.counters
            # The epoch may be on a line above: the loss has a step of its own, the main series perhaps none.
            places = (now, now.or_else(current)) if now.positioned else (current,)
            if main and not reading.bar and any(reopens(main, place) for place in places):
                return True
            self._opened = False
        main = self._losses.primary if reading.loss is not None and not reading.bar else None
        fell = main is not None and not main.bar and reading.counters.epoch is None and _epoch_fell(main, current)
        fell = fell and not self._resumed
        if series is None:
            return fell or next_stage(main, reading)
        resumed, self._resumed = self._resumed, False
        if resumed:
            return False
        if fell or reading.restart or (reading.counters.epoch is None and _epoch_fell(series, current)):
            return True
        return goes_back(series, reading.counters, new_epoch=series.epochs_announced != announced)

    def as_placed(self, reading: LineReading) -> LineReading:
        """Drop the epoch 0 that a final test is reported with, in a training without a loss.

        Another training would begin as this one did: with the line of its first epoch, not with an evaluation's.
        """
        if not self._falls(reading) or self._opened or not self._first.isdisjoint(reading.metrics):
            return reading
        return replace(reading, counters=reading.counters._replace(epoch=None))

    def _falls(self, reading: LineReading) -> bool:
        """True if measures without a loss are reported for the first epoch after later ones."""
        now, before = reading.counters.epoch, self._without.epoch
        return _tells_measures_alone(reading) and before is not None and or_zero(now) <= 1 and or_zero(now) < before

    def _begins_without(self, reading: LineReading) -> bool:
        """True if epochs are back at their start in a training that reports measures but never a loss."""
        if reading.loss is not None or self._losses.first_format is not None:
            self._without = NOWHERE
            return False
        if not _tells_measures_alone(reading):
            return False
        fell, before = self._falls(reading), self._without
        if fell or before == NOWHERE:
            self._first = frozenset(reading.metrics)
        self._without = reading.counters
        return fell and (self._opened or or_zero(before.epoch) > _FEW_EPOCHS) and not self._resumed

    def _begins_evaluated(self, reading: LineReading, current: Counters) -> bool:
        """True if a line that used to report a training loss is back at the first step without one.

        A step of an evaluation may count its own batches, but not if its measures have stood beside a training loss.
        """
        now = reading.counters
        if reading.bar or now.shown_step is None or not reading.eval_metrics:
            return False
        if reading.loss is not None:
            self._beside |= reading.eval_metrics.keys()
        if reading.phase is not Phase.EVAL or now.epoch is not None or not reading.eval_metrics.keys() <= self._beside:
            return False
        main = self._losses.primary
        first_epoch = main is not None and or_zero(current.epoch) <= max(1, or_zero(main.start.epoch))
        return main is not None and first_epoch and not self._resumed and reopens(main, now)

    def begin(self, reading: LineReading, current: Counters) -> Counters:
        """Begin another run with a reading; return those of the counters until now that still hold in it."""
        series = self._losses.begun(reading.series)
        evaluates = reading.phase is Phase.EVAL
        announced = self._opened or evaluates or (series is not None and _epoch_fell(series, current))
        self._opened = False
        self._losses.run += 1
        holds_on = announced and reading.counters.epoch is None
        return Counters(epoch=current.epoch, epochs=current.epochs) if holds_on else Counters()


def _tells_measures_alone(reading: LineReading) -> bool:
    """True if a line reports measures of training in an epoch, and no loss."""
    is_other = reading.bar or reading.plan or reading.phase is Phase.EVAL or reading.loss is not None
    return bool(reading.metrics) and reading.counters.epoch is not None and not is_other


def _epoch_fell(series: LossSeries, current: Counters) -> bool:
    """True if the epoch on a line above has returned to its start since the last reading of a series."""
    now, before = current.epoch, series.epoch
    return now is not None and before is not None and now < before and now <= max(1, or_zero(series.start.epoch))
