"""A program's settings, as opposed to its measurements: arguments, options and configurations, however printed."""

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
"""One line of a dictionary printed over several lines: a setting, unless its name is that of a measure."""
_MANY = 8
"""This many values on a line, few of them measures, without a loss and a counter, are settings."""
_WORD_OPTION = re.compile(r"[\w'\"][:=] ?(?:None|True|False|\[|\.{0,2}/)")
_WORDS_SIDE_BY_SIDE = 5
"""A line with this many options whose values no measure could have is a list of settings."""
_SCOPE_WORDS = TRAIN_WORDS | EVAL_WORDS
_RATES = RATE_WORDS | {"learning", "rate"}
_OPTION = re.compile(
    r"\W{0,8}(?P<name>[A-Za-z_][\w./ \x2d]{0,60}?)['\"]?\s{0,40}(?:[:=]|\t|(?<= )\.{3,120}(?= ))\s{0,40}"
    r"(?P<value>[^\s:=]\S{0,160}+|['\"][^\n]{0,160}['\"]|[\[({][^\n]{0,160}[\])}]|[^\d:=]{1,80})\s{0,40}"
)
_NUMBER = re.compile(r"[-+]?[\d.][\d.,_]{0,24}(?:e[-+]?\d{1,4})?\s?%?,?|[-+]?(?:nan|inf)", re.IGNORECASE)
_NUMBERS = re.compile(rf"{_NUMBER.pattern}(?: ?/ ?\d{{1,12}}| ?\(\d{{1,12}} ?/ ?\d{{1,12}}\))?", re.IGNORECASE)
"""Also matches ``12924 / 15711`` and ``0.757 (1614/2132)``, which are never values of options."""
_RECORD = re.compile(r"[^:=]{1,80}[:=]\s{0,8}[-+]?[\d.]|\A[\[(]?\d{1,9}\s?/\s?\d{1,9}[\])]?\Z")
"""Text that cannot be the value of an option: another ``name: number``, or a count with its total, ``[3/14]``."""
_SIDE_BY_SIDE = re.compile(r"(?<=[^\s:=])\s{2,60}(?=[A-Za-z][\w./\x2d]{0,30}(?: [\w./\x2d]{1,30}){0,4}:\s{1,40}\S)")
"""The gap between two options on one line, as printed by Informer and its descendants."""
_BETWEEN = re.compile(
    r"[\w .-]{1,60}:|[A-Z][A-Za-z-]{1,20}(?: [A-Z][A-Za-z-]{1,20}){0,4}|- \S[^:=]{0,80}|[\W_]{0,200}|#.{0,200}"
)
"""Lines that may separate options without being any: a title, a list item, a rule, a comment."""
_JOINED = re.compile(r"\W{0,8}[A-Za-z]\w{0,40}[_.][A-Za-z]")
"""A name of joined words, ``fixbase_epoch: 0``: no program announces an epoch like that."""
_LONGEST = 200
_LONG_OPTION = re.compile(r"[A-Za-z_][\w.-]{0,40}\s?[:=]\s?[\[{(]")
"""An option whose value is a dictionary or list; the line may be longer than `_LONGEST`."""
_BEFORE = 3
"""A counter directly below this many options is an option too: programs print some other line before they train."""
_ROW, _WORDS = 8, 2
"""This many consecutive option lines, this many of them with a non-numeric value, are a configuration."""


def planned_among(grammar: str, line: str, pairs: Sequence[Pair]) -> LineReading | None:
    """Return the planned epochs from settings printed on one line: ``lr: 0.1, data: train, epochs: 20, ...``."""
    if line.count("=") + line.count(": ") < _MANY // 2 or "{" in line:
        return None
    found = [pair for pair in pairs if pair.name.role is Role.EPOCHS and pair.marked and not (pair.unit or pair.total)]
    return LineReading(grammar, Counters(epochs=found[0].counted), plan=True) if len(found) == 1 else None


def planned_alone(grammar: str, option: Pair) -> LineReading | None:
    """Return the planned epochs or learning rate of an option on its own line: ``"epochs": 30,``, ``"lr": 0.001,``."""
    epochs, words = option.counted if option.name.role is Role.EPOCHS else None, words_of(option.key)
    rate = option.measured if words and _RATES.issuperset(words) and option.value else None
    if epochs is rate is None:
        return None
    return LineReading(grammar, Counters(epochs=epochs), learning_rate=rate, plan=True)


def are_settings(named: Sequence[Pair]) -> bool:
    """True if the values are settings: there are many, few of them are measures, and none is of an evaluation.

    Times and other readings of the machine count as measures here: settings do not contain them.
    """
    few = 3 * sum(is_measure(pair.key) or is_of_machine(pair.key) for pair in named) < len(named)
    return len(named) >= _MANY and few and not any(pair.scope is NameScope.EVAL for pair in named)


def are_options(line: str, pairs: Sequence[Pair]) -> bool:
    """True if a long line lists options, several of them with values that no measure could have."""
    return len(pairs) >= _MANY and len(_WORD_OPTION.findall(line)) >= _WORDS_SIDE_BY_SIDE


def is_member(line: str, pairs: Sequence[Pair]) -> bool:
    """True if the line is a setting inside a dictionary printed over several lines."""
    return len(pairs) == 1 and _MEMBER.match(line) is not None and not is_measure(pairs[0].key)


def arguments(line: str, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that are call arguments: ``AdamW(lr=0.001)``, ``Namespace(loss=0.5)``.

    A measure or a phase in front of the bracket is not a function: ``train(loss=0.5)``.
    """
    found: list[Pair] = []
    for call in _CALL.finditer(line[:2000]):
        name = call[1].rpartition(".")[2]
        if not is_measure(name) and name.lower() not in _SCOPE_WORDS | LABEL_WORDS:
            close = line.find(")", call.end())
            end = close if close >= 0 else len(line)
            found += (p for p in pairs if call.end() < p.start < end and "=" in line[call.end() : p.start])
    return found


def is_placed(reading: LineReading) -> bool:
    """True if a reading is of training: it has a counter or a whole loss. A "loss_weight" is more often an option."""
    whole = reading.loss is not None and classify(reading.loss_name).rank < PART
    return whole or reading.counters.positioned


class Options:
    """Detects configurations printed one option per line: whatever their names, the options are not metrics."""

    def __init__(self, names: set[str]) -> None:
        """``names`` is the set that the names of options are added to."""
        self._names = names
        self._row: list[str] = []
        self._lines = self._words = 0

    @property
    def has_words(self) -> bool:
        """True if an option in the lines above has a value that no measure could have."""
        return self._words > 0

    def interrupt(self) -> None:
        """Forget the options so far: the next line does not continue them."""
        if self._lines:
            self._row, self._lines, self._words = [], 0, 0

    def as_meant(self, line: str, readings: Sequence[LineReading] | None) -> Sequence[LineReading] | None:
        """Return the readings of a line, corrected if it is among options: ``* epoch: 15`` is planned, not reached.

        A step there (``Iteration: 4``) is neither, nor is a first one beside another option
        (``Num Workers: 10    Itr: 1``).
        """
        if not readings or self._lines < _BEFORE or not self._words or not (options := _options(line)):
            return readings
        joined = _JOINED.match(line) is not None
        return [_as_option(reading, alone=len(options) == 1, joined=joined) for reading in readings]

    def read(self, line: str, readings: Sequence[LineReading], *, placed: bool) -> None:
        """Take in the next line and its readings; ``placed`` if these are of training."""
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
    """Return the values of the options that make up a line, one or several side by side; empty for any other line."""
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
    begins = alone and or_zero(now.step) <= 1  # training starts right below the options
    return replace(reading, counters=Counters()) if is_step and not begins else reading
