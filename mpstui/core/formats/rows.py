"""From rows of named numbers, as experiment trackers store them, to points, in columns instead of one by one.

Unlike with a log, hardly anything has to be guessed: every number was logged as a metric and keeps its name, and a row
has its step and time. Names only decide which metric is the training loss, the learning rate and the epoch, and which
merely counts something in an evaluation (``val/num_samples``) and is left out.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from operator import le
from typing import NamedTuple

from .measures import is_count_of_evaluation
from .names import NameScope, Role, classify
from .points import Counters, LossSummary, MetricPoint, ParsedLog, Phase, Point, PointColumns, Standing
from .records import ALIASES, EPOCH, LEARNING_RATE, read_record
from .told import SYSTEM

_NAN = math.nan
_MOST_NAMES = 2000
"""Per run: a program that makes up a new name at every step must not fill the memory."""
_MOST_EPOCHS = 1 << 16
_LOGGED = " (logged)"
"""Added to a metric named ``loss`` or ``lr`` that is not the charted loss or learning rate."""


class Row(NamedTuple):
    """The values logged at one moment."""

    values: Mapping[str, float | bytes]
    """Numbers, or the text of numbers."""
    step: float
    """NaN if unknown."""
    time: float
    """Unix seconds; NaN if unknown."""
    aside: bool = False
    """True if ``step`` does not count the steps of the run."""


class Rows:
    """The rows of one run, placed in the order in which they were logged."""

    def __init__(self, format_name: str, *, evaluation: bool = False) -> None:
        """``evaluation``: all values were measured on validation data, whatever their names say."""
        self._format = format_name
        self._evaluation = evaluation
        self._names: dict[str, None] = {}
        self._scopes: dict[str, bool] = {}
        self._loss: str | None = None
        self._rate: str | None = None
        self._undecided = True
        """True if no row has held anything like a loss yet."""
        self._summary: LossSummary | None = None
        self._lr: float | None = None
        self._step: float = _NAN
        self._loss_step: float = _NAN
        """The newest step of the loss."""
        self._epoch: float = _NAN
        self._first_epoch = 1
        self._epoch_at: dict[float, float] = {}
        """The epoch at each step, if epochs are logged as a metric of their own."""
        self.attempt = 0
        """The attempt that new rows belong to, from 0."""

    def place(self, rows: Sequence[Row]) -> list[Point]:
        """Return the points of rows, with one set of columns for all metrics that were logged together."""
        shapes: dict[tuple[bool, frozenset[str]], list[int]] = {}
        for place, row in enumerate(rows):
            shapes.setdefault((row.aside, frozenset(row.values)), []).append(place)
        holders: dict[str, list[tuple[bool, frozenset[str]]]] = {}
        for shape, places in shapes.items():
            self._learn(rows[places[0]])
            for name in shape[1]:
                holders.setdefault(name, []).append(shape)
        together: dict[tuple[tuple[bool, frozenset[str]], ...], list[str]] = {}
        for name in sorted(holders):
            together.setdefault(tuple(holders[name]), []).append(name)
        parts = [(sorted(chain.from_iterable(shapes[one] for one in held)), names) for held, names in together.items()]
        found: list[Point] = []
        for places, names in sorted(parts, key=lambda part: part[0][-1]):
            found += self._columns([rows[place] for place in places], names)
        return found

    def columns(
        self,
        columns: Mapping[str, Sequence[float]],
        steps: Sequence[float],
        times: Sequence[float],
        epochs: Sequence[float] | None = None,
        *,
        aside: bool = False,
    ) -> list[Point]:
        """Return the points of metrics that share their steps; `learn` must have seen their names.

        Steps lower than those of the loss count something other than the run's steps, say epochs, and so do those of
        machine metrics. An epoch logged as a metric of its own (``train/epoch``) holds for everything logged at the
        same steps. ``aside``: the steps are not the run's in any case.
        """
        told = next((values for name, values in columns.items() if is_epoch(name)), None)
        if told is not None:
            self._epoch_at.update(zip(steps, told, strict=True))
            self._epoch_at = dict(islice(self._epoch_at.items(), max(0, len(self._epoch_at) - _MOST_EPOCHS), None))
        if epochs is None and self._epoch_at:
            epochs = array("d", [self._epoch_at.get(step, _NAN) for step in steps])
        if self.leads(columns) and not aside:
            self._loss_step = steps[-1]
        else:
            aside = aside or steps[-1] < self._loss_step or _are_of_machine(columns)
        return self._points(columns, steps, times, epochs or array("d", [_NAN]) * len(steps), aside=aside)

    def learn(self, names: Sequence[str]) -> None:
        """Take note of metrics about to come, each in a column of its own."""
        self._learn(Row(dict.fromkeys(names, 1.0), _NAN, _NAN))

    def leads(self, names: Collection[str]) -> bool:
        """Whether the loss is among these metrics: its steps are the run's, so it has to be placed before others."""
        return self._loss in names

    def summary(self, standing: Standing, read_in_part: str | None) -> ParsedLog:
        """Return a summary of the rows so far."""
        if not self._names and math.isnan(self._step):
            return ParsedLog(standing=standing, read_in_part=read_in_part)
        counters = _counters(self._step, self._epoch)
        return ParsedLog(
            format=self._format,
            epoch=counters.epoch,
            step=counters.step,
            train_loss=self._summary,
            metrics=tuple(name for name in self._names if not is_count_of_evaluation(name)),
            learning_rate=self._lr,
            runs=1,
            standing=standing,
            read_in_part=read_in_part,
        )

    def _learn(self, row: Row) -> None:
        """Choose the loss and the learning rate: the first to appear."""
        fresh = [name for name in row.values if name not in self._names][: max(0, _MOST_NAMES - len(self._names))]
        if not fresh:
            return
        self._names.update(dict.fromkeys(sorted(fresh)))
        if self._loss is None and not self._evaluation:
            found = read_record(dict.fromkeys(row.values, 1.0), self._format)
            if found is not None and found.loss is not None and not found.part:
                self._loss = found.loss_name
        if self._rate is None:
            named = (name for name in fresh if ALIASES.get(name.lower()) == LEARNING_RATE)
            meant = (name for name in fresh if classify(name).role is Role.LEARNING_RATE)
            self._rate = next(chain(named, meant), None)

    def _columns(self, rows: Sequence[Row], names: Sequence[str]) -> list[Point]:
        columns: dict[str, Sequence[float]] = {}
        epochs = array("d", [_NAN]) * len(rows)
        told = [row.values for row in rows]
        for name in names:
            try:
                values = array("d", map(float, [one[name] for one in told]))
            except ValueError:  # not all of them are numbers
                values = array("d", [_number(one[name]) for one in told])
            if is_epoch(name):
                epochs = values
            columns[name] = values
        if math.isnan(epochs[-1]) and any("epoch" in name.lower() for name in rows[-1].values):
            epochs = array("d", map(_epoch, rows))  # logged with these metrics, and with others too
        steps, times = array("d", [row.step for row in rows]), array("d", [row.time for row in rows])
        return self._points(columns, steps, times, epochs, aside=rows[-1].aside or _are_of_machine(columns))

    def _points(
        self,
        columns: Mapping[str, Sequence[float]],
        steps: Sequence[float],
        times: Sequence[float],
        epochs: Sequence[float],
        *,
        aside: bool = False,
    ) -> list[Point]:
        """Return columns whose steps never fall: new ones begin where an earlier step was logged again."""
        if not steps:
            return []
        falls = [] if all(map(le, steps, islice(steps, 1, None))) else _falls(steps)
        found: list[Point] = []
        for start, stop in pairwise([0, *falls, len(steps)]):
            cut = slice(start, stop)
            part = columns if not falls else {name: values[cut] for name, values in columns.items()}
            found.append(self._point(part, steps[cut], times[cut], epochs[cut], aside=aside))
        return found

    def _point(
        self,
        columns: Mapping[str, Sequence[float]],
        steps: Sequence[float],
        times: Sequence[float],
        epochs: Sequence[float],
        *,
        aside: bool,
    ) -> PointColumns:
        losses = columns.get(self._loss, ()) if self._loss is not None else ()
        rates = columns.get(self._rate) if self._rate is not None else None
        told = (self._loss if losses else None, self._rate)
        shown = {
            name if name not in ("loss", "lr") else name + _LOGGED: values
            for name, values in columns.items()
            if name not in told and not is_epoch(name) and not is_count_of_evaluation(name)
        }
        step = _NAN if aside else steps[-1]
        self._step = step if math.isfinite(step) else self._step
        if math.isfinite(epochs[-1]):
            self._epoch = epochs[-1]
            self._first_epoch = 0 if any(epoch < 1 for epoch in epochs) else self._first_epoch
        if losses:
            first, count = (self._summary.first, self._summary.count) if self._summary else (losses[0], 0)
            self._summary = LossSummary(first, losses[-1], count + len(losses))
        self._lr = rates[-1] if rates else self._lr
        newest = MetricPoint(
            run=self.attempt,
            counters=_counters(step, epochs[-1]),
            phase=Phase.TRAIN,
            loss=losses[-1] if losses else None,
            learning_rate=rates[-1] if rates else None,
            throughput=None,
            metrics={name: values[-1] for name, values in shown.items() if not self._is_evaluation(name)},
            eval_metrics={name: values[-1] for name, values in shown.items() if self._is_evaluation(name)},
            series=f"{self._loss}@s" if losses else "",
            format=self._format,
            first_epoch=self._first_epoch,
            time=times[-1],
            verbatim=True,
        )
        told_steps = None if math.isnan(steps[-1]) else steps
        return PointColumns(newest, told_steps, epochs, losses, rates, shown, times)

    def _is_evaluation(self, name: str) -> bool:
        found = self._scopes.get(name)  # cached: each slice asks anew, which took 45 % of the time with 5,000 metrics
        if found is None:
            found = self._scopes[name] = self._evaluation or classify(name).scope is NameScope.EVAL
        return found


def is_epoch(name: str) -> bool:
    """Whether a metric counts the epochs."""
    return ALIASES.get(name.lower()) == EPOCH


def _are_of_machine(names: Iterable[str]) -> bool:
    """Whether all are metrics of the machine: these lie at whichever step was the newest, so they set none."""
    return all(name.startswith(SYSTEM) for name in names)


def _counters(step: float, epoch: float) -> Counters:
    whole = int(step) if math.isfinite(step) else None
    told = None if not math.isfinite(epoch) else int(epoch) if epoch == int(epoch) else epoch
    return Counters(epoch=told, step=whole)


def one_by_one(points: Iterable[Point]) -> Iterator[MetricPoint]:
    """Yield points one by one, with columns split up."""
    for point in points:
        if not isinstance(point, PointColumns):
            yield point
            continue
        newest, steps = point.newest, point.steps or [_NAN] * len(point.epochs)
        for place, (step, epoch) in enumerate(zip(steps, point.epochs, strict=True)):
            yield replace(
                newest,
                counters=_counters(step, epoch),
                loss=point.losses[place] if len(point.losses) else None,
                learning_rate=point.rates[place] if point.rates is not None else None,
                metrics={name: point.values[name][place] for name in newest.metrics},
                eval_metrics={name: point.values[name][place] for name in newest.eval_metrics},
                time=point.times[place] if point.times is not None else None,
            )


def _falls(steps: Sequence[float]) -> list[int]:
    return [place for place in range(1, len(steps)) if steps[place] < steps[place - 1]]


def _number(value: float | bytes) -> float:
    try:
        return float(value)
    except ValueError:
        return _NAN


def _epoch(row: Row) -> float:
    found = (_number(value) for name, value in row.values.items() if is_epoch(name))
    return next(found, _NAN)
