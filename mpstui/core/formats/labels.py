"""Values of one name on a line: told apart by the words in front of them, ``G: loss 0.5, D: loss 0.3``, or named once
for all of them, ``accuracy train: 0.98 test: 0.91``."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .measures import is_measure
from .names import NameScope, Role, classify
from .vocabulary import EVAL_WORDS, TRAIN_WORDS

if TYPE_CHECKING:
    from .pairs import Pair

_LABEL = re.compile(r"(?:^|(?<=[\s,;|\[(]))([A-Za-z][\w-]{0,24})\]?\s{0,2}[:|\]]\s{0,2}[\[(]?(?=[A-Za-z])")
"""A word with a sign behind it that joins it to no number, but to the next name."""
_MEASURED = (Role.OTHER, Role.LOSS)
_WHOSE = TRAIN_WORDS | EVAL_WORDS


def told_apart(line: str, pairs: list[Pair]) -> list[Pair]:
    """The pairs, with the label in front of each name that comes again, where every one of them has another."""
    again = _that_come_again(pairs)
    labels = [match for match in _LABEL.finditer(line) if _labels(match[1])] if again else []
    if len(labels) < 2:
        return pairs
    starts, found = [match.start() for match in labels], list(pairs)
    for places in again:
        nearest = [bisect_left(starts, pairs[place].start) - 1 for place in places]
        if nearest[0] < 0 or len(set(nearest)) < len(nearest):
            continue
        for place, label in zip(places, nearest, strict=True):
            key = f"{labels[label][1]} {pairs[place].key}"
            found[place] = pairs[place]._replace(key=key, name=classify(key))
    return found


def named_once(pairs: list[Pair]) -> list[Pair]:
    """The pairs; one that tells only whose value it is has the name of that before it."""
    found: list[Pair] = []
    for pair in pairs:
        before = found[-1] if found else None
        if before is not None and pair.key.lower() in _WHOSE and not pair.bracketed and before.unit == pair.unit:
            measured, _, whose = before.key.rpartition(" ")
            if whose.lower() in _WHOSE and (is_measure(measured) or classify(measured).role is Role.LOSS):
                key = f"{measured} {pair.key}"
                pair = pair._replace(key=key, name=classify(key))
        found.append(pair)
    return found


def _that_come_again(pairs: Sequence[Pair]) -> list[list[int]]:
    """Where the values of one name are, of those with more than one."""
    places: dict[tuple[str, NameScope], list[int]] = {}
    for place, pair in enumerate(pairs):
        if pair.key and pair.name.role in _MEASURED and not pair.bracketed:
            places.setdefault((pair.key, pair.scope), []).append(place)
    return [found for found in places.values() if len(found) > 1]


def _labels(word: str) -> bool:
    """Whether a word may say whose values follow; one that counts, or says training or evaluation, does not."""
    name = classify(word)
    return name.role is Role.OTHER and name.scope is NameScope.NONE
