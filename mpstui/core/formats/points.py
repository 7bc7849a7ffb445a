"""What readers of logs and metric files hand out. Unknown is None, never 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

Number = int | float


class Phase(StrEnum):
    """What the program was doing when it printed a value."""

    TRAIN = "train"
    EVAL = "eval"


class Counters(NamedTuple):
    """Where the run stands, as printed: no shift between counting from 0 and from 1."""

    epoch: Number | None = None
    epochs: Number | None = None
    step: Number | None = None
    """Steps of the whole run."""
    steps: Number | None = None
    epoch_step: Number | None = None
    """Steps (batches, or samples where the program prints those) of this epoch."""
    epoch_steps: Number | None = None

    @property
    def shown_step(self) -> Number | None:
        """The finest counter there is: of the run, else of the epoch."""
        return self.step if self.step is not None else self.epoch_step

    @property
    def shown_steps(self) -> Number | None:
        """The plan that belongs to ``shown_step``."""
        return self.steps if self.step is not None or self.epoch_step is None else self.epoch_steps

    def run_step(self, first_epoch: int = 0, epoch_length: Number | None = None) -> float | None:
        """Steps since the start of the run, also where each epoch counts anew; None when that cannot be told.

        Args:
            first_epoch: the number that this program gives its first epoch.
            epoch_length: steps of an epoch, for where none are planned.
        """
        if self.step is not None:
            return float(self.step)
        if self.epoch_step is None:
            return None
        epoch = self.epoch if self.epoch is not None and math.isfinite(self.epoch) else first_epoch
        before, length = max(0, math.floor(epoch) - first_epoch), self.epoch_steps or epoch_length
        if not length and (before or self.epoch is None):
            return None
        return before * float(length or 0) + float(self.epoch_step)


NOWHERE = Counters()
"""No counter is known."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one record of a log says, before it is placed in a run. Grammars produce these."""

    grammar: str
    counters: Counters = NOWHERE
    phase: Phase = Phase.TRAIN
    loss: float | None = None
    loss_name: str = ""
    learning_rate: float | None = None
    throughput: float | None = None
    """Per second, in the unit of ``throughput_unit``."""
    throughput_unit: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Every named value of the record, by the name as printed; evaluation values apart under ``Phase.EVAL``."""
    eval_metrics: Mapping[str, float] = field(default_factory=dict)
    series: str = ""
    """Which series of the log the loss belongs to: readings of one shape share it."""
    bar: bool = False
    """True for a progress bar's frame: drawn again and again, its counters stand for the bar's own loop."""
    rank: int = 0
    """How sure it is that these counters are the training loop's; bars compete, the highest wins."""
    plan: bool = False
    """True for a banner or a setting: it plans (totals, initial learning rate) and counts nothing."""
    running: bool = False
    """True when a bar's loss is an average that runs through the epoch: one reading per epoch, the last drawn."""
    certain: bool = False
    """True when the record itself says that its loss is of training, whatever banner stands above it."""
    epoch_done: bool = False
    """True when the record says that the epoch it names is over."""
    restart: bool = False
    """True when the record can only be the first of a new run (a repeated table header, a banner)."""


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One reading placed in its run: what a live monitor follows."""

    run: int
    """Number of the run within the log, from 0: several launches may share a file."""
    counters: Counters
    phase: Phase
    loss: float | None
    """Training loss; never a loss of an evaluation."""
    learning_rate: float | None
    throughput: float | None
    metrics: Mapping[str, float]
    eval_metrics: Mapping[str, float]
    series: str
    """Name of the series of ``loss``. A log may hold several (per batch, per epoch); `LogReader.primary` names the one
    to chart."""
    format: str
    first_epoch: int = 0
    """What this run calls its first epoch."""
    epoch_done: bool = False
    """Whether the epoch of ``counters`` is over and no other has begun."""
    epoch_length: Number | None = None
    """Steps of an epoch as far as one was seen to go, for an axis; nobody planned them."""

    @property
    def run_step(self) -> float | None:
        """Steps since the start of the run, also where each epoch counts anew; None when that cannot be told."""
        return self.counters.run_step(self.first_epoch, self.epoch_length)

    @property
    def newest(self) -> MetricPoint:
        """Itself; see `Stretch`."""
        return self

    @property
    def epoch(self) -> Number | None:
        """The epoch as printed."""
        return self.counters.epoch

    @property
    def step(self) -> Number | None:
        """The finest step counter as printed."""
        return self.counters.shown_step


@dataclass(frozen=True, slots=True)
class Stretch:
    """Many readings of one series that simply go on, as columns of equal length."""

    newest: MetricPoint
    """The last of them."""
    steps: Sequence[float] | None
    """Of the whole run; None where nothing tells them."""
    epochs: Sequence[float]
    """NaN for what is unknown."""
    losses: Sequence[float]
    rates: Sequence[float] | None
    values: Mapping[str, Sequence[float]]
    """Every named value, those of evaluations too."""


Point = MetricPoint | Stretch


@dataclass(frozen=True, slots=True)
class LossSummary:
    """A training-loss series in three figures, of the last run in the log."""

    first: float
    last: float
    count: int


@dataclass(frozen=True, slots=True)
class ParsedLog:
    """What a whole log or metric file says; of several runs in one file, the last."""

    format: str | None = None
    epoch: Number | None = None
    epochs: Number | None = None
    step: Number | None = None
    steps: Number | None = None
    train_loss: LossSummary | None = None
    metrics: tuple[str, ...] = ()
    learning_rate: float | None = None
    throughput: float | None = None
    runs: int = 0
    history: tuple[tuple[float, float], ...] = ()
    """(step, training loss) of the last run; thinned evenly when longer than `history.HISTORY_POINTS`."""
