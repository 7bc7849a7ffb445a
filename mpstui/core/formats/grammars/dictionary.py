"""Dictionaries in a log: Hugging Face Trainer, TRL, LLaMA-Factory, fairseq's JSON log, any ``{'loss': ..}``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..assemble import assemble
from ..measures import is_measure
from ..names import NameScope, Role, classify, scope_of, words_of
from ..pairs import read_pairs
from ..places import read_counters
from ..points import Counters, LineReading, Number, Priority, as_float, as_number
from ..records import read_record
from . import Example, LineGrammar

_MEMBER = re.compile(
    r"""['"](?P<key>[^'"{}]{1,80})['"]\s{0,4}:\s{0,4}(?:['"](?P<quoted>[^'"{}]{0,80})['"]|"""
    r"""(?:tensor|(?:Device)?[Aa]rray|j?np\.float\d\d)\((?P<tensor>[-+\w.]{1,40})|(?P<bare>[-+\w.]{1,40}))"""
)
_OPENING = re.compile(r"\{(?:\s{0,4}['\"][^'\"{}]{1,80}['\"]\s{0,4}:[^{}]{1,400},)?\s{0,4}\Z")
_ENTRY = r"""(?:'[^']{1,40}'|"[^"]{1,40}")"""
_VOCABULARY = re.compile("|".join(r"\{" + ", ".join(f"{_ENTRY}: {n}" for n in range(n, n + 4)) for n in (0, 1)))
"""A vocabulary or a list of class names with consecutive numbers: ``{'the': 1, 'step': 2, ..}``."""
_NESTED = re.compile(r"""['"](?P<of>[A-Za-z_]{2,12})['"]\s{0,2}:\s{0,2}\{(?P<inner>[^{}]{0,2000})\}""")
_ORDERED = re.compile(r"(?:OrderedDict\()?\[(?P<items>(?:\('[^'()]{1,80}', [^'\[\]]{1,80}\)(?:, )?){1,60})\]\)?")
_ITEM = re.compile(r"\(('[^'()]{1,80}'), ([^'\[\]]{1,80}?)\)(?=, \('|\Z)")
_KEY = re.compile(r"""(['"])(?=[^'"{}]{1,80}['"]\s{0,4}:)""")
_MAX_LINES = 60
_EVALUATED = re.compile(
    r"(?i)(?<![\w-])(?:val|valid|validation|eval|evaluation|test|dev)"
    r"(?: (?:set|results?|metrics?|stats|scores?|final|(?:epoch|step) \d{1,9})){0,3}\W{0,4}\Z"
)
"""Words in front of a dictionary that make it one of an evaluation."""
_TOLD = re.compile(
    r"(?i)(?:weights?|coefs?|coefficients|kwargs|config|cfg|args|arguments|params|hparams|options|settings|lambdas?)"
    r"['\"]?\s{0,3}[:=]\s{0,3}\Z"
)
_OF_LOSSES = re.compile(r"(?i)(?<![\w-])(losses?)['\"]?[\s:=,]{0,4}\Z")
_REACH = 40
"""Characters in front of a dictionary that may make it one of settings: ``loss_weights: {'bce': 1, 'dice': 1}``."""
_COUNTED = {"epoch", "step", "global_step", "iteration", "iter", "cur_iter"}
_CONFIGURED = {"loss_fn", "loss_type", "optimizer", "batch_size", "num_epochs", "seed"}
_PLANNED = {"epochs", "num_epochs", "num_epoch", "max_epochs", "max_epoch", "n_epochs", "nb_epochs", "num_train_epochs"}
_PLANNED_STEPS = {"max_steps", "max_iters", "max_iterations", "total_steps", "total_timesteps", "train_iters"}
_PLANNED_STEPS |= {"train_steps", "num_train_steps", "max_train_steps", "num_iterations"}
_BESIDE_TOTALS = {"batch_size", "train_batch_size", "lr", "learning_rate", "seed"}
_WORDS = 3
"""A dictionary with this many non-numeric values and no measure holds settings."""
_PYTHON = {"None": None, "null": None, "True": None, "False": None, "true": None, "false": None}


class Dictionary(LineGrammar):
    """Reads flat dictionaries anywhere on a line, one or more, also printed over several lines."""

    name = "dictionary"
    priority = Priority.SHARED
    needles = ("{", "}", "': ", '": ', "[('")
    examples = (
        Example(
            "{'loss': 3.5, 'learning_rate': 7e-06, 'epoch': 0.5} {'loss': 3.25, 'learning_rate': 7e-06, 'epoch': 1.0}\n"
            "{'eval_loss': 3.0, 'epoch': 1.0}\n{'train_runtime': 9.0, 'train_loss': 3.2, 'epoch': 1.0}\n",
            3.25,
            losses=2,
            epoch=1.0,
            learning_rate=7e-06,
            format="hugging face trainer",
        ),
        Example("log {'loss': 2.5,\n 'epoch': 3}\n", 2.5, epoch=3, format="hugging face trainer"),
        Example("OrderedDict([('loss', tensor(2.5)), ('epoch', 3)])\n", 2.5, epoch=3, format="hugging face trainer"),
    )

    def __init__(self) -> None:
        self._open = self._before = ""
        self._lines = 0

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Return the readings of all dictionaries on the line; one printed over several lines comes with its last."""
        if self._open:
            return self._go_on(line)
        if "[('" in line:
            plain = _ORDERED.sub(_unordered, line)
            return self._read(plain) or _results(plain)
        if _VOCABULARY.search(line):
            return ()
        if _OPENING.search(line) and line.rfind("}") < line.rfind("{"):
            self._before, brace, rest = line.rpartition("{")
            self._open, self._lines = brace + rest, 1
            return ()
        return self._read(line)

    def _go_on(self, line: str) -> Sequence[LineReading] | None:
        """Read on in an open dictionary; any line that is no part of it closes it."""
        whole, self._lines = self._open + " " + line, self._lines + 1
        member = _MEMBER.match(line) is not None or line.strip() == "}"
        if member and "}" in line:
            self._open = ""
            return self._read(whole) or _results(self._before + whole) or ()
        if not member or self._lines > _MAX_LINES:
            self._open = ""
            return None
        self._open = whole
        return ()

    def _read(self, line: str) -> Sequence[LineReading] | None:
        readings: list[LineReading] = []
        if line.count("{") > 1:
            line = _NESTED.sub(_flattened, line)
        start, settings = line.find("{"), False
        while start >= 0 and (end := line.find("}", start)) >= 0:
            told = _TOLD.search(line, max(0, start - _REACH), start) is not None
            settings = settings or told
            reading = None if told else self._one(line[start : end + 1], line[:start] if not readings else "")
            if reading is not None:
                readings.append(reading)
            start = line.find("{", end)
        if len(readings) > 1 and all(map(_is_of_schedule, readings)):
            return ()
        record = _record(line)
        behind = line[line.rfind("}") + 1 :].strip(" ,;|.")
        if not readings and behind and (pairs := read_pairs(behind)) and _is_configured(record):
            found = assemble("key-value", behind, pairs)  # the result of these settings
            return () if found is None else (found,)
        outer = _record(_outermost(line))  # nested dictionaries may be of data loaders or schedules
        if readings or not (_is_told(record) or _is_configured(record) or _plans(outer)):
            return readings or (() if settings else None)
        steps = None if any("episode" in name.lower() for name in outer) else _one_of(_PLANNED_STEPS, outer)
        planned = Counters(epochs=_one_of(_PLANNED, outer), steps=steps)  # beside episodes: steps of one episode
        if planned == Counters():
            return ()
        rate = next(
            (as_float(value) for key, value in record.items() if classify(key).role is Role.LEARNING_RATE), None
        )
        return (LineReading(self.name, planned, learning_rate=rate, plan=True),)

    def _one(self, text: str, before: str) -> LineReading | None:
        record = _record(text)
        heading = _OF_LOSSES.search(before[-60:])
        if heading is not None and (losses := _all_numbers(record)) and not _says_something(record):
            return _reading_of(losses, heading[1], before)
        if not _says_something(record) or _is_told(record):
            return None
        program = "hugging face trainer" if "epoch" in record else "dictionary"
        if text.startswith('{"'):
            program = "fairseq" if "num_updates" in record or "train_num_updates" in record else "json lines"
        reading = read_record(record, program)
        if reading is not None and _EVALUATED.search(before[-60:]):
            return LineReading.evaluation(program, {**reading.metrics, **reading.eval_metrics})
        if reading is None or reading.counters != Counters() or not before:
            return reading
        counters, _ = read_counters(read_pairs(before), before, has_loss=reading.loss is not None)
        return replace(reading, counters=counters)


def _results(line: str) -> Sequence[LineReading] | None:
    """Read a dictionary of nothing but numbers, at least one of them a measure: what a program has come to."""
    start = line.find("{")
    record, told = _record(line), _TOLD.search(line, max(0, start - _REACH), start) is not None
    if told or not (_has_measure(record) and _all_numbers(record)):
        return None
    found = assemble("key-value", line, read_pairs(line))
    return None if found is None else (found,)


def _unordered(ordered: re.Match[str]) -> str:
    """``OrderedDict([('acc', 0.5)])`` or a list of pairs as ``{'acc': 0.5}``."""
    return "{" + _ITEM.sub(r"\1: \2", ordered["items"]) + "}"


def _reading_of(losses: dict[str, float], heading: str, before: str) -> LineReading:
    """Read ``Losses {'ner': 12.5}``, common with spaCy: of several components, none is the loss."""
    counters, _ = read_counters(read_pairs(before), before, has_loss=True)
    if len(losses) == 1:
        return LineReading.training("dictionary", counters, heading, *losses.values())
    named = {f"{name} loss": value for name, value in losses.items()}
    return LineReading("dictionary", counters, metrics=named, certain=True)


def _all_numbers(record: dict[str, object]) -> dict[str, float]:
    """Return the dictionary if it holds only numbers, at least one with decimals; else an empty one."""
    numbers = {name: value for name, told in record.items() if (value := as_float(told)) is not None}
    measured = len(numbers) == len(record) and any("." in str(told) for told in record.values())
    return numbers if measured else {}


def _record(text: str) -> dict[str, object]:
    record: dict[str, object] = {}
    for match in _MEMBER.finditer(text):
        value = match["quoted"] if match["quoted"] is not None else match["tensor"] or match["bare"]
        record[match["key"]] = _PYTHON.get(value, value)
    return record


def _is_of_schedule(reading: LineReading) -> bool:
    """True if a dictionary holds nothing but learning rates and counters, as a list of schedules does."""
    values = (*reading.metrics, *reading.eval_metrics)
    return reading.loss is None and all(classify(name).role is Role.LEARNING_RATE for name in values)


def _is_told(record: dict[str, object]) -> bool:
    """True if a dictionary holds the settings of a program with a counter's name among them."""
    words = sum(as_float(value) is None for value in record.values())
    return words >= _WORDS and not _COUNTED.isdisjoint(map(str.lower, record)) and not _has_measure(record)


def _is_configured(record: dict[str, object]) -> bool:
    """True if a dictionary holds settings, several of them non-numeric, with the planned epochs among them."""
    words = sum(as_float(value) is None for value in record.values())
    return words >= _WORDS and not _PLANNED.isdisjoint(map(str.lower, record)) and not _has_measure(record)


def _plans(record: dict[str, object]) -> bool:
    """True if settings plan epochs or steps of a training; those of a schedule have no batch size, rate or seed."""
    names = set(map(str.lower, record))
    planned = not (_PLANNED | _PLANNED_STEPS).isdisjoint(names)
    return planned and not (_BESIDE_TOTALS.isdisjoint(names) or _has_measure(record))


def _one_of(names: set[str], record: dict[str, object]) -> Number | None:
    """Return the number stored under one of these names; None if there is none, or several different ones."""
    found = {as_number(value) for key, value in record.items() if key.lower() in names}
    number = found.pop() if len(found) == 1 else None
    return number if number is not None and number > 0 else None


def _has_measure(record: dict[str, object]) -> bool:
    """True if a measure has a numeric value; with a word as its value (``'loss': 'mse'``) it is a setting."""
    return any(is_measure(name) and as_float(value) is not None for name, value in record.items())


def _outermost(line: str) -> str:
    """Return the content of the outermost braces of a line, without nested dictionaries."""
    depth, kept = 0, list[str]()
    for character in line:
        depth += (character == "{") - (character == "}")
        if depth == 1:
            kept.append(character)
    return "".join(kept)


def _flattened(nested: re.Match[str]) -> str:
    """``"val": {"loss": 0.5}`` as ``"val/loss": 0.5``; dictionaries under any other name are left as they are."""
    whose = scope_of(words_of(nested["of"])) is not NameScope.NONE
    return _KEY.sub(rf"\1{nested['of']}/", nested["inner"]) if whose else nested.group()


def _says_something(record: dict[str, object]) -> bool:
    """True if a dictionary is a record of training: unlike a configuration, it has a counter or a numeric loss."""
    keys = {key.lower() for key in record}
    if keys & _COUNTED:
        return len(keys) >= 2
    losses = (key for key, value in record.items() if "loss" in key.lower() and as_float(value) is not None)
    return any(classify(key).role is Role.LOSS for key in losses) and not keys & _CONFIGURED


GRAMMAR = Dictionary
