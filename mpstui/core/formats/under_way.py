"""What an evaluation prints while it is under way: ``Valid | Epoch 3 | 2/6 | Loss 0.5``, the frames of its bar.

What a part of the data gives is no result: it may be better than any, and would stand as the best. The result is in the
summary at the end; of what that does not tell, the last that was printed, if it was printed near the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .loss_series import LossSeries, or_zero
from .measures import is_rounded
from .points import NOWHERE, Counters, LineReading, MetricPoint, Number, Phase
from .told_again import as_evaluation


class DrawnEvaluation:
    """The bar of an evaluation, below which a loop for both prints what it prints below that of training."""

    def __init__(self) -> None:
        self._is_newest = False
        self._trained = NOWHERE
        """Of the bar that last showed a loss of training."""
        self._first: LineReading | None = None
        """That bar, since a line has told an epoch."""
        self._headed = False
        """Whether any line has."""

    def of(self, reading: LineReading, series: LossSeries | None) -> LineReading:
        """The reading as one of the evaluation, where its step lies behind what the epoch has trained already.

        A bar may be cleared before it is full: that one was drawn last does not say that its loop goes on.

        Args:
            series: of the loss of the reading, if it has had losses in this run.
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
        """A bar of another length than that of the epoch's training is an evaluation's, where it shows values of one
        and no loss of training. Both may be described by the epoch alone; training's may show the last evaluation."""
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
        """Whether a bar that says not what it does is the shorter one of two in an epoch that show the same.

        The other one must be done, as far as a bar is drawn.
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
    """One evaluation, from its first line on."""

    newest: MetricPoint
    seen: Number
    whole: Number
    between: Number
    """How many batches lie between its lines."""
    alone: bool = True
    """Whether it has printed one line and no summary: what that counts is perhaps something else."""

    @property
    def has_ended(self) -> bool:
        """Whether another line would have come, were there more to tell; without a total each may be the last."""
        return self.alone or math.isinf(self.whole) or self.seen + max(self.between, 1) >= self.whole


class UnderWay:
    """The newest of what an evaluation has printed so far, kept back until it is over."""

    def __init__(self) -> None:
        self._pass: _Pass | None = None
        self._told: MetricPoint | None = None
        """What the newest evaluation came to, as long as no training has followed."""

    def without_repeated(self, reading: LineReading) -> LineReading:
        """The reading without what its evaluation has told already: a bar of other work may stand between the two."""
        told = {} if self._told is None else self._told.eval_metrics
        if not told or not reading.eval_metrics or reading.bar:
            return reading
        rest = {n: v for n, v in reading.eval_metrics.items() if n not in told or not _is_same(v, told[n])}
        return reading if len(rest) == len(reading.eval_metrics) else replace(reading, eval_metrics=rest)

    def keep(self, reading: LineReading, point: MetricPoint) -> MetricPoint | None:
        """Keep what a line of an evaluation tells; the end of the evaluation before, if it is the first of another."""
        if reading.under_way is None:
            return None
        seen, whole = reading.under_way
        now = self._pass
        if now is not None and _goes_on(now, reading, point):
            if seen > now.seen:
                now.between, now.alone = seen - now.seen, False
            now.newest, now.seen = point, seen
            return None
        before = self.end()
        self._pass = _Pass(point, seen, whole, seen)
        return before

    def hear(self, reading: LineReading) -> MetricPoint | None:
        """Another line: what it tells of the evaluation is the result, and a line of training ends that."""
        if self._told is not None and (
            reading.loss is not None or reading.counters.epoch not in (None, self._told.counters.epoch)
        ):
            self._told = None
        if self._pass is None:
            return None
        if reading.eval_metrics:
            rest = {n: v for n, v in self._pass.newest.eval_metrics.items() if n not in reading.eval_metrics}
            self._pass.alone = self._pass.alone and len(rest) == len(self._pass.newest.eval_metrics)
            self._pass.newest = replace(self._pass.newest, eval_metrics=rest)
        # A line may name the epoch that was evaluated again, above the result.
        again = reading.counters == Counters(epoch=self._pass.newest.counters.epoch, epochs=reading.counters.epochs)
        moves = reading.loss is not None or (reading.counters.positioned and not again)
        return self.end() if moves and reading.phase is Phase.TRAIN else None

    def end(self) -> MetricPoint | None:
        """The values of the evaluation that no summary has told."""
        over, self._pass = self._pass, None
        if over is None or not over.has_ended or not over.newest.eval_metrics:
            return None
        self._told = over.newest
        return over.newest


def _is_same(value: float, told: float) -> bool:
    """Whether a value is one that was told, as far as both were printed: a bar has the fewer decimals."""
    return f"{value:.3g}" == f"{told:.3g}" or is_rounded(value, told)


def _goes_on(now: _Pass, reading: LineReading, point: MetricPoint) -> bool:
    """Whether a line tells the same of more batches; a bar may stand still where it is drawn again."""
    seen, whole = reading.under_way or (0, 0)
    told, before = point.eval_metrics.keys(), now.newest.eval_metrics.keys()
    if whole != now.whole or not before <= told:  # a loss of 0 is believed to be measured once it changes
        return False
    same_epoch = point.run == now.newest.run and point.counters.epoch == now.newest.counters.epoch
    return same_epoch and (seen > now.seen or (reading.bar and seen == now.seen))
