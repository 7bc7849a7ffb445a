"""Evaluations that do not say on every line what they are.

Their names and values are joined by spaces alone, without a counter (``val_loss 1.50 val_acc 60.00%``), or a summary
without such a word follows the batches: ``* Acc@1 75.0``.
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
    """True if its names alone make a line the record of an evaluation, or a summary of several measures.

    Nothing joins such names to their values, so every word has to be known: each name is a measure of an evaluation,
    and the rest of the line is at most a label ("Validation:", "Test set"). With one more word the line may be a
    sentence: "the val loss 1.5 is better than 1.6".
    """
    starred = line.startswith("* ") and not any(" " in pair.key for pair in pairs)  # ``* EPE 4.2``: a summary
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
    """True for ``val_loss``, ``test accuracy`` or a ``loss`` after "Test:", but ``accuracy 97/100`` counts samples."""
    own = {word for word in words_of(pair.key) if not word.isdigit()} - (TRAIN_WORDS | EVAL_WORDS)
    evaluated = pair.scope is NameScope.EVAL or LOSS_WORDS.isdisjoint(own)
    return evaluated and not pair.total and not own.isdisjoint(_MEASURES) and own <= _NAME_WORDS


class Banner(NamedTuple):
    """What a line of its own has announced: an evaluation, or training."""

    phase: Phase = Phase.TRAIN
    sure: bool = False
    """True if it says that the phase is under way; a bare "eval:" may head a list of settings."""
    epoch: Number | None = None
    """The epoch it names: a record of that epoch belongs to it."""
    told: bool = False
    """True if a line below it has named values as an evaluation's: the next step is of training."""
    repeats: str = ""
    """``best`` or ``final`` if it heads that model's results, which repeat earlier ones."""
    whose: str = ""
    """``Validation`` or ``Test``, the prefix for names below it that do not say which: the other one came before."""

    @property
    def is_evaluation(self) -> bool:
        """True if an evaluation is under way beyond doubt."""
        return self.phase is Phase.EVAL and self.sure

    def over(
        self, reading: LineReading, before: Counters, current: Counters, *, trained: bool
    ) -> tuple[LineReading, Banner]:
        """Return the reading as it is meant below this banner, and the banner for the lines after it.

        Args:
            before: where training stood when it last reported the same values.
            current: the counters as they stand.
            trained: whether any loss has been counted.
        """
        if self.phase is Phase.TRAIN or reading.bar:
            return reading, self
        if self.repeats:
            return (reading, Banner()) if _goes_on(reading, current) else (_as_told_again(reading, self.repeats), self)
        epoch, step = reading.counters.epoch, reading.counters.shown_step
        # A bare "eval:" before the first loss of a counted step headed a list of settings.
        unsure = not self.sure and not trained and reading.loss is not None and step is not None
        new_epoch = epoch is not None and epoch != current.epoch
        same_plan = reading.counters.shown_steps == before.shown_steps
        goes_on = step is not None and before.shown_step is not None and step > before.shown_step and same_plan
        over = self.told and reading.loss is not None and step is not None
        # Before any training, the first record of an epoch is the evaluation's; the next one is not.
        ours = epoch is not None and (self.sure or epoch == self.epoch)
        first = ours and not trained and reading.loss is not None and step is None
        over = over or (first and self.told)
        if unsure or reading.certain or (new_epoch and not first) or goes_on or over:
            return reading, Banner()
        if reading.loss is None and not reading.metrics:
            return self._named(reading), self._replace(told=self.told or bool(reading.eval_metrics))
        held, steps = reading.counters if first else NOWHERE, reading.counters.shown_steps
        # Without a total, a step lower than those already trained is the evaluation's own.
        is_own = not same_plan if steps is not None else step is not None and step < or_zero(current.shown_step)
        own_count = None if step is None or not is_own else (step, math.inf if steps is None else steps)
        evaluated = self._named(as_evaluation(reading, held, own_count))
        return evaluated, self._replace(told=self.told or not (trained or step))

    def _named(self, reading: LineReading) -> LineReading:
        """Return the reading with ``whose`` as a prefix to names that do not say which data they are of."""
        if not self.whose:
            return reading
        names = {name: not _ON_KNOWN_DATA.isdisjoint(words_of(name)) for name in reading.eval_metrics}
        told = {name if names[name] else f"{self.whose} {name}": now for name, now in reading.eval_metrics.items()}
        return replace(reading, eval_metrics=told)


def _goes_on(reading: LineReading, current: Counters) -> bool:
    """True if a reading takes training further than ``current``, or starts it over."""
    epoch, step = reading.counters.epoch, reading.counters.shown_step
    further = or_zero(epoch) > or_zero(current.epoch) or or_zero(step) > or_zero(current.shown_step)
    place = step if epoch is None else epoch
    return further or (reading.loss is not None and place is not None and place <= 1)


def _as_told_again(reading: LineReading, which: str) -> LineReading:
    """Return only what an evaluation of the best model may have measured for the first time.

    Some programs print the best values so far alone, epoch by epoch. Measures that do not say what they were measured
    on get ``which`` as a prefix.
    """
    measured = reading.metrics if any(map(is_measure, reading.metrics)) else {}
    told = {**{f"{which} {name}": value for name, value in measured.items()}, **reading.eval_metrics}
    again = replace(reading, phase=Phase.EVAL, counters=NOWHERE, loss=None, series="", metrics={}, plan=False)
    return replace(again, eval_metrics=told, learning_rate=None, throughput=None)


def as_validation(reading: LineReading) -> LineReading:
    """Turn the record of an epoch into an evaluation, if the program says it reports errors on the validation set."""
    name = reading.loss_name
    is_of_steps = reading.bar or reading.counters.shown_step is not None
    if reading.loss is None or is_of_steps or not TRAIN_WORDS.isdisjoint(words_of(name)):
        return reading
    measures = {("val_loss" if told == name else told): value for told, value in reading.metrics.items()}
    return as_evaluation(replace(reading, metrics={**measures, "val_loss": reading.loss}), reading.counters, None)


class EpochsNamed:
    """Tells the epoch that an evaluation belongs to from a number of its own: ``VALIDATION : Epoch 1000000``.

    Where training names its epochs, an evaluation is at most as far ahead as training has ever gone at once.
    """

    def __init__(self) -> None:
        self._told = NOWHERE
        """The newest epoch that training has named, or later an evaluation by a number that can be believed."""
        self._stride: Number = 1
        self._disbelieved: Number | None = None
        """The newest number that was not, until training names another epoch."""

    def of(self, reading: LineReading) -> LineReading:
        """Return the reading of an evaluation without a number that cannot be an epoch of this training."""
        epoch, told, before = reading.counters.epoch, self._told, self._disbelieved
        if reading.phase is not Phase.EVAL or epoch is None or told.epoch is None:
            return reading
        # Only evaluations count on if training has named no epoch in between: ``Starting from epoch 0`` was its last.
        goes_on = epoch <= told.epoch + self._stride or (before is not None and before < epoch)
        if goes_on and (told.epochs is None or epoch <= told.epochs):
            return reading
        self._disbelieved = epoch
        return replace(reading, counters=reading.counters._replace(epoch=None, epochs=None))

    def learn(self, reading: LineReading) -> None:
        """Take in another reading of training or of an evaluation, as `of` returned it."""
        epoch, before = reading.counters.epoch, self._told.epoch
        if epoch is None or (reading.phase is Phase.EVAL and (before is None or epoch <= before)):
            return
        if reading.phase is Phase.TRAIN and before is not None and epoch != before:
            self._stride, self._disbelieved = max(self._stride, epoch - before), None
        self._told = Counters(epoch, reading.counters.epochs).or_else(self._told)


class Evaluated:
    """What was evaluated since training was last seen, and by which names."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._told_again, self._rounded, self._epochs_named = ToldAgain(), Rounded(), EpochsNamed()
        self._extremes: dict[str, tuple[_Values, _Values, _Values]] = {}
        """For each metric, the values reported along with its lowest, its highest and its newest one."""
        self._is_over = False
        """True if a line has said that training is over, and no training has come since."""
        self._told = self._first_headed = ""
        self._alone = True
        """True if no training line has reported a loss or an epoch."""
        self._first = self._epoch = math.inf
        """The first and the newest epoch that an evaluation has named."""
        self._trained: LineReading | None = None
        """The reading with the newest training loss, if it has a position."""
        self._measured: LineReading | None = None
        """The newest training reading with a step and metrics but no loss."""
        self.is_behind_training = False
        """True if a line has said that training is over, and none has given a position since."""

    def training_over(self) -> None:
        """Note that a line has said that training is over."""
        self._is_over = True
        self.is_behind_training = self._trained is not None

    def told_apart(self, whose: str) -> str:
        """Return a heading's ``Validation`` or ``Test`` if the first one was the other, else an empty string.

        What is below ``Training`` is no evaluation's.
        """
        if whose == "Training":
            self._names.clear()
            return ""
        self._first_headed = self._first_headed or whose
        return "" if whose == self._first_headed else whose

    def trained_at(self, reading: LineReading, series: LossSeries | None) -> Counters:
        """Return where training stood when it last reported the same values as a reading.

        Args:
            series: the series of the reading's loss, if it has had losses in this run.
        """
        if series is not None:
            return series.counters
        last = self._measured if reading.loss is None else None
        return last.counters if last is not None and last.metrics.keys() == reading.metrics.keys() else NOWHERE

    def _belongs_behind(self, reading: LineReading) -> bool:
        """True if training is over and values come without a position that training reported with one."""
        if not self.is_behind_training or self._trained is None:
            return False
        if reading.bar or reading.certain or reading.counters != NOWHERE:
            return False
        if reading.loss is not None:  # a repeat of training's last loss is not an evaluation's
            same = quantity(reading.loss_name) == quantity(self._trained.loss_name)
            return same and reading.loss != self._trained.loss
        known = {quantity(name)[1] for name in self._trained.metrics}
        return bool(reading.metrics) and all(quantity(name)[1] in known for name in reading.metrics)

    def _without_known(self, reading: LineReading) -> LineReading:
        """Drop values after the end of training that were reported during it: the best, the last."""
        epoch = reading.counters.epoch
        is_next = epoch is not None and epoch > self._epoch  # it was no end: a part was over, an evaluation's own loop
        if not self._is_over or not reading.eval_metrics or is_next:
            return reading
        told = {name.lower(): now for name, now in reading.eval_metrics.items()}
        known = [one for name in told for one in self._extremes.get(name, ())]
        again = {name for one in known for name, now in told.items() if is_same(now, one.get(name))}
        if (again or len(told) > 1) and any(
            all(told[name] == one.get(name) for name in told.keys() - again) for one in known
        ):
            again = set(told)  # the others have too few decimals to be recognized alone
        new = {name: now for name, now in reading.eval_metrics.items() if name.lower() not in again}
        return reading if len(new) == len(told) else replace(reading, eval_metrics=new)

    def begins_anew(self, reading: LineReading) -> bool:
        """True if only evaluations have named epochs and these return to the first one: another run begins."""
        epoch = reading.counters.epoch
        evaluates = self._alone and reading.phase is Phase.EVAL and not reading.bar
        anew = evaluates and epoch is not None and epoch <= self._first < self._epoch
        self._epoch = math.inf if anew else self._epoch
        return anew

    def of(self, reading: LineReading) -> LineReading:
        """Give to the evaluation what comes after the end of training, or without a position and a training loss."""
        reading = self._without_known(self._rounded.of(self._told_again.of(self._epochs_named.of(reading))))
        if self._belongs_behind(reading):
            return as_evaluation(reading, NOWHERE, None)
        if reading.phase is Phase.EVAL and reading.loss is not None:  # ``* loss 0.5 acc 91.2``: lines above say whose
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
        """Take in another reading of training or of an evaluation."""
        for part in (self._told_again, self._rounded, self._epochs_named):
            part.learn(reading)
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
        """True if a reading has another evaluation than the reading before it."""
        told, self._told = self._told, str(reading.eval_metrics) if reading.eval_metrics else self._told
        return bool(reading.eval_metrics) and told != self._told
