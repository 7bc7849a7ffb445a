"""Evaluations that are printed with spaces alone, no sign and no counter: ``val_loss 1.50 val_acc 60.00%``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .names import Role, Scope, words_of
from .pairs import Pair
from .vocabulary import AVERAGE_WORDS, EVAL_WORDS, LABEL_WORDS, LOSS_WORDS, MEASURE_WORDS

_LONGEST = 200
_WORD = re.compile(r"[^\W\d_]+")
_NAME_WORDS = LOSS_WORDS | MEASURE_WORDS | AVERAGE_WORDS
_MEASURES = LOSS_WORDS | MEASURE_WORDS
_LABELS = EVAL_WORDS | LABEL_WORDS
_COMPARES = ("->", "→", "<", ">", "?")
_BESIDE = frozenset((Role.LEARNING_RATE, Role.THROUGHPUT))
_TIMES = ("time", "elapsed")


def is_evaluation(line: str, pairs: Sequence[Pair]) -> bool:
    """Whether a line is a record of an evaluation by its names alone.

    Nothing joins such names to their values, so every word has to be known: each name is that of a measure of an
    evaluation, and what remains of the line is at most a label ("Validation:", "Test set"). One word more, and the line
    may be a sentence: "the val loss 1.5 is better than 1.6".
    """
    if len(line) > _LONGEST or not any(_is_evaluated(pair) for pair in pairs):
        return False
    if not all(_fits(pair) for pair in pairs) or any(map(line[pairs[0].start :].__contains__, _COMPARES)):
        return False
    return _beside_names(line, pairs) <= _LABELS


def _is_evaluated(pair: Pair) -> bool:
    """``val_loss``, ``test accuracy``, or a plain ``loss`` behind "Test:"; ``accuracy 97/100`` counts samples."""
    return pair.scope is Scope.EVAL and not pair.total and _is_measure(pair.key)


def _fits(pair: Pair) -> bool:
    if not pair.key:
        return pair.bracketed  # ``60% (6000/10000)``
    return _is_evaluated(pair) or pair.name.role in _BESIDE or pair.key.lower() in _TIMES


def _is_measure(key: str) -> bool:
    own = set(words_of(key)) - EVAL_WORDS
    return not own.isdisjoint(_MEASURES) and own <= _NAME_WORDS


def _beside_names(line: str, pairs: Sequence[Pair]) -> set[str]:
    """The words of a line that neither name a number nor are its unit."""
    rest, position = [], 0
    for pair in pairs:
        rest.append(line[position : pair.start].rstrip().removesuffix(pair.key))
        position = pair.end
    rest.append(line[position:])
    return {word.lower() for word in _WORD.findall(" ".join(rest))}
