"""Which numbers of a line are measured values, and which of these belong to an evaluation."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from .measures import is_measure
from .names import NameScope, Role, words_of
from .pairs import Pair
from .vocabulary import EPISODES, EVAL_WORDS, TRAIN_WORDS

_GOES_ON = (
    *(" of", " for", " on", " at", " in", " in top", " the", " to", " by", " from", " than", " least", " most"),
    *(" en", " em"),
)
"""A name with such an ending and no sign after it is part of a sentence: "the loss of 3 engineers", "at least 2"."""
_STANDS_IN = ("at ", "in ", "on ", "for ", "from ", "after ", "since ", "until ")
"""A name with such a beginning and no sign after it says where something was: "0.9 at thresh 23"."""
SCOPE_WORDS = TRAIN_WORDS | EVAL_WORDS
_VALUES = frozenset((Role.OTHER, Role.LOSS, Role.LEARNING_RATE, Role.THROUGHPUT))
_OF_MACHINE = frozenset(
    ("it", "ms", "us", "µs", "ns", "s", "sec", "secs", "seconds", "min", "mins", "minutes", "h", "hr")
)
_OF_MACHINE |= {"hrs", "hours", "GiB", "MiB", "KiB", "GB", "MB", "KB", "TB"}
_LASTED = ("s", "sec", "secs", "seconds", "min", "mins", "minutes", "h", "hr", "hrs", "hours")
"""Units that no loss has."""
_BITS = frozenset(("8", "16", "32", "64"))
_CLOCK = re.compile(r"1[3-9]\d{8}(?:\.\d{1,9})?\Z")
"""Seconds since 1970, if no sign joins them to a name: ``trainer 1560936205.667 (main.py:25) loss: 0.5``."""
_IS_FILE = re.compile(
    r"(?i)\.(?:py|cpp|cc|cu|cuh|h|hpp|mm|metal|json|ya?ml|toml|txt|log|pth?|ckpt|safetensors|so)(?: line)?\Z"
)
_SHORT = {"evaluating": "val", "validating": "val", "testing": "test"}
_TRAINED = {"v": "t", "V": "T"}
_LONGEST_VALUES = 80
"""The most characters of three values of a list, with all their decimals."""


def values_of(line: str, pairs: Sequence[Pair], told: Container[Pair], *, of_item: bool) -> list[Pair]:
    """Return a line's named values; ``told`` are the arguments on it, ``of_item`` if it is one of many list items."""
    return [
        pair
        for at, pair in enumerate(pairs)
        if pair.key and pair.name.role in _VALUES and pair not in told and not _opens_list(pairs[at : at + 4])
        if not of_item or "." in pair.text or is_measure(pair.key)
        if not (pair.bracketed and pair.marked and _goes_on_below(line, pair))
        if pair.bracketed or not _counts_a_phase(pair)
    ]


def _goes_on_below(line: str, pair: Pair) -> bool:
    """True if a value is the first of a list or matrix printed over several lines: ``grad = [[ 0.25]``."""
    behind = line[pair.end :]
    opened = line[: pair.start].rstrip()
    return opened.endswith("[[") and behind.count("]") - behind.count("[") < len(opened) - len(opened.rstrip("["))


def metrics_of(named: Sequence[Pair]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the values of training and those of an evaluation, such as ``v_loss`` beside ``loss``."""
    named = list(filter(is_named, named))
    metrics = {p.key: p.measured for p in named if not _of_evaluation(p)}
    eval_metrics = {
        f"{_SHORT.get(p.said.lower(), p.said)} {p.key}".strip(): p.measured for p in named if _of_evaluation(p)
    }
    twins = [name for name in metrics if name.lower().startswith("v_")]
    if not any(name[2:] in metrics for name in twins):
        twins = [name for name in metrics if is_twin(name, metrics)]
    eval_metrics.update((name, metrics.pop(name)) for name in twins)
    return metrics, eval_metrics


def is_twin(name: str, names: Container[str]) -> bool:
    """True if the training name beside it makes a name an evaluation's: ``vloss`` with ``loss`` or ``tloss``."""
    return name[:1] in ("v", "V") and (name[1:] in names or f"{_TRAINED[name[0]]}{name[1:]}" in names)


def of_one_evaluation(named: list[Pair]) -> list[Pair]:
    """Give all values of a line without a position to an evaluation, if all its measures are of that one.

    ``n100`` is a value of the test in ``| End of training | test loss 49.0 | n100 0.40 |``.
    """
    measures = [pair for pair in named if is_measure(pair.key)]
    words = {word for pair in measures for word in words_of(pair.key) if word in EVAL_WORDS}
    if len(words) != 1 or any(pair.scope is not NameScope.EVAL for pair in measures):
        return named
    unclaimed = (pair.scope is NameScope.NONE and pair.name.role is Role.OTHER for pair in named)
    said = words.pop()
    return [
        pair._replace(scope=NameScope.EVAL, said=said) if free else pair
        for pair, free in zip(named, unclaimed, strict=True)
    ]


def _opens_list(pairs: Sequence[Pair]) -> bool:
    """True if a value is the first of many (``IoU: 42.6 0.0 11.5 3.2``, ``[0.2 0.3 0.4]``): of classes, of a shape."""
    rest = pairs[1:]
    if rest and _is_range(pairs[0], rest[0]):
        return True
    if rest and pairs[0].bracketed and pairs[0].text.isdigit() and rest[0].text.isdigit() and not rest[0].key:
        return rest[0].start - pairs[0].end <= len(", ")  # ``'output': (16, 8, 400)``, ``Conv2d(64, 64, ..``
    fewest = 2 if pairs[0].bracketed and pairs[0].marked else 3
    rest = rest[:fewest]
    unit = pairs[0].unit
    bare = len(rest) == fewest and not any(p.key or p.bracketed or p.total or p.unit not in ("", unit) for p in rest)
    return bare and pairs[0].name.role is Role.OTHER and rest[-1].end - pairs[0].end <= _LONGEST_VALUES


def _is_range(first: Pair, second: Pair) -> bool:
    """True if two values share one pair of brackets: ``Pred range: [-2.7, 3.1]``."""
    unknown = first.name.role is Role.OTHER and not is_measure(first.key)
    beside = first.bracketed and first.marked and not (second.key or second.bracketed or first.total or second.total)
    return unknown and beside and second.start - first.end <= len(", ")


def is_named(pair: Pair) -> bool:
    """True if the text before a value is its name, not a sentence that goes on: "finished in 12 s".

    A count out of a count (``Correct: 970/1000``) is not a value, but two losses side by side are, and so is the number
    of an episode, which marks the values beside it as training's.
    """
    counts = pair.total and pair.name.role is Role.OTHER and pair.key.lower() not in EPISODES
    if pair.text in _BITS and not pair.unit and words_of(pair.key)[-1:] == ["precision"]:
        return False  # a number format: ``precision: 16``
    if counts or _IS_FILE.search(pair.key) or (pair.unit and pair.key.lower() == "rate"):
        return False
    if pair.name.role is Role.OTHER and (pair.unit in _OF_MACHINE or pair.is_rate):
        return False  # a time, an amount of memory, a speed
    if (not pair.marked and _CLOCK.match(pair.text)) or _counts_a_phase(pair):
        return False
    if pair.name.role is Role.LOSS and pair.unit in _LASTED:
        return False  # ``Cost: 715.7 sec``
    key = pair.key.lower()
    if key == "total" and pair.text.isdigit():
        return False  # ``17079 triplets (total: 22056)``
    if key.endswith(" to") and key.count(" ") > 1:
        return False  # ``setting loss scale to: 64.0``
    return pair.marked or not (key.endswith(_GOES_ON) or key.startswith(_STANDS_IN) or pair.counts_things)


def _counts_a_phase(pair: Pair) -> bool:
    """True for ``Training: 720 samples``, ``Training [2][ 5/23]``: a whole number after a phase measures nothing."""
    counts = pair.text.replace(",", "").isdigit() and not pair.total and pair.unit != "%"
    return counts and bool(pair.key) and (SCOPE_WORDS | {"set"}).issuperset(words_of(pair.key))


def _of_evaluation(pair: Pair) -> bool:
    """True if a value belongs to an evaluation; a rate after "val loss" does not, unless its own name says so."""
    return pair.scope is NameScope.EVAL and (
        pair.name.scope is NameScope.EVAL or pair.name.role in (Role.OTHER, Role.LOSS)
    )
