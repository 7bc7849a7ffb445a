"""What readers of logs and metric files hand out, and numbers as programs print them. Unknown is None, never 0."""

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

    @property
    def positioned(self) -> bool:
        """Whether they say where the run stands, not only how far it is to go."""
        return self.epoch is not None or self.shown_step is not None

    def or_else(self, held: Counters) -> Counters:
        """These counters; those that are unknown as ``held`` has them. A total that they have left behind is none."""
        if self == NOWHERE:
            return held
        found = Counters(*[held[at] if own is None else own for at, own in enumerate(self)])
        if self.epochs is None and self.epoch is not None and held.epochs is not None and self.epoch > held.epochs:
            found = found._replace(epochs=None)
        if self.steps is None and self.step is not None and held.steps is not None and self.step > held.steps:
            found = found._replace(steps=None)
        return found

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
        if not length and before:
            return None
        return before * float(length or 0) + float(self.epoch_step)


NOWHERE = Counters()
"""No counter is known."""


class Priority(IntEnum):
    """Who is asked first whether a line or a file is of its format; within one priority the names decide."""

    DECLARED = 0
    """The pattern of a profile."""
    EXACT = 10
    """Nothing else looks like it: the notation of one program, the signature of a file."""
    SHARED = 50
    """A notation of many programs: tables, dictionaries, progress bars, CSV."""
    SENTENCE = 70
    """A number within words: "learning rate reduced to 1e-4"."""
    GENERAL = 90
    """What reads all that nothing else has claimed."""


def series_name(loss_name: str, counters: Counters) -> str:
    """The name of a series of losses: readings with the same name and the same counters on their line are one.

    ``loss@s`` is the loss printed beside a step, ``loss@e`` that beside an epoch: one log may hold both, and only one
    of them is charted.
    """
    marks = (("e", counters.epoch), ("s", counters.step), ("b", counters.epoch_step))
    return f"{loss_name.lower()}@{''.join(mark for mark, value in marks if value is not None)}"


@dataclass(frozen=True, slots=True)
class LineReading:
    """What one line or record says, before it is placed in a run: what grammars hand out.

    `training` and `evaluation` make the two usual ones. Only ``grammar`` is needed: whatever a line does not say stays
    as it is.
    """

    grammar: str
    """The name of the format, as ``mpstui parse`` prints it."""
    counters: Counters = NOWHERE
    phase: Phase = Phase.TRAIN
    loss: float | None = None
    """The training loss; never one of an evaluation."""
    loss_name: str = ""
    """What the line calls it: ``loss`` stands for the whole, ``ctc_loss`` may be a part (`names.classify`)."""
    learning_rate: float | None = None
    rate_name: str = ""
    """What the line calls it, where it may be that of a part: ``width_lr``."""
    throughput: float | None = None
    """Per second, in the unit of ``throughput_unit``."""
    throughput_unit: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Every value of training by the name as printed, the loss among them: what is not in here has no chart."""
    eval_metrics: Mapping[str, float] = field(default_factory=dict)
    """Every value of an evaluation by the name as printed."""
    series: str = ""
    """Which series of the log the loss belongs to (`series_name`); empty without a loss."""
    bar: bool = False
    """True for a progress bar's frame: drawn again and again, its counters stand for the bar's own loop."""
    rank: int = 0
    """How sure it is that a bar is the training loop's: the highest wins, 3 where it shows a training loss."""
    plan: bool = False
    """True for a banner or a setting: it plans (totals, initial learning rate) and counts nothing."""
    steps_name: str = ""
    """What a plan calls its steps: ``total_steps``, ``iterations``."""
    told_step: Number | None = None
    """The step of the run that an epoch's bar names behind itself (``7/100 [.., step=307]``), which it is not."""
    brief: bool = False
    """True for the last frame of a bar without a word on what it counts that was full in a moment."""
    running: bool = False
    """True when a bar's loss is an average that runs through the epoch: one reading per epoch, the last drawn."""
    certain: bool = False
    """True when the line itself says that its loss is of training. Any other loss below the banner of an evaluation
    ("Validating ...") is taken for the evaluation's."""
    declared: bool = False
    """True when the names are those of columns of measured values, among which settings are none."""
    of_samples: bool = False
    """True when the steps of the epoch are samples."""
    under_way: tuple[Number, Number] | None = None
    """Of how many batches out of how many an evaluation tells what it has measured so far: no result yet."""
    epoch_done: bool = False
    """True when the record says that the epoch it names is over."""
    part: bool = False
    """True when the loss is one part of several that none stands for: drawn by its own name, never as "loss"."""
    group: str = ""
    """The word in front of the names, which may say whose values they are: ``Seen: acc: 0.9``."""
    bare: bool = False
    """True when the loss is called after its data alone ("train"): what it does tells whether it is one."""
    of_trainings: bool = False
    """True when the epoch is a round of many trainings, each of which counts from its start again."""
    unnamed: bool = False
    """True when nothing on the line calls its epoch one: steps of the run may be counted like that as well."""
    restart: bool = False
    """True when the record can only be the first of a new run (a repeated table header, a banner)."""

    @property
    def says_nothing(self) -> bool:
        """Whether neither a value nor a counter is in it."""
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
        """A line that is of training beyond doubt, with its loss and other ``metrics``."""
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
        """A line with values of an evaluation; its counters may be those of its own loop, so they are left out."""
        return cls(grammar, phase=Phase.EVAL, eval_metrics=metrics, declared=True)


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
    part: bool = False
    """Whether ``loss`` is one part of several, none of which is "the loss"."""
    first_epoch: int = 0
    """What this run calls its first epoch."""
    epoch_done: bool = False
    """Whether the epoch of ``counters`` is over and no other has begun."""
    epoch_length: Number | None = None
    """Steps of an epoch as far as one was seen to go, for an axis; nobody planned them."""
    of_samples: bool = False
    """Whether the steps of the epoch are samples: an axis, but no steps of the run."""
    of_trainings: bool = False
    """Whether epochs are rounds of many trainings."""
    undescribed: bool = False
    """Whether its counters are those of a bar without a loss that does not say what it counts."""
    passes: int = 0
    """How often a bar was filled before, where no epoch is told."""
    time: float | None = None
    """When it was measured, Unix seconds, where the file tells it."""
    verbatim: bool = False
    """Whether ``metrics`` holds every value but the loss and the learning rate, each under the name of its curve."""

    @property
    def run_step(self) -> float | None:
        """Steps since the start of the run, also where each epoch counts anew; None when that cannot be told."""
        step = self.counters.run_step(self.first_epoch, self.epoch_length)
        return step if step is None else step + self.passes * (self.counters.epoch_steps or 0)

    @property
    def newest(self) -> MetricPoint:
        """Itself; see `PointColumns`."""
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
class PointColumns:
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
    times: Sequence[float] | None = None
    """When they were measured, Unix seconds; None where the file does not tell."""


Point = MetricPoint | PointColumns


@dataclass(frozen=True, slots=True)
class LossSummary:
    """A training-loss series in three figures, of the last run in the log."""

    first: float
    last: float
    count: int


class Standing(NamedTuple):
    """Where a run stands as a whole, as far as its log says so."""

    device: str | None = None
    """What it trains on: ``cpu``, ``mps``, ``cuda:0``; ``gpu`` where no more is said."""
    done: bool = False
    """The training is over, by a line that says so or because all that was planned is done."""
    failure: str | None = None
    """The exception that the log ends with, as printed."""
    planned_steps: Number | None = None
    """The steps of the whole training, where a line calls them the total."""


UNTOLD = Standing()
"""Nothing is said of the run as a whole."""


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
    of_samples: bool = False
    """Whether ``step`` and ``steps`` are samples of an epoch."""
    standing: Standing = UNTOLD
    read_in_part: str | None = None
    """What a reader stumbled over."""


_MULTIPLIERS = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "g": 1_000_000_000}
_SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


def parse_number(text: str) -> Number | None:
    """``text`` as an int if it is printed as one (``1,234`` too), else as a float; None if it is no number."""
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
    """A counter such as ``1,234``, ``1K`` or ``2.5M``; a whole result is an int."""
    value = parse_number(text)
    if value is None or not math.isfinite(value):
        return None
    value *= _MULTIPLIERS.get(suffix.lower(), 1)
    return int(value) if value == int(value) and (suffix or isinstance(value, int)) else value


def as_number(value: object) -> Number | None:
    """A number from what JSON, CSV or a Python literal holds (numbers, quoted numbers); None for anything else.

    JSON's integers have any length; what no counter of 64 bits holds is none.
    """
    if isinstance(value, str):
        value = parse_number(value)
    if isinstance(value, float):
        return value
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def as_float(value: object) -> float | None:
    """Like `as_number`, but always a float."""
    number = as_number(value)
    return None if number is None else float(number)
