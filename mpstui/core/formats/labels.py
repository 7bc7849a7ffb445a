"""Full names for values that share a name on one line.

The words in front tell them apart (``G: loss 0.5, D: loss 0.3``), or the part that they measure; some are named once
for all: ``accuracy train: 0.98 test: 0.91``. A measure of one class, symbol or head is not the run's, so its name keeps
that of the part: ``class 3 accuracy``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .measures import is_measure, is_never_a_metric
from .names import NameScope, Role, classify, words_of
from .vocabulary import EVAL_WORDS, HEADING_WORDS, PART_WORDS, TRAIN_WORDS

if TYPE_CHECKING:
    from .pairs import Pair

_LABEL = re.compile(r"(?:^|(?<=[\s,;|\[(]))([A-Za-z][\w-]{0,24})\]?\s{0,2}[:|\]]\s{0,2}[\[(]?(?=[A-Za-z])")
"""A word followed by a sign that joins it not to a number but to the next name."""
_NUMBERED = re.compile(r"([A-Za-z]\w{1,15} \d{1,4})[:\s]{1,2}\Z")
"""A word with a number right before a name: ``stage 2 loss: 0.5``."""
_LONGEST_LABEL = 24
_NAME_BEHIND = re.compile(r"\s?:?\s{1,2}[A-Za-z_][\w@ ]{0,30}?\s{0,4}[:=]\s{0,4}[-+]?\.?\d")
_INDEXED = re.compile(r"\]\s{0,2}[:=]\s{0,4}[-+]?\.?\d")
_SYMBOL = re.compile(r"(?:\[(?=[^\]]{2,14}\]))?([A-Z][A-Z\d]{0,11}(?:[-_./][A-Z\d]{1,6})?)\]?\s?[:|]\s")
"""Capitals alone at the start of a line: a class, a ticker, an instrument."""
_PART_ROW = re.compile(r"\s{0,8}([A-Za-z]\w{1,15}) \d{1,4}(?=\s?[:|]\s{1,8}[#A-Za-z])")
"""A part at the start of a row of its measures: ``class 04: #TP=60801, P=0.7, IoU=0.408``."""
_GROUP = re.compile(r"(?:\A\s{0,8}|: )([A-Za-z][a-z]{1,15}(?: [a-z]{2,15}){0,2}) -{2,3} (?=[A-Za-z])")
"""Words separated by a double dash from their measures: ``Test statistics: Old nodes -- auc: 0.9``."""
_HEADED = re.compile(r"\s{0,8}([A-Za-z]\w{2,15})(?: [^\W\d]\w{0,15}| \d{1,4}| ?\(\w\)){0,6}\s?:\s{1,4}(?=\[[A-Za-z])")
_BRACKETED = re.compile(r"\[([A-Za-z][\w-]{1,24})\]\s?[:=]\s{0,4}\Z")
"""A label before a value, ``[Class-IL]: 36.3 %``, on a line that begins with what is measured."""
_MEASURED = (Role.OTHER, Role.LOSS)
_WHOSE = TRAIN_WORDS | EVAL_WORDS
_COUNTING = (Role.EPOCH, Role.STEP, Role.BATCH)


def told_apart(line: str, pairs: list[Pair]) -> list[Pair]:
    """Prefix every repeated name with the label in front of it, if each occurrence has a label of its own."""
    again = _that_come_again(pairs)
    labels = [match for match in _LABEL.finditer(line) if _labels(match[1])] if again else []
    starts, found = [match.start() for match in labels], list(pairs)
    for places in again:
        nearest = [bisect_left(starts, pairs[place].start) - 1 for place in places]
        if len(labels) < 2 or nearest[0] < 0 or len(set(nearest)) < len(nearest):
            _number(line, found, places)
            continue
        for place, label in zip(places, nearest, strict=True):
            found[place] = named(pairs[place], f"{labels[label][1]} {pairs[place].key}")
    return found


def named(pair: Pair, key: str) -> Pair:
    """Return the value under another name."""
    return pair._replace(key=key, name=classify(key))


def named_once(pairs: list[Pair]) -> list[Pair]:
    """Give each value that only says whose it is the name of the value before it."""
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


def part_of(line: str, pair: Pair) -> str:
    """Return the part that a number belongs to, ``class 3`` in ``class 3 accuracy: 0.5``, or an empty string."""
    if pair.total or pair.unit or not pair.text.isdigit() or pair.name.role is not Role.OTHER:
        return ""
    words = words_of(pair.key)
    of_part = bool(words) and words[-1] in PART_WORDS and not pair.bracketed
    return f"{pair.key} {pair.text}" if of_part and _NAME_BEHIND.match(line, pair.end) is not None else ""


def is_indexed(line: str, pair: Pair) -> bool:
    """True if a number is the index of the value after it: ``loss[0]: 0.5``."""
    inside = pair.bracketed and not (pair.marked or pair.total or pair.unit) and pair.text.isdigit()
    joined = inside and line[: pair.start].endswith(f"{pair.key}[") and pair.name.role in _MEASURED
    return joined and is_measure(pair.key) and _INDEXED.match(line, pair.end) is not None


def of_symbol(line: str, pairs: list[Pair]) -> list[Pair]:
    """Prefix the measures of a line with the symbol it begins with; a line with counters is the run's."""
    symbol = _SYMBOL.match(line)
    if symbol is None or len(symbol[1]) < 2 or symbol[1].lower() in HEADING_WORDS or not _labels(symbol[1]):
        return pairs
    # ``PER`` is an error rate, but before several measures it is the class of persons.
    alone = sum(pair.marked and is_measure(pair.key) for pair in pairs) < 2
    if (alone and is_measure(symbol[1])) or is_never_a_metric(symbol[1]):
        return pairs
    if any(pair.name.role in _COUNTING for pair in pairs):
        return pairs
    if pairs and pairs[0].key == symbol[1]:
        return pairs  # a name with a value of its own: ``SPS: 1095, pg_loss=0.5``
    return [
        named(pair, f"{symbol[1]} {pair.key}")
        if pair.marked and pair.name.role in _MEASURED and is_measure(pair.key)
        else pair
        for pair in pairs
    ]


def of_row(line: str, pairs: list[Pair]) -> list[Pair]:
    """Prefix all measures of a row with the part that it begins with, not just the first."""
    row = _PART_ROW.match(line)
    if row is None or row[1].lower() not in PART_WORDS or any(pair.name.role in _COUNTING for pair in pairs):
        return pairs
    part = row.group().lstrip()
    return [
        named(pair, f"{part} {pair.key}")
        if is_measure(pair.key) and pair.key.partition(" ")[0].lower() not in PART_WORDS
        else pair
        for pair in pairs
    ]


def of_group(line: str, pairs: list[Pair]) -> list[Pair]:
    """Prefix the measures after a double dash with the group that they are of."""
    group = _GROUP.search(line)
    if group is None or not all(_labels(word) and word not in HEADING_WORDS for word in group[1].lower().split()):
        return pairs
    of_it = [pair for pair in pairs if pair.start > group.end() and pair.marked and pair.name.role in _MEASURED]
    if not any(is_measure(pair.key) for pair in of_it):
        return pairs
    return [named(pair, f"{group[1]} {pair.key}") if pair in of_it else pair for pair in pairs]


def of_heading(line: str, pairs: list[Pair]) -> list[Pair]:
    """Prefix the labels of bracketed values with the measure ahead of them: ``Accuracy for 3 tasks: [Old]: 36.3 %``."""
    heading = _HEADED.match(line)
    if heading is None or not is_measure(heading[1]):
        return pairs
    found = []
    for pair in pairs:
        label = _BRACKETED.search(line[max(0, pair.start - _LONGEST_LABEL - len("[]: ")) : pair.start])
        if label is not None and not pair.key:
            found.append(named(pair, f"{heading[1]} {label[1]}")._replace(marked=True, bracketed=False))
        elif pair.start >= heading.end():
            found.append(pair)
    return found


def _number(line: str, found: list[Pair], places: Sequence[int]) -> None:
    """Prefix repeated names with the numbered word right before them."""
    for place in places:
        pair = found[place]
        at = line.rfind(pair.key, 0, pair.start)
        label = _NUMBERED.search(line[max(0, at - _LONGEST_LABEL) : max(0, at)])
        if label is not None and _labels(label[1].partition(" ")[0]):
            found[place] = named(pair, f"{label[1]} {pair.key}")


def _that_come_again(pairs: Sequence[Pair]) -> list[list[int]]:
    """Return, for each name with more than one value, the indices of these."""
    places: dict[tuple[str, NameScope], list[int]] = {}
    for place, pair in enumerate(pairs):
        if pair.key and pair.name.role in _MEASURED and not pair.bracketed:
            places.setdefault((pair.key, pair.scope), []).append(place)
    return [found for found in places.values() if len(found) > 1]


def _labels(word: str) -> bool:
    """True if a word may say whose values follow: not if it counts, or means training or evaluation."""
    name = classify(word)
    return name.role is Role.OTHER and name.scope is NameScope.NONE
