"""Evaluations that do not say on every line that they are some.

They are printed with spaces alone, no sign and no counter (``val_loss 1.50 val_acc 60.00%``), or their whole follows
without a word behind the batches: ``* Acc@1 75.0``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from .loss_series import LossSeries, or_zero
from .measures import is_measure, is_same, quantity
from .names import NameScope, Role, words_of
from .pairs import Pair
from .points import NOWHERE, Counters, LineReading, Number, Phase
from .told_again import Rounded, ToldAgain, as_evaluation
from .vocabulary import AVERAGE_WORDS, EVAL_WORDS, LABEL_WORDS, LOSS_WORDS, MEASURE_WORDS, TRAIN_WORDS

_Values = Mapping[str, float]
_LONGEST = 200
_LETTERS = re.compile(r"[^\W\d_]+")
_MEASURES = LOSS_WORDS | MEASURE_WORDS | {"score"}
_NAME_WORDS = _MEASURES | AVERAGE_WORDS | {"f", "log", "best", "final", "so", "far"}
_ON_KNOWN_DATA = TRAIN_WORDS | EVAL_WORDS
_LABELS = (
    EVAL_WORDS | LABEL_WORDS | {"end", "of", "training", "final", "am", "pm", "is", "was", "micro", "macro", "avg"}
)
_COMPARES = ("->", "→", "<", ">", "?")


def is_evaluation(line: str, pairs: Sequence[Pair]) -> bool:
    """Whether a line is a record of an evaluation, or a summary of several measures, by its names alone.

    Nothing joins such names to their values, so every word has to be known: each name is that of a measure of an
    evaluation, and what remains of the line is at most a label ("Validation:", "Test set"). One word more, and the line
    may be a sentence: "the val loss 1.5 is better than 1.6".
    """
    starred = line.startswith("* ") and not any(" " in pair.key for pair in pairs)  # ``* EPE 4.2``: the whole of it
    measures = [pair for pair in pairs if _is_evaluated(pair)] if len(line) <= _LONGEST else []
    if (
        len(measures) < 2
        and not starred
        and not any(pair.name.scope is NameScope.TRAIN or pair.scope is NameScope.EVAL for pair in measures)
        and not any("final" in words_of(pair.key) for pair in measures)
    ):
        return False
    if any(map(line[pairs[0].start :].__contains__, _COMPARES)):
        return False
    counted = any(pair.total and pair.name.role in (Role.BATCH, Role.STEP) for pair in pairs)
    rest, position = list[str](), 0
    for pair in pairs:
        beside = pair.name.role not in (Role.OTHER, Role.LOSS) or pair.key.lower() in ("time", "elapsed")
        in_front = line[position : pair.start]
        # ``CV Batch 78/20 loss 0.15 history loss 0.18``, ``VALID Batch 3/12, Loss 5.9, KL-Weight 0.002``
        beside = beside or (counted and (is_measure(pair.key) or in_front.startswith(", ")))
        if not (starred or beside or _is_evaluated(pair) if pair.key else pair.bracketed):  # ``60% (6000/10000)``
            return False
        before, _, beside_it = in_front.rpartition(pair.key or "(")  # ``f1-score (micro avg) 0.65``
        rest += (before, beside_it)
        position = pair.end
    headed = set(_LETTERS.findall(pairs[0].said.lower()))
    return {word.lower() for word in _LETTERS.findall(" ".join([*rest, line[position:]]))} <= _LABELS | headed


def _is_evaluated(pair: Pair) -> bool:
    """``val_loss``, ``test accuracy``, or a plain ``loss`` behind "Test:"; ``accuracy 97/100`` counts samples."""
    own = {word for word in words_of(pair.key) if not word.isdigit()} - (TRAIN_WORDS | EVAL_WORDS)
    evaluated = pair.scope is NameScope.EVAL or LOSS_WORDS.isdisjoint(own)
    return evaluated and not pair.total and not own.isdisjoint(_MEASURES) and own <= _NAME_WORDS


class Banner(NamedTuple):
    """What a line of its own has announced: that what follows is an evaluation, or training."""

    phase: Phase = Phase.TRAIN
    sure: bool = False
    """Whether it says that the phase is under way; a bare "eval:" may head a list of settings."""
    epoch: Number | None = None
    """The number behind it: a record of that epoch is its own."""
    told: bool = False
    """Whether a line has told values that it calls those of an evaluation since: the next step is of training."""
    repeats: str = ""
    """The ``best`` or the ``final`` model, where it heads what that had come to, which is told again."""
    whose: str = ""
    """``Validation`` or ``Test``, in front of names below it that do not say it: the other one has told them before."""

    @property
    def is_evaluation(self) -> bool:
        """Whether an evaluation is under way beyond doubt."""
        return self.phase is Phase.EVAL and self.sure

    def over(
        self, reading: LineReading, before: Counters, current: Counters, *, trained: bool
    ) -> tuple[LineReading, Banner]:
        """The reading as it is meant below this banner, and the banner that holds from there on.

        Args:
            before: where training stood when it last told the same.
            current: the counters that hold.
            trained: whether any loss was counted.
        """
        if self.phase is Phase.TRAIN or reading.bar:
            return reading, self
        if self.repeats:
            return (reading, Banner()) if _goes_on(reading, current) else (_as_told_again(reading, self.repeats), self)
        epoch, step = reading.counters.epoch, reading.counters.shown_step
        # A bare "eval:" in front of the first loss that is counted headed a list of settings.
        unsure = not self.sure and not trained and reading.loss is not None and step is not None
        new_epoch = epoch is not None and epoch != current.epoch
        same_plan = reading.counters.shown_steps == before.shown_steps
        goes_on = step is not None and before.shown_step is not None and step > before.shown_step and same_plan
        over = self.told and reading.loss is not None and step is not None
        # Before any training the first record of an epoch is the evaluation's, the next one is not.
        ours = epoch is not None and (self.sure or epoch == self.epoch)
        first = ours and not trained and reading.loss is not None and step is None
        over = over or (first and self.told)
        if unsure or reading.certain or (new_epoch and not first) or goes_on or over:
            return reading, Banner()
        if reading.loss is None and not reading.metrics:
            return self._named(reading), self._replace(told=self.told or bool(reading.eval_metrics))
        held, steps = reading.counters if first else NOWHERE, reading.counters.shown_steps
        # Where no total is told, a step behind those that were trained is the evaluation's own.
        is_own = not same_plan if steps is not None else step is not None and step < or_zero(current.shown_step)
        own_count = None if step is None or not is_own else (step, math.inf if steps is None else steps)
        evaluated = self._named(as_evaluation(reading, held, own_count))
        return evaluated, self._replace(told=self.told or not (trained or step))

    def _named(self, reading: LineReading) -> LineReading:
        """The reading with the data in its names."""
        if not self.whose:
            return reading
        names = {name: not _ON_KNOWN_DATA.isdisjoint(words_of(name)) for name in reading.eval_metrics}
        told = {name if names[name] else f"{self.whose} {name}": now for name, now in reading.eval_metrics.items()}
        return replace(reading, eval_metrics=told)


def _goes_on(reading: LineReading, current: Counters) -> bool:
    """Whether training goes on beyond where it stands, or begins anew, with a reading."""
    epoch, step = reading.counters.epoch, reading.counters.shown_step
    further = or_zero(epoch) > or_zero(current.epoch) or or_zero(step) > or_zero(current.shown_step)
    place = step if epoch is None else epoch
    return further or (reading.loss is not None and place is not None and place <= 1)


def _as_told_again(reading: LineReading, which: str) -> LineReading:
    """The reading with nothing but what an evaluation may have measured of the best model for the first time.

    Some programs tell the best so far alone, epoch by epoch: measures that do not say what they were measured on keep
    ``which`` before their names.
    """
    measured = reading.metrics if any(map(is_measure, reading.metrics)) else {}
    told = {**{f"{which} {name}": value for name, value in measured.items()}, **reading.eval_metrics}
    again = replace(reading, phase=Phase.EVAL, counters=NOWHERE, loss=None, series="", metrics={}, plan=False)
    return replace(again, eval_metrics=told, learning_rate=None, throughput=None)


def as_validation(reading: LineReading) -> LineReading:
    """The record of an epoch, where the program has said that it reports its errors on the validation set."""
    name = reading.loss_name
    is_of_steps = reading.bar or reading.counters.shown_step is not None
    if reading.loss is None or is_of_steps or not TRAIN_WORDS.isdisjoint(words_of(name)):
        return reading
    measures = {("val_loss" if told == name else told): value for told, value in reading.metrics.items()}
    return as_evaluation(replace(reading, metrics={**measures, "val_loss": reading.loss}), reading.counters, None)


class Evaluated:
    """What was evaluated since training was last seen, and how it was called."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._told_again, self._rounded = ToldAgain(), Rounded()
        self._extremes: dict[str, tuple[_Values, _Values, _Values]] = {}
        """What was told beside the lowest, the highest and the newest value of each, and these."""
        self._is_over = False
        """Whether a line has said that training is over, and none of training has come since."""
        self._told = self._first_headed = ""
        self._alone = True
        """Whether no line of training has told a loss or an epoch."""
        self._first = self._epoch = math.inf
        """The first epoch that an evaluation told, and the newest."""
        self._trained: LineReading | None = None
        """The newest loss of training, if its line said where."""
        self._measured: LineReading | None = None
        """The newest line of training that told a step and measures, and no loss."""
        self.is_behind_training = False
        """Whether a line has said that training is over, and none has told a place since."""

    def training_over(self) -> None:
        """A line has said so."""
        self._is_over = True
        self.is_behind_training = self._trained is not None

    def told_apart(self, whose: str) -> str:
        """``Validation`` or ``Test`` of a heading, where those before it were of the other; what is below ``Training``
        is none of an evaluation's."""
        if whose == "Training":
            self._names.clear()
            return ""
        self._first_headed = self._first_headed or whose
        return "" if whose == self._first_headed else whose

    def trained_at(self, reading: LineReading, series: LossSeries | None) -> Counters:
        """Where training stood when it last told the same as a reading.

        Args:
            series: of the loss of the reading, if it has had losses in this run.
        """
        if series is not None:
            return series.counters
        last = self._measured if reading.loss is None else None
        return last.counters if last is not None and last.metrics.keys() == reading.metrics.keys() else NOWHERE

    def _belongs_behind(self, reading: LineReading) -> bool:
        """Whether values that training had with a place come without one, and training is over."""
        if not self.is_behind_training or self._trained is None:
            return False
        if reading.bar or reading.certain or reading.counters != NOWHERE:
            return False
        if reading.loss is not None:  # training's last loss again is none of an evaluation
            same = quantity(reading.loss_name) == quantity(self._trained.loss_name)
            return same and reading.loss != self._trained.loss
        known = {quantity(name)[1] for name in self._trained.metrics}
        return bool(reading.metrics) and all(quantity(name)[1] in known for name in reading.metrics)

    def _without_known(self, reading: LineReading) -> LineReading:
        """What is told behind the end of training without those that were told along it: the best, and the last."""
        if not self._is_over or not reading.eval_metrics:
            return reading
        told = {name.lower(): now for name, now in reading.eval_metrics.items()}
        known = [one for name in told for one in self._extremes.get(name, ())]
        again = {name for one in known for name, now in told.items() if is_same(now, one.get(name))}
        if (again or len(told) > 1) and any(
            all(told[name] == one.get(name) for name in told.keys() - again) for one in known
        ):
            again = set(told)  # with values that have too few decimals to be known alone
        new = {name: now for name, now in reading.eval_metrics.items() if name.lower() not in again}
        return reading if len(new) == len(told) else replace(reading, eval_metrics=new)

    def begins_anew(self, reading: LineReading) -> bool:
        """Whether epochs that evaluations alone have told are back at the first one: another run tells it."""
        epoch = reading.counters.epoch
        evaluates = self._alone and reading.phase is Phase.EVAL and not reading.bar
        anew = evaluates and epoch is not None and epoch <= self._first < self._epoch
        self._epoch = math.inf if anew else self._epoch
        return anew

    def of(self, reading: LineReading) -> LineReading:
        """What is measured behind the end of training, or without a counter and a loss of it, is the evaluation's."""
        reading = self._without_known(self._rounded.of(self._told_again.of(reading)))
        if self._belongs_behind(reading):
            return as_evaluation(reading, NOWHERE, None)
        if reading.phase is Phase.EVAL and reading.loss is not None:  # ``* loss 0.5 acc 91.2``: whose, stands above it
            is_known = quantity(reading.loss_name)[1] in self._names
            reading = replace(reading, loss=None, series="") if is_known else replace(reading, phase=Phase.TRAIN)
        own = {} if reading.certain or reading.loss is not None or reading.counters.positioned else reading.metrics
        starred = reading.phase is Phase.EVAL
        names = {name: self._names.get(quantity(name)[1], name if starred else None) for name in own}
        evaluated = {known: own[name] for name, known in names.items() if known is not None}
        if not own or len(evaluated) < len(own):
            return reading
        return replace(reading, phase=Phase.EVAL, metrics={}, eval_metrics={**evaluated, **reading.eval_metrics})

    def learn(self, reading: LineReading) -> None:
        """Another line of training or of an evaluation."""
        self._told_again.learn(reading)
        self._rounded.learn(reading)
        self._is_over = self._is_over and not reading.counters.positioned and reading.loss is None
        told = {name.lower(): now for name, now in reading.eval_metrics.items()}
        for name, now in told.items():
            low, high, _ = self._extremes.get(name, (told, told, told))
            self._extremes[name] = (told if now < low[name] else low, told if now > high[name] else high, told)
        self.is_behind_training = self.is_behind_training and not reading.counters.positioned
        if reading.loss is not None:
            self._names.clear()
            self._trained = reading if reading.counters.positioned and not reading.bar else None
        elif reading.phase is Phase.TRAIN and reading.metrics and reading.counters.shown_step is not None:
            self._measured = self._measured if reading.bar else reading
        if reading.phase is Phase.EVAL and reading.counters.epoch is not None:
            self._epoch = reading.counters.epoch
            self._first = min(self._first, self._epoch)
        elif reading.loss is not None or (reading.counters.epoch is not None and not reading.bar):
            self._alone = False
        self._names.update((quantity(name)[1], name) for name in reading.eval_metrics)

    def is_new(self, reading: LineReading) -> bool:
        """Whether its evaluation is another one than that of the reading before."""
        told, self._told = self._told, str(reading.eval_metrics) if reading.eval_metrics else self._told
        return bool(reading.eval_metrics) and told != self._told
