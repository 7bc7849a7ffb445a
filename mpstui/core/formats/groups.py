"""Groups reported in turn, each on a line of its own: ``Seen: acc: 0.9`` above ``Unseen: acc: 0.1``.

A word before a metric may just as well be a logger's name (``trainer: loss: 0.5``). It says whose values follow only if
another such word, with no other reading in between, has the same metric with another value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from .names import Role, classify, words_of
from .points import LineReading
from .vocabulary import (
    AVERAGE_WORDS,
    BATCH_WORDS,
    BEST_WORDS,
    EARLIER_WORDS,
    EPOCH_WORDS,
    EVAL_WORDS,
    HEADING_WORDS,
    LABEL_WORDS,
    STEP_WORDS,
    TRAIN_WORDS,
)

_LABEL = re.compile(
    r"\W{0,4}(?:(?<=\[)(?P<tag>[A-Za-z][\w.-]{1,24}(?: [A-Za-z][\w.-]{1,24}){0,2})\]\s?[:|]?"
    r"|(?P<word>[A-Za-z][\w-]{1,24}(?: [A-Za-z][\w-]{1,24}){0,2})\s?[:|])\s{1,4}(?=[A-Za-z_])"
)
_WHOSE = TRAIN_WORDS | EVAL_WORDS | LABEL_WORDS
_OF_THE_RUN = (
    (HEADING_WORDS - LABEL_WORDS)
    | (AVERAGE_WORDS | BEST_WORDS | EARLIER_WORDS | EPOCH_WORDS | STEP_WORDS | BATCH_WORDS)
    | {"current", "now", "last", "latest", "initial"}
)
"""Words before values of the whole run, however these are taken: ``Current: loss 0.5``, ``Best: loss 0.4``."""
_MOST = 32
"""The most lines of one position that are compared; a program with as many groups prints a table."""
_MOST_WORDS = 1 << 10
_ALONE = 3
"""A word that has come this often without another one is taken for a logger's name."""


class Label(NamedTuple):
    """What a line begins with, possibly the name of a group."""

    text: str
    end: int


def label_of(line: str) -> Label | None:
    """Return the word before a line's first name, if it may say whose values follow."""
    match = _LABEL.match(line)
    if match is None:
        return None
    text = match["tag"] or match["word"]
    words = words_of(text)
    if classify(text).role is not Role.OTHER or _WHOSE.issuperset(words) or not _OF_THE_RUN.isdisjoint(words):
        return None
    return Label(text, match.end())


def of_group(reading: LineReading) -> LineReading:
    """Return a reading whose names are prefixed with its group; a loss of a group is not the run's."""
    metrics, eval_metrics = _named(reading.group, reading.metrics), _named(reading.group, reading.eval_metrics)
    return replace(reading, loss=None, loss_name="", series="", metrics=metrics, eval_metrics=eval_metrics)


def _named(group: str, values: Mapping[str, float]) -> dict[str, float]:
    return {name if name.startswith(group) else f"{group} {name}": value for name, value in values.items()}


class Groups:
    """Watches the words before the metrics of one log."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._alone: dict[str, int] = {}
        """How often each word has come without another one."""
        self._place: list[LineReading] = []
        """The lines of groups since the last other reading."""
        self._told = 0
        """How many of them were handed on; the others wait for a line of another group."""

    def as_meant(self, reading: LineReading) -> list[LineReading]:
        """Return the reading, after those that waited for it; nothing while it has to wait itself."""
        if not reading.group:
            return [*self.release(), reading]
        rivals = {one.group for one in self._place if _are_told_in_turn(one, reading)}
        if rivals:
            self._known |= {reading.group, *rivals}
        again = any(one.group == reading.group and _shared(one, reading) for one in self._place)
        before = self.release() if (again and not rivals) or len(self._place) >= _MOST else []
        self._place.append(reading)
        waits = reading.group not in self._known and self._alone.get(reading.group, 0) < _ALONE
        return before if waits else [*before, *self._tell()]

    def release(self) -> list[LineReading]:
        """Return the lines that have waited, since something else has come, or nothing will."""
        if not self._place:
            return []
        for group in {one.group for one in self._place} - self._known:
            self._alone[group] = self._alone.get(group, 0) + (len(self._alone) < _MOST_WORDS)
        told, self._place, self._told = self._tell(), [], 0
        return told

    def _tell(self) -> list[LineReading]:
        told, self._told = self._place[self._told :], len(self._place)
        return [of_group(one) if one.group in self._known else one for one in told]

    def lets_by(self, reading: LineReading) -> bool:
        """True if many readings like this one may be placed without looking at each."""
        if reading.group and (reading.group in self._known or self._alone.get(reading.group, 0) < _ALONE):
            return False
        return self._told == len(self._place)


def _are_told_in_turn(one: LineReading, other: LineReading) -> bool:
    """True if lines of two groups report the same metric, at the same position, with different values."""
    if one.group == other.group or one.counters != other.counters:
        return False
    return any(mine != theirs for mine, theirs in _shared(one, other))


def _shared(one: LineReading, other: LineReading) -> list[tuple[float, float]]:
    mine, theirs = {**one.metrics, **one.eval_metrics}, {**other.metrics, **other.eval_metrics}
    return [(mine[name], theirs[name]) for name in mine.keys() & theirs.keys()]
