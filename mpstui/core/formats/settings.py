"""What a program was told, beside what it measures: arguments, options, configurations however they are printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .loss_series import or_zero
from .measures import is_measure, is_of_machine
from .names import PART, NameScope, Role, classify, words_of
from .pairs import Pair
from .points import Counters, LineReading
from .vocabulary import EVAL_WORDS, LABEL_WORDS, RATE_WORDS, TRAIN_WORDS

_CALL = re.compile(r"([A-Za-z_][\w.]{1,60})\((?=[^()]{0,200}=)")
_MEMBER = re.compile(r"""(?:"[\w ./-]{1,60}"|'[\w ./-]{1,60}') ?: ?[^,{}\[\]]{1,60},?\Z""")
"""A line of a dictionary that is printed over several: a setting, unless its name is that of a measure."""
_MANY = 8
"""So many values of which few are measures, without a loss and a counter, are the settings of a program."""
_WORD_OPTION = re.compile(r"[\w'\"][:=] ?(?:None|True|False|\[|\.{0,2}/)")
_WORDS_SIDE_BY_SIDE = 5
"""So many options on one line have a value that no measure has."""
_SCOPE_WORDS = TRAIN_WORDS | EVAL_WORDS
_RATES = RATE_WORDS | {"learning", "rate"}
_OPTION = re.compile(
    r"\W{0,8}(?P<name>[A-Za-z_][\w./ \x2d]{0,60}?)['\"]?\s{0,40}(?:[:=]|\t|(?<= )\.{3,120}(?= ))\s{0,40}"
    r"(?P<value>[^\s:=]\S{0,160}+|['\"][^\n]{0,160}['\"]|[\[({][^\n]{0,160}[\])}]|[^\d:=]{1,80})\s{0,40}"
)
_NUMBER = re.compile(r"[-+]?[\d.][\d.,_]{0,24}(?:e[-+]?\d{1,4})?\s?%?,?|[-+]?(?:nan|inf)", re.IGNORECASE)
_NUMBERS = re.compile(rf"{_NUMBER.pattern}(?: ?/ ?\d{{1,12}}| ?\(\d{{1,12}} ?/ ?\d{{1,12}}\))?", re.IGNORECASE)
"""Also ``12924 / 15711`` and ``0.757 (1614/2132)``: no option has such a value."""
_RECORD = re.compile(r"[^:=]{1,80}[:=]\s{0,8}[-+]?[\d.]|\A[\[(]?\d{1,9}\s?/\s?\d{1,9}[\])]?\Z")
"""The value of an option is no further option, and no count out of a count: ``Test iter: [3/14]``."""
_SIDE_BY_SIDE = re.compile(r"(?<=[^\s:=])\s{2,60}(?=[A-Za-z][\w./\x2d]{0,30}(?: [\w./\x2d]{1,30}){0,4}:\s{1,40}\S)")
"""Between two options on one line, as Informer and what came of it print them."""
_BETWEEN = re.compile(
    r"[\w .-]{1,60}:|[A-Z][A-Za-z-]{1,20}(?: [A-Z][A-Za-z-]{1,20}){0,4}|- \S[^:=]{0,80}|[\W_]{0,200}|#.{0,200}"
)
"""A title, a member of a list, a rule, a comment: stand between options, and are none."""
_JOINED = re.compile(r"\W{0,8}[A-Za-z]\w{0,40}[_.][A-Za-z]")
"""``fixbase_epoch: 0``: no program heads an epoch so."""
_LONGEST = 200
_LONG_OPTION = re.compile(r"[A-Za-z_][\w.-]{0,40}\s?[:=]\s?[\[{(]")
"""A dictionary or a list among options, longer than these are."""
_BEFORE = 3
"""So many options above a counter make that one too: no program begins to train without another line between."""
_ROW, _WORDS = 8, 2
"""So many lines of one option each, of which so many have a value that is no number, are a configuration."""


def planned_among(grammar: str, line: str, pairs: Sequence[Pair]) -> LineReading | None:
    """What the settings of a program plan that are printed on one line: ``lr: 0.1, data: train, epochs: 20, ...``."""
    if line.count("=") + line.count(": ") < _MANY // 2 or "{" in line:
        return None
    found = [pair for pair in pairs if pair.name.role is Role.EPOCHS and pair.marked and not (pair.unit or pair.total)]
    return LineReading(grammar, Counters(epochs=found[0].counted), plan=True) if len(found) == 1 else None


def planned_alone(grammar: str, option: Pair) -> LineReading | None:
    """What one option on a line of its own plans: ``"epochs": 30,``, ``"lr": 0.001,``."""
    epochs, words = option.counted if option.name.role is Role.EPOCHS else None, words_of(option.key)
    rate = option.measured if words and _RATES.issuperset(words) and option.value else None
    if epochs is rate is None:
        return None
    return LineReading(grammar, Counters(epochs=epochs), learning_rate=rate, plan=True)


def are_settings(named: Sequence[Pair]) -> bool:
    """Whether many values of which few are measures, without a place in the training, are a program's settings.

    What was timed is told by no settings.
    """
    few = 3 * sum(is_measure(pair.key) or is_of_machine(pair.key) for pair in named) < len(named)
    return len(named) >= _MANY and few and not any(pair.scope is NameScope.EVAL for pair in named)


def are_options(line: str, pairs: Sequence[Pair]) -> bool:
    """Whether a long line has options side by side of which several have a value that no measure has."""
    return len(pairs) >= _MANY and len(_WORD_OPTION.findall(line)) >= _WORDS_SIDE_BY_SIDE


def is_member(line: str, pairs: Sequence[Pair]) -> bool:
    """Whether a line is a setting in a dictionary that is printed over several."""
    return len(pairs) == 1 and _MEMBER.match(line) is not None and not is_measure(pairs[0].key)


def arguments(line: str, pairs: Sequence[Pair]) -> list[Pair]:
    """The arguments of calls: ``AdamW(lr=0.001)``, ``Namespace(loss=0.5)``; a measure or a phase is no function."""
    found: list[Pair] = []
    for call in _CALL.finditer(line[:2000]):
        name = call[1].rpartition(".")[2]
        if not is_measure(name) and name.lower() not in _SCOPE_WORDS | LABEL_WORDS:
            close = line.find(")", call.end())
            end = close if close >= 0 else len(line)
            found += (p for p in pairs if call.end() < p.start < end and "=" in line[call.end() : p.start])
    return found


def is_placed(reading: LineReading) -> bool:
    """Whether a reading is one of training: a "loss_weight" is a part at best, and an option more often."""
    whole = reading.loss is not None and classify(reading.loss_name).rank < PART
    return whole or reading.counters.positioned


class Options:
    """Watches for configurations with a line for each option: whatever these are called, they are no metrics."""

    def __init__(self, names: set[str]) -> None:
        """``names`` takes in those of the options."""
        self._names = names
        self._row: list[str] = []
        self._lines = self._words = 0

    @property
    def has_words(self) -> bool:
        """Whether an option among the lines above has a value that no measure has."""
        return self._words > 0

    def interrupt(self) -> None:
        """What comes next does not follow what came before."""
        if self._lines:
            self._row, self._lines, self._words = [], 0, 0

    def as_meant(self, line: str, readings: Sequence[LineReading] | None) -> Sequence[LineReading] | None:
        """What was read of a line; an epoch that stands among options (``* epoch: 15``) is planned, not reached.

        A step is neither, ``Iteration: 4``, nor is a first one beside another option, ``Num Workers: 10    Itr: 1``.
        """
        if not readings or self._lines < _BEFORE or not self._words or not (options := _options(line)):
            return readings
        joined = _JOINED.match(line) is not None
        return [_as_option(reading, alone=len(options) == 1, joined=joined) for reading in readings]

    def read(self, line: str, readings: Sequence[LineReading], *, placed: bool) -> None:
        """The next line, and what was read of it; ``placed`` where that is of training."""
        if placed or len(line) > _LONGEST:
            if placed or _LONG_OPTION.match(line) is None:
                self.interrupt()
            return
        values = _options(line) if ":" in line or "=" in line or "\t" in line or " ..." in line else ()
        if not values or any(map(_RECORD.search, values)):
            if self._lines and _BETWEEN.fullmatch(line) is None:
                self.interrupt()
            return
        self._lines += len(values)
        self._words += any(_NUMBERS.fullmatch(value.strip()) is None for value in values)
        self._row += (name for reading in readings for name in (*reading.metrics, *reading.eval_metrics))
        if self._lines >= _ROW and self._words >= _WORDS:
            self._names.update(self._row)
            self._row.clear()


def _options(line: str) -> list[str]:
    """The values of the options that a line consists of: one, or several side by side; none where it is no option."""
    parts = _SIDE_BY_SIDE.split(line.strip()) if ":" in line and "  " in line else [line]
    found = [_OPTION.fullmatch(part) for part in parts]
    return [] if None in found else [option["value"] for option in found if option is not None]


def _as_option(reading: LineReading, *, alone: bool, joined: bool) -> LineReading:
    now = reading.counters
    if any(map(is_measure, (*reading.metrics, *reading.eval_metrics))):
        return reading  # ``env: Pendulum seed: 0 steps: 2k score: -1192.5``
    if reading.loss is None and now == Counters(epoch=now.epoch):
        if or_zero(now.epoch) > 1:
            return replace(reading, counters=Counters(epochs=now.epoch), plan=True)
        return replace(reading, counters=Counters()) if joined else reading
    is_step = reading.loss is None and now.step is not None and now == Counters(step=now.step)
    begins = alone and or_zero(now.step) <= 1  # the first step, told behind the options
    return replace(reading, counters=Counters()) if is_step and not begins else reading
