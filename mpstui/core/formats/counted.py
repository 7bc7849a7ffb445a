"""Counters known by the way they rise from line to line, wherever they are and whatever they are called.

``Loss [32, 100](epoch, minibatch): 2.6``, ``train loss of round 7: 0.5``, ``Durchlauf 12 | Verlust: 0.5``: no table of
forms and words holds them all, but lines of one shape show them. A whole number that rises by the same amount from each
line to the next is a counter, one right in front of it is the outer counter, a constant one behind it is the total.

A loss without a counter is believed from its third reading on; lines that may turn out to have one wait as long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from .measures import is_measure
from .names import Role, classify, words_of
from .points import NOWHERE, Counters, LineReading, parse_count, series_name
from .shape import PRINTED
from .vocabulary import EPOCH_WORDS, EVAL_WORDS, NOT_THE_STEP, NUMBERED_WORDS, ROUND_WORDS, TRAIN_WORDS

Read = Callable[[str], Sequence[LineReading] | None]
_READ_BY = ("key-value", "sentence")
"""The grammars that know nothing but the words of a line."""
_ENOUGH, _ENOUGH_ONE_BY_ONE = 3, 6
"""How many lines prove a counter: one that rises by one may number the parts of something, but those are few."""
_MOST_SHAPES = 256
_LONGEST, _LONGEST_NAME = 400, 60
_WHOLE = re.compile(r"(?<![\w.])(?<!\d:)\d{1,12}(?![\w.%]|:\d\d)")
"""A whole number that is not part of a time of day."""
_BETWEEN = re.compile(r"[^\w.]{1,4}")
_NO_PLACE = NOT_THE_STEP | NUMBERED_WORDS
_OPENING, _CLOSING = "[(<#", "])>"
_PADDED = re.compile(r" {0,12}# {0,12}")
"""A number in a column of its own: ``Round   9`` and ``Round  10`` are lines of one shape."""
_DRAWN = re.compile(r"\[[=#>*.\x2d█▓▒░ ]{4,120}\]")
"""A hand-made bar that fills up from line to line: ``[=====     ]: 12 (Loss: 0.5)``."""
_NAME_IN_FRONT = re.compile(
    r"(?i)(?P<behind>(?:\A|(?<=\s))(?:of|at|after|for|in|on)\s(?:the\s)?)?(?P<name>[^\W\d_][\w\x2d]{0,30})[\s\-_:=.]{0,3}\Z"
)


class _Counter(NamedTuple):
    """Which of a line's numbers are counters, by their index."""

    inner: int
    outer: int | None = None
    total: int | None = None


class _Shape:
    """Lines that differ only in their numbers: those that wait, and the counter found."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.held: list[tuple[str, Sequence[LineReading]]] = []
        self.counter: _Counter | None = None
        self.known = False

    def settle(self, counter: _Counter | None) -> list[tuple[str, Sequence[LineReading]]]:
        """Note the counter that was found and return the lines that waited for it."""
        self.counter, self.known = counter, True
        held, self.held, self.rows = self.held, [], []
        return held


class CountedLines:
    """Watches the lines of one log that have a loss but no counter."""

    def __init__(self, read: Read) -> None:
        """Take ``read``, which says what a line means without its counters."""
        self._read = read
        self._shapes: dict[str, _Shape] = {}
        self._waiting: _Shape | None = None
        self.held_back: Sequence[LineReading] = ()
        """What the newest line says if it has to wait and the next line is not of its shape."""
        self.earlier = 0
        """How many of the newest readings come from lines above."""

    @property
    def at_rest(self) -> bool:
        """True if no line is waiting."""
        return self._waiting is None

    def as_meant(self, line: str, found: Sequence[LineReading] | None) -> Sequence[LineReading] | None:
        """Return the readings of a line with its counters, preceded by those of lines that waited.

        Empty as long as the line has to wait.
        """
        self.held_back, self.earlier = (), 0
        if not found:
            return found
        shape, numbers = self._shape_of(line, found)
        before = self.release() if shape is not self._waiting else []
        self.earlier = len(before)
        if shape is not None and not shape.known:
            shape.held.append((line, found))
            shape.rows.append(numbers)
            counter, waits = _counter_of(line, shape.rows)
            self._waiting, self.held_back = (shape, found) if waits else (None, ())
            told = [] if waits else shape.settle(counter)
            return [*before, *(reading for one, read in told for reading in self._placed(one, shape, read))]
        meant = found if shape is None else self._placed(line, shape, found)
        return [*before, *meant] if before else meant

    def alone(self, line: str, found: Sequence[LineReading]) -> tuple[Sequence[LineReading], bool]:
        """Return what a line means if no line of its shape is next to it, and whether it would wait for one."""
        shape, _ = self._shape_of(line, found)
        if shape is None or not shape.known:
            return found, shape is not None
        return self._placed(line, shape, found), False

    def release(self) -> list[LineReading]:
        """Return the readings that still wait, unchanged: another line has come between, or no more will come."""
        shape, self._waiting = self._waiting, None
        if shape is None:
            return []
        held, shape.held, shape.rows = shape.held, [], []
        return [reading for _, found in held for reading in found]

    def _shape_of(self, line: str, found: Sequence[LineReading] | None) -> tuple[_Shape | None, list[str]]:
        """Return the shape of a line that may hold a counter not yet recognized, or None, and the line's numbers."""
        reading = found[0] if found is not None and len(found) == 1 else None
        if reading is None or reading.grammar not in _READ_BY or reading.counters != NOWHERE or len(line) > _LONGEST:
            return None, []
        if reading.bare or not (reading.loss is not None or _names_a_loss(reading) or _is_of_training(reading)):
            return None, []
        numbers: list[str] = PRINTED.findall(line)
        if len(numbers) < 2 or _WHOLE.search(line) is None:
            return None, []
        text = _PADDED.sub("#", PRINTED.sub("#", _DRAWN.sub("[]", line)))
        shape = self._shapes.get(text)
        if shape is None and len(self._shapes) < _MOST_SHAPES:
            shape = self._shapes[text] = _Shape()
        return shape, numbers

    def _placed(self, line: str, shape: _Shape, found: Sequence[LineReading]) -> Sequence[LineReading]:
        """Return a line's readings with its counters, or as they were if taking these out leaves no loss."""
        if shape.counter is None:
            return found
        rest, counters = _taken_out(line, shape.counter)
        readings = self._read(rest)
        reading = readings[0] if readings is not None and len(readings) == 1 else None
        if reading is None or not (reading.loss is not None or _is_of_training(reading)) or reading.counters != NOWHERE:
            return found
        series = series_name(reading.loss_name, counters) if reading.loss is not None else ""
        in_rounds = counters.epoch is not None and _counts_rounds(line, shape.counter)
        return (replace(reading, counters=counters, series=series, of_trainings=in_rounds),)


def _is_of_training(reading: LineReading) -> bool:
    """True if a line has a value that only training has, the learning rate, beside another one."""
    several = reading.throughput is not None or len(reading.metrics) > 1
    return reading.learning_rate is not None and several and not reading.eval_metrics


def _names_a_loss(reading: LineReading) -> bool:
    return any(classify(name).role is Role.LOSS for name in reading.metrics)


def _counter_of(line: str, rows: Sequence[Sequence[str]]) -> tuple[_Counter | None, bool]:
    """Return the counter of lines of one shape, ``line`` being the last, and whether more of them are needed."""
    spans = [match.span() for match in PRINTED.finditer(line)]
    alone = {match.span() for match in _WHOLE.finditer(line)}
    columns = [
        [int(text) for text in column] if span in alone and all(map(str.isdigit, column)) else []
        for span, column in zip(spans, zip(*rows, strict=True), strict=True)
    ]
    inner = next((at for at, column in enumerate(columns) if _goes_on(column)), None)
    if inner is None:
        return None, False
    one_by_one = columns[inner][-1] - columns[inner][0] < len(rows) and not _counts_rounds(line, _Counter(inner))
    if len(rows) < (_ENOUGH_ONE_BY_ONE if one_by_one else _ENOUGH):
        return None, True
    start, end = spans[inner]
    name = _NAME_IN_FRONT.search(line[max(0, start - _LONGEST_NAME) : start].rstrip(_OPENING + " "))
    if name is not None and not is_measure(name["name"]) and not _NO_PLACE.isdisjoint(words_of(name["name"])):
        return None, False
    outer = total = None
    if inner and columns[inner - 1]:
        first, last = spans[inner - 1]
        outer = inner - 1 if _BETWEEN.fullmatch(line, last, start) or _is_epoch(line[:first]) else None
    if inner + 1 < len(spans) and len(set(columns[inner + 1])) == 1 and columns[inner + 1][0] >= columns[inner][-1]:
        total = inner + 1 if _BETWEEN.fullmatch(line, end, spans[inner + 1][0]) else None
    return _Counter(inner, outer, total), False


def _goes_on(column: Sequence[int]) -> bool:
    """True if numbers rise by the same amount each time; a single number may be the first of such a series."""
    strides = {after - before for before, after in pairwise(column)}
    return bool(column) and len(strides) < 2 and min(strides, default=1) > 0


def _is_epoch(before: str) -> bool:
    """True if the text before a number calls it an epoch by any word of its name, as in ``epoch_out: ``."""
    name = _NAME_IN_FRONT.search(before[-_LONGEST_NAME:])
    return name is not None and not EPOCH_WORDS.isdisjoint(words_of(name["name"]))


def _counts_rounds(line: str, counter: _Counter) -> bool:
    """True if the only counter of a line is one called ``Round``."""
    start, _ = [match.span() for match in PRINTED.finditer(line)][counter.inner]
    name = _NAME_IN_FRONT.search(line[max(0, start - _LONGEST_NAME) : start].rstrip(_OPENING + " "))
    return counter.outer is None and name is not None and name["name"].lower() in ROUND_WORDS


def _taken_out(line: str, counter: _Counter) -> tuple[str, Counters]:
    """Return a line without its counters and their name, and the counters."""
    spans = [match.span() for match in PRINTED.finditer(line)]
    first = counter.inner if counter.outer is None else counter.outer
    last = counter.inner if counter.total is None else counter.total
    start, end = spans[first][0], spans[last][1]
    while start and line[start - 1] in _OPENING:
        start -= 1
    while end < len(line) and line[end] in _CLOSING:
        end += 1
    count, outer, total = (
        None if at is None else parse_count(line[slice(*spans[at])])
        for at in (counter.inner, counter.outer, counter.total)
    )
    role, name = Role.OTHER, _NAME_IN_FRONT.search(line[max(0, start - _LONGEST_NAME) : start])
    if name is not None:
        role = classify(name["name"]).role
        kept = {name["name"].lower()} <= TRAIN_WORDS | EVAL_WORDS or is_measure(name["name"])
        if name["behind"] or not kept:
            start -= len(name.group())
    rest = f"{line[:start].rstrip()} {line[end:].lstrip()}".strip()
    if outer is not None:
        return rest, Counters(epoch=outer, epoch_step=count, epoch_steps=total)
    if role is Role.EPOCH or _counts_rounds(line, counter):
        return rest, Counters(epoch=count, epochs=total)
    if role is Role.BATCH:
        return rest, Counters(epoch_step=count, epoch_steps=total)
    return rest, Counters(step=count, steps=total)
