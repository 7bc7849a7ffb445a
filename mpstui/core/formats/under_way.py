"""Interim values of an evaluation: ``Valid | Epoch 3 | 2/6 | Loss 0.5``, or the frames of its bar.

A value over part of the data is no result: it may be better than any, and would be shown as the best. The result is in
the summary at the end; for values that the summary lacks, it is the last one printed, if that was near the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from .loss_series import LossSeries, or_zero
from .measures import is_rounded, quantity
from .points import NOWHERE, Counters, LineReading, MetricPoint, Number, Phase
from .told_again import as_evaluation


class DrawnEvaluation:
    """Recognises an evaluation by its bar, where one loop prints the same lines for training and evaluation."""

    def __init__(self) -> None:
        self._is_newest = False
        self._trained = NOWHERE
        """The counters of the bar that last showed a training loss."""
        self._first: LineReading | None = None
        """The reading of that bar; None again once a line names an epoch."""
        self._headed = False
        """True once a line has named an epoch."""

    def of(self, reading: LineReading, series: LossSeries | None) -> LineReading:
        """Return the reading as one of the evaluation if its step is earlier than what the epoch has already trained.

        That the evaluation's bar was drawn last does not prove that its loop still runs: a bar may be cleared early.

        Args:
            series: the series of the reading's loss, if it has had losses in this run.
        """
        if not reading.bar and reading.counters.epoch is not None:
            self._first, self._headed = None, True
        if reading.bar:
            reading = self._of_bar(reading)
            self._is_newest = reading.phase is Phase.EVAL
        step, trained = reading.counters.shown_step, series.counters if series is not None else NOWHERE
        if not self._is_newest or reading.bar or reading.phase is Phase.EVAL or step is None:
            return reading
        if (
            reading.counters.epoch is None
            or reading.counters.epoch != trained.epoch
            or step >= or_zero(trained.shown_step)
        ):
            return reading
        steps = reading.counters.shown_steps
        return as_evaluation(reading, NOWHERE, (step, math.inf if steps is None else steps))

    def _of_bar(self, reading: LineReading) -> LineReading:
        """Return a bar as an evaluation's if its length differs from that of the epoch's training and it shows values
        of an evaluation but no training loss. Both bars may be labelled with the epoch alone, and the training bar may
        show the last evaluation."""
        if self._is_second(reading):
            return as_evaluation(
                reading, NOWHERE, (or_zero(reading.counters.shown_step), or_zero(reading.counters.shown_steps))
            )
        if reading.loss is not None:
            self._trained, self._first = reading.counters, reading
        now, trained = reading.counters, self._trained
        if reading.loss is not None or reading.phase is Phase.EVAL or not reading.eval_metrics:
            return reading
        if now.epoch is None or now.epoch != trained.epoch or now.epoch_steps in (None, trained.epoch_steps):
            return reading
        return as_evaluation(reading, NOWHERE, (or_zero(now.epoch_step), or_zero(now.epoch_steps)))

    def _is_second(self, reading: LineReading) -> bool:
        """True if this unlabelled bar is the shorter of two in one epoch that show the same values.

        The longer one must have ended; half of it is enough, since the last frames may not be drawn.
        """
        first, now = self._first, reading.counters
        if (
            first is None
            or reading.loss is None
            or reading.loss_name != first.loss_name
            or reading.series == first.series
        ):
            return False
        trained, long = first.counters, or_zero(first.counters.shown_steps)
        is_done = 2 * or_zero(trained.shown_step) >= long
        same = now.epoch == trained.epoch and (self._headed or now.epoch is not None)
        same = same and reading.metrics.keys() == first.metrics.keys()
        return same and is_done and 0 < or_zero(now.shown_steps) < long


@dataclass(slots=True)
class _Pass:
    """One evaluation in progress."""

    newest: MetricPoint
    seen: Number
    whole: Number
    between: Number
    """Number of batches between its lines."""
    alone: bool = True
    """True while it has printed a single line and no summary: its count may be of something else than batches."""

    @property
    def has_ended(self) -> bool:
        """True if no further line was due before the end; without a total, any line may be the last."""
        return self.alone or math.isinf(self.whole) or self.seen + max(self.between, 1) >= self.whole

    def take_result(self, reading: LineReading) -> None:
        """Drop the values that a summary repeats."""
        rest = {n: v for n, v in self.newest.eval_metrics.items() if n not in reading.eval_metrics}
        self.alone = self.alone and len(rest) == len(self.newest.eval_metrics)
        self.newest = replace(self.newest, eval_metrics=rest)


class UnderWay:
    """Holds back the latest interim values of evaluations until training goes on.

    There are several where the validation and the test of an epoch follow each other: one summary may tell both.
    """

    def __init__(self) -> None:
        self._passes: list[_Pass] = []
        self._told: list[MetricPoint] = []
        """The results of the newest evaluations, until training goes on."""

    def of(self, reading: LineReading, trained: Counters) -> LineReading:
        """Return the reading as it is meant beside the evaluations that are under way.

        A record without a position, below the last batch of an evaluation and with the very same names, is its summary:
        ``Averaged stats: loss: 0.5 (0.6)  acc: 80.0 (81.0)``. The values of that batch's line are known to be averages.
        """
        is_record = reading.loss is not None and len(reading.metrics) > 1 and not reading.bar
        if is_record and reading.counters == NOWHERE and reading.learning_rate is None:
            names = _quantities(reading.metrics)
            ended = (one.newest for one in self._passes if one.has_ended and math.isfinite(one.whole))
            told = next((one.eval_metrics for one in ended if _quantities(one.eval_metrics) == names), None)
            if told is not None:
                return replace(as_evaluation(reading, NOWHERE, None), eval_metrics=told)
        return _of_batch(reading, trained)

    def without_repeated(self, reading: LineReading) -> LineReading:
        """Return the reading without values its evaluation has already told; another bar may stand between the two."""
        told = {name: value for point in self._told for name, value in point.eval_metrics.items()}
        if not told or not reading.eval_metrics or reading.bar:
            return reading
        rest = {n: v for n, v in reading.eval_metrics.items() if n not in told or not _is_same(v, told[n])}
        return reading if len(rest) == len(reading.eval_metrics) else replace(reading, eval_metrics=rest)

    def keep(self, reading: LineReading, point: MetricPoint) -> list[MetricPoint]:
        """Keep the interim values of a line; if it repeats an evaluation, return the results of those before."""
        if reading.under_way is None:
            return []
        seen, whole = reading.under_way
        now = next((one for one in self._passes if _goes_on(one, reading, point)), None)
        if now is not None:
            if seen > now.seen:
                now.between, now.alone = seen - now.seen, False
            now.newest, now.seen = point, seen
            return []
        before = [] if all(_is_another(one, point) for one in self._passes) else self.end()
        self._passes.append(_Pass(point, seen, whole, seen))
        return before

    def hear(self, reading: LineReading) -> list[MetricPoint]:
        """Take in another line: values of the evaluation on it are its result, and a line of training ends it."""
        if self._told and (
            reading.loss is not None or reading.counters.epoch not in (None, self._told[-1].counters.epoch)
        ):
            self._told = []
        if not self._passes:
            return []
        if reading.eval_metrics:
            for one in self._passes:
                one.take_result(reading)
        # A line above the result may repeat the epoch that was evaluated.
        epoch = self._passes[-1].newest.counters.epoch
        again = reading.counters == Counters(epoch=epoch, epochs=reading.counters.epochs)
        moves = reading.loss is not None or (reading.counters.positioned and not again)
        return self.end() if moves and reading.phase is Phase.TRAIN else []

    def end(self) -> list[MetricPoint]:
        """Return the interim values that no summary has repeated, of evaluations that had reached their end."""
        over, self._passes = self._passes, []
        found = [one.newest for one in over if one.has_ended and one.newest.eval_metrics]
        self._told = found or self._told
        return found


def _of_batch(reading: LineReading, trained: Counters) -> LineReading:
    """Return the reading as a result if what may be batches of an evaluation is the step that training has reached.

    ``>> test Epoch 3 Iteration 0 loss 0.5`` counts batches: it stands below ``Epoch 3 Iteration 20`` of the training.
    """
    if reading.bar or reading.under_way is None or not math.isinf(reading.under_way[1]):
        return reading
    same_epoch = reading.counters.epoch in (None, trained.epoch)
    is_batch = same_epoch and reading.under_way[0] < or_zero(trained.shown_step)
    return reading if is_batch else replace(reading, under_way=None)


def _quantities(names: Iterable[str]) -> set[str]:
    """Return what is measured, whatever data the names say it is of."""
    return {quantity(name)[1] for name in names}


def _is_same(value: float, told: float) -> bool:
    """True if two values agree in the digits that both were printed with: a bar has fewer decimals."""
    return f"{value:.3g}" == f"{told:.3g}" or is_rounded(value, told)


def _is_another(one: _Pass, point: MetricPoint) -> bool:
    """True if two evaluations of one epoch measure different things, as on different data."""
    same_epoch = point.run == one.newest.run and point.counters.epoch == one.newest.counters.epoch
    return same_epoch and one.newest.eval_metrics.keys().isdisjoint(point.eval_metrics)


def _goes_on(now: _Pass, reading: LineReading, point: MetricPoint) -> bool:
    """True if a line has the same values over more batches; a bar may be redrawn at the same count."""
    seen, whole = reading.under_way or (0, 0)
    told, before = point.eval_metrics.keys(), now.newest.eval_metrics.keys()
    if whole != now.whole or not before <= told:  # more names may appear: a loss of 0 only counts once it changes
        return False
    same_epoch = point.run == now.newest.run and point.counters.epoch == now.newest.counters.epoch
    return same_epoch and (seen > now.seen or (reading.bar and seen == now.seen))
