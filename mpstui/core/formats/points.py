"""The data types that readers of logs and metric files produce, and the parsing of printed numbers.

Unknown is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple

Number = int | float


class Phase(StrEnum):
    """What the program was doing when it printed a value."""

    TRAIN = "train"
    EVAL = "eval"


class Counters(NamedTuple):
    """The position of the run, as printed: never converted between counting from 0 and from 1."""

    epoch: Number | None = None
    epochs: Number | None = None
    step: Number | None = None
    """Counted over the whole run."""
    steps: Number | None = None
    epoch_step: Number | None = None
    """Counted within the epoch, in batches, or in samples if the program prints those."""
    epoch_steps: Number | None = None

    @property
    def shown_step(self) -> Number | None:
        """The step of the run, or else that of the epoch."""
        return self.step if self.step is not None else self.epoch_step

    @property
    def shown_steps(self) -> Number | None:
        """The total that belongs to ``shown_step``."""
        return self.steps if self.step is not None or self.epoch_step is None else self.epoch_steps

    @property
    def positioned(self) -> bool:
        """Whether they hold a position, not just totals."""
        return self.epoch is not None or self.shown_step is not None

    def or_else(self, held: Counters) -> Counters:
        """Return these counters, with unknown ones taken from ``held``; an inherited total they exceed is dropped."""
        if self == NOWHERE:
            return held
        found = Counters(*[held[at] if own is None else own for at, own in enumerate(self)])
        if self.epochs is None and self.epoch is not None and held.epochs is not None and self.epoch > held.epochs:
            found = found._replace(epochs=None)
        if self.steps is None and self.step is not None and held.steps is not None and self.step > held.steps:
            found = found._replace(steps=None)
        return found

    def run_step(self, first_epoch: int = 0, epoch_length: Number | None = None) -> float | None:
        """Return the steps since the start of the run, even if the count restarts with each epoch; None if unknown.

        Args:
            first_epoch: the number that the program gives its first epoch, 0 or 1.
            epoch_length: steps per epoch, used if ``epoch_steps`` is unknown.
        """
        if self.step is not None:
            return float(self.step)
        if self.epoch_step is None:
            return None
        epoch = self.epoch if self.epoch is not None and math.isfinite(self.epoch) else first_epoch
        before, length = max(0, math.floor(epoch) - first_epoch), self.epoch_steps or epoch_length
        if not length and before:
            return None
        return before * float(length or 0) + float(self.epoch_step)


NOWHERE = Counters()
"""No counter is known."""


class Priority(IntEnum):
    """The order in which formats are tried on a line or a file; formats of one priority are tried by name."""

    DECLARED = 0
    """A pattern from a profile."""
    EXACT = 10
    """Cannot be mistaken for anything else: the notation of one program, the signature of a file."""
    SHARED = 50
    """A notation that many programs share: tables, dictionaries, progress bars, CSV."""
    SENTENCE = 70
    """A number within a sentence: "learning rate reduced to 1e-4"."""
    GENERAL = 90
    """Reads whatever no other format has claimed."""


def series_name(loss_name: str, counters: Counters) -> str:
    """Return the name of a loss series: readings with the same loss name and the same kinds of counters form one.

    ``loss@s`` is the loss printed beside a step, ``loss@e`` the one beside an epoch: a log may hold both, and only one
    of them is charted.
    """
    marks = (("e", counters.epoch), ("s", counters.step), ("b", counters.epoch_step))
    return f"{loss_name.lower()}@{''.join(mark for mark, value in marks if value is not None)}"


@dataclass(frozen=True, slots=True)
class LineReading:
    """What one line or record says, before it is placed in a run; this is what grammars return.

    `training` and `evaluation` create the two usual kinds. Only ``grammar`` is required: leave out what the line does
    not say.
    """

    grammar: str
    """The name of the format, as ``mpstui parse`` prints it."""
    counters: Counters = NOWHERE
    phase: Phase = Phase.TRAIN
    loss: float | None = None
    """The training loss, never an evaluation loss."""
    loss_name: str = ""
    """Its name on the line: ``loss`` is the total loss, ``ctc_loss`` may be a part (`names.classify`)."""
    learning_rate: float | None = None
    rate_name: str = ""
    """The name of the learning rate on the line, which may be that of one parameter group: ``width_lr``."""
    throughput: float | None = None
    """Per second, in the unit of ``throughput_unit``."""
    throughput_unit: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Every training value by its printed name, the loss included; only values in here are charted."""
    eval_metrics: Mapping[str, float] = field(default_factory=dict)
    """Every evaluation value by its printed name."""
    series: str = ""
    """The series that the loss belongs to (`series_name`); empty without a loss."""
    bar: bool = False
    """True for a frame of a progress bar: it is redrawn many times, and its counters are those of the bar's loop."""
    rank: int = 0
    """How likely a bar is the training loop's: the highest wins, 3 if it shows a training loss."""
    plan: bool = False
    """True for a banner or a setting: it gives totals or an initial learning rate, but no position."""
    steps_name: str = ""
    """The name that a plan gives its steps: ``total_steps``, ``iterations``."""
    told_step: Number | None = None
    """The step of the run if an epoch's bar prints it in its postfix: ``7/100 [.., step=307]``."""
    brief: bool = False
    """True for the last frame of a bar that does not say what it counts and was full within a moment."""
    running: bool = False
    """True if a bar's loss is a running average over the epoch: one reading per epoch, the last one drawn."""
    certain: bool = False
    """True if the line itself says that its loss is a training loss. Any other loss below the banner of an evaluation
    ("Validating ...") is taken for an evaluation loss."""
    declared: bool = False
    """True if the names are column headings of measured values, so that none of them is a setting."""
    of_samples: bool = False
    """True if ``epoch_step`` counts samples."""
    under_way: tuple[Number, Number] | None = None
    """Batches done and batches in total of an evaluation that has not finished: its values are no result yet."""
    epoch_done: bool = False
    """True if the record says that the epoch it names is over."""
    part: bool = False
    """True if the loss is one of several parts without a total: charted under its own name, never as "loss"."""
    group: str = ""
    """The word in front of the names, which may say whose values they are: ``Seen: acc: 0.9``."""
    bare: bool = False
    """True if the loss is named after its data alone ("train"): only its course shows whether it is a loss."""
    of_trainings: bool = False
    """True if the epoch is a round of many trainings, each of which counts from its own start."""
    unnamed: bool = False
    """True if the line does not call its epoch an epoch, so that it may count steps of the run instead."""
    restart: bool = False
    """True if the record can only be the first of a new run (a repeated table header, a banner)."""

    @property
    def says_nothing(self) -> bool:
        """True if it holds neither a value nor a counter."""
        told = self.loss is not None or self.learning_rate is not None or self.throughput is not None
        return not (told or self.metrics or self.eval_metrics or self.epoch_done or self.counters != NOWHERE)

    @classmethod
    def training(
        cls,
        grammar: str,
        counters: Counters,
        loss_name: str,
        loss: float,
        *,
        metrics: Mapping[str, float] | None = None,
        learning_rate: float | None = None,
    ) -> LineReading:
        """Create the reading of a line that is certainly of training, with its loss and other ``metrics``."""
        return cls(
            grammar,
            counters,
            loss=loss,
            loss_name=loss_name,
            learning_rate=learning_rate,
            metrics={loss_name: loss, **(metrics or {})},
            series=series_name(loss_name, counters),
            certain=True,
        )

    @classmethod
    def evaluation(cls, grammar: str, metrics: Mapping[str, float]) -> LineReading:
        """Create the reading of an evaluation's line, without counters: they may be those of the evaluation's loop."""
        return cls(grammar, phase=Phase.EVAL, eval_metrics=metrics, declared=True)


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One reading placed in its run; this is what a live monitor follows."""

    run: int
    """Index of the run within the log, from 0: several launches may share a file."""
    counters: Counters
    phase: Phase
    loss: float | None
    """The training loss, never an evaluation loss."""
    learning_rate: float | None
    throughput: float | None
    metrics: Mapping[str, float]
    eval_metrics: Mapping[str, float]
    series: str
    """The series of ``loss``. A log may hold several (per batch, per epoch); `LogReader.primary` names the one to
    chart."""
    format: str
    part: bool = False
    """True if ``loss`` is one of several parts, none of which is "the loss"."""
    first_epoch: int = 0
    """The number that this run gives its first epoch, 0 or 1."""
    epoch_done: bool = False
    """True if the epoch of ``counters`` is over and no other has begun."""
    epoch_length: Number | None = None
    """Steps per epoch as observed, not as printed; for the axis of a chart."""
    of_samples: bool = False
    """True if ``epoch_step`` counts samples: usable as an axis, but not as steps of the run."""
    of_trainings: bool = False
    """True if epochs are rounds of many trainings."""
    acts: bool = False
    """True if lines with a step tell of episodes: steps are those in an environment, not updates of the network."""
    undescribed: bool = False
    """True if the counters are those of a bar that shows no loss and does not say what it counts."""
    passes: int = 0
    """How many times a bar was filled before, if no epoch is printed."""
    time: float | None = None
    """When it was measured, in Unix seconds; None if the file does not say."""
    verbatim: bool = False
    """True if all values except the loss and the learning rate are in the metrics, under the names of their curves."""

    @property
    def run_step(self) -> float | None:
        """Steps since the start of the run, even if the count restarts with each epoch; None if unknown."""
        step = self.counters.run_step(self.first_epoch, self.epoch_length)
        return step if step is None else step + self.passes * (self.counters.epoch_steps or 0)

    @property
    def newest(self) -> MetricPoint:
        """The point itself, for symmetry with `PointColumns`."""
        return self

    @property
    def epoch(self) -> Number | None:
        """The epoch, as printed."""
        return self.counters.epoch

    @property
    def step(self) -> Number | None:
        """The step of the run, or else that of the epoch, as printed."""
        return self.counters.shown_step


@dataclass(frozen=True, slots=True)
class PointColumns:
    """Many consecutive points of one series, as columns of equal length."""

    newest: MetricPoint
    """The last of the points."""
    steps: Sequence[float] | None
    """Counted over the whole run; None if unknown."""
    epochs: Sequence[float]
    """NaN where unknown."""
    losses: Sequence[float]
    rates: Sequence[float] | None
    values: Mapping[str, Sequence[float]]
    """Every named value, of training and of evaluations."""
    times: Sequence[float] | None = None
    """When the values were measured, in Unix seconds; None if the file does not say."""


Point = MetricPoint | PointColumns


@dataclass(frozen=True, slots=True)
class LossSummary:
    """The training loss of the last run in the log: first value, last value, number of values."""

    first: float
    last: float
    count: int


class Standing(NamedTuple):
    """The state of a run as a whole, as far as its log reveals it."""

    device: str | None = None
    """What it trains on: ``cpu``, ``mps``, ``cuda:0``; ``gpu`` if the log is no more specific."""
    done: bool = False
    """True if a line says that the training is over, or everything planned is done."""
    failure: str | None = None
    """The exception that the log ends with, as printed."""
    planned_steps: Number | None = None
    """The steps of the whole training, if a line calls them the total."""


UNTOLD = Standing()
"""Nothing is known of the run as a whole."""


@dataclass(frozen=True, slots=True)
class ParsedLog:
    """The summary of a log or metric file; if it holds several runs, of the last one."""

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
    of_samples: bool = False
    """True if ``step`` and ``steps`` count samples of an epoch."""
    standing: Standing = UNTOLD
    read_in_part: str | None = None
    """What was not read of the file, in words; None if everything was."""


_MULTIPLIERS = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "g": 1_000_000_000}
_SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


def parse_number(text: str) -> Number | None:
    """Return ``text`` as an int if it is printed as one (``1,234`` too), else as a float; None if not a number."""
    if len(text) > 64 or "_" in text:
        return None
    try:
        return int(text) if "." not in text else float(text)
    except ValueError:
        pass
    if text[-1:].isdigit() or text[-1:] == ".":  # exponents, thousands separators, a typographic minus
        bare = text.replace(",", "").replace("−", "-")
        try:
            return int(bare) if bare.lstrip("+-").isdecimal() else float(bare)
        except ValueError:
            return None
    bare = text.strip()
    value = _SPECIAL.get(bare.lower().lstrip("+-"))
    return value if value is None or not bare.startswith("-") else -value


def parse_count(text: str, suffix: str = "") -> Number | None:
    """Parse a counter such as ``1,234``, ``1K`` or ``2.5M`` (an int: 2,500,000); None if it is not a finite number."""
    value = parse_number(text)
    if value is None or not math.isfinite(value):
        return None
    value *= _MULTIPLIERS.get(suffix.lower(), 1)
    return int(value) if value == int(value) and (suffix or isinstance(value, int)) else value


def as_number(value: object) -> Number | None:
    """Return a value of JSON, CSV or a Python literal as a number, quoted or not; None for anything else.

    JSON integers may have any length: one that does not fit a signed 64-bit integer gives None.
    """
    if isinstance(value, str):
        value = parse_number(value)
    if isinstance(value, float):
        return value
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def as_float(value: object) -> float | None:
    """Like `as_number`, but return a float."""
    number = as_number(value)
    return None if number is None else float(number)
