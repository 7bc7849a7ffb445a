"""Which named values of a log are metrics, and the one name under which each is shown.

A setting is printed once or repeats unchanged, and a count only rises; a metric recurs and goes up and down. Where the
name alone does not decide, recurrence and context do:

- A name with nothing but words of measures (``Test accuracy``) is a metric at once: a result may be printed only once.
- A measure with other words in its name (``shipping cost``) is a metric at once beside a counter, a loss or an
  evaluation's measure, or if it has more digits than people type. Otherwise it has to recur with another value, twice
  if there is no counter.
- Any other value is held back until it recurs with another value: beside a loss or a counter, or twice after training
  has moved on, and then not in whole numbers only. Among settings it never becomes a metric.
- An evaluation loss that is 0 from the start is a placeholder, unless another measure beside it is not 0.
- Values of the machine (times, speeds, memory) are shown elsewhere.
- The best value so far gets no curve if the value itself has one. As that may be printed later, the first best value
  waits for the second, or for the end of the log.

A quantity with several spellings (``Loss``, ``train_loss``, ``Average loss``) is shown under the first one printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from .measures import (
    bare_words,
    best_of,
    is_measure,
    is_never_a_metric,
    is_of_machine,
    is_plain_measure,
    is_setting,
    looks_measured,
    quantity,
)
from .names import PART, NameScope, Role, classify, scope_of, words_of
from .points import Counters, LineReading, MetricPoint
from .vocabulary import AVERAGE_WORDS, CENTRES, EPISODES, STATISTIC_WORDS

_DIGITS = re.compile(r"\d{1,80}")
_MOST = 512
_MOST_KEPT_BACK = 100
"""Values held back per name; a score may stay zero for long."""
_MOST_ALIKE = 8
"""Up to this many names that differ only in their numbers are taken for classes; more have to recur to be shown."""
_OF_A_SPLIT = ("train/", "training/", "val/", "valid/", "validation/", "eval/", "test/")
"""Prefixes of whatever is measured on that data: ``eval/ctc``."""
_OF_THE_PLAN = frozenset(("initial", "init", "base", "start"))
"""Words for the learning rate at which a schedule begins: it has no curve."""
_CURRENT = re.compile(r"(?i)(?:the |current |cur |now |new )+")
_Shown = Mapping[str, str]


class _First(NamedTuple):
    """A value that was held back, and the position of the training at that time."""

    value: float
    moves: int
    held: Counters
    newest: float
    """The last value as long as the values rise like a count."""
    since: tuple[tuple[float, Counters], ...] = ()
    """Later values, each with its counters."""
    again: bool = False
    """True if one of the later values differs by more than counting on."""

    def then(self, now: _First, *, again: bool = False) -> _First:
        """Return a copy with one more value."""
        came = self.since if len(self.since) >= _MOST_KEPT_BACK else (*self.since, (now.value, now.held))
        return self._replace(since=came, moves=now.moves, again=again or self.again)


class _Alike(NamedTuple):
    """Names that differ only in their numbers."""

    names: set[str]
    places: set[int]
    """The values of ``moves`` at which they appeared: names of classes appear together, those with a count one by
    one."""


_NONE_ALIKE = _Alike(set(), set())


class MetricNames:
    """The names of the values in one log."""

    def __init__(self) -> None:
        self.shown: dict[str, None] = {}
        """The metrics so far, in order of appearance."""
        self.options: set[str] = set()
        """Names of configuration options, which are no metrics when they stand alone."""
        self.act = False
        """True if a line with a step has told of an episode."""
        self._quantities = {"loss": ("", "loss")}
        """The quantity that each assigned name stands for."""
        self._names: dict[tuple[str, str], str] = {}
        self._given: dict[tuple[str, bool], str] = {}
        self._known: dict[object, tuple[_Shown, _Shown]] = {}
        self._kept_back: dict[str, _First] = {}
        self._to_come: set[str] = set()
        """Evaluation losses that have been 0 so far."""
        self._alike: dict[str, _Alike] = {}
        self._alone: set[str] = set()
        """Names first shown from a line with nothing that places them in the training."""
        self._came_again: list[tuple[str, _First]] = []
        """Names in the last reading that have just proved to be metrics, with the values held back until then."""

    def of(self, reading: LineReading, moves: int, held: Counters) -> LineReading:
        """Return a reading with nothing but metrics, under the names that are shown.

        Args:
            moves: how many times training has been seen to move on.
            held: the counters to use where the reading has none.
        """
        self._came_again = []
        counted = reading.rank > 1 if reading.bar else reading.counters.positioned
        # ``shipping cost: 15`` is not the total loss.
        beside = counted or reading.certain or (reading.loss is not None and classify(reading.loss_name).rank < PART)
        told = not (self.options.isdisjoint(reading.metrics) and self.options.isdisjoint(reading.eval_metrics))
        if told and not counted and (not beside or reading.loss_name in self.options):
            reading, beside = self._without_options(reading), False
        if not (reading.metrics or reading.eval_metrics):
            return reading
        train, evaluated = self.given_to(reading)
        metrics = {train[name]: value for name, value in reading.metrics.items() if train[name]}
        eval_metrics = {
            shown: value
            for name, value in reading.eval_metrics.items()
            if (shown := evaluated[name]) and not self._is_to_come(shown, value, reading.eval_metrics)
        }
        episodic = not EPISODES.isdisjoint(map(str.lower, reading.metrics))
        self.act = self.act or (episodic and reading.counters.step is not None)
        beside = beside or episodic or any(is_measure(name) or self._is_trained(name) for name in eval_metrics)
        settled = not beside and sum(map(is_setting, (*reading.metrics, *reading.eval_metrics))) > 1
        spreads = _spreads((*metrics, *eval_metrics), beside=beside)
        held_back = {
            name
            for name, value in (*metrics.items(), *eval_metrics.items())
            if not (reading.declared and not value.is_integer())
            and name not in spreads
            and not (
                (not settled or is_measure(name))
                and self._is_metric(name, _First(value, moves, reading.counters.or_else(held), value), beside=beside)
            )
        }
        if held_back:
            metrics, eval_metrics = (
                {name: value for name, value in values.items() if name not in held_back}
                for values in (metrics, eval_metrics)
            )
        for name in (*metrics, *eval_metrics):
            if len(self.shown) < _MOST and name not in self.shown:
                self.shown[name] = None
                self._alone.update(() if beside else (name,))
        if metrics == reading.metrics and eval_metrics == reading.eval_metrics:
            return reading
        return replace(reading, metrics=metrics, eval_metrics=eval_metrics)

    def _without_options(self, reading: LineReading) -> LineReading:
        metrics, eval_metrics = (
            {name: value for name, value in values.items() if name not in self.options}
            for values in (reading.metrics, reading.eval_metrics)
        )
        return replace(reading, loss=None, series="", metrics=metrics, eval_metrics=eval_metrics)

    def not_shown(self, reading: LineReading, which: str) -> LineReading:
        """Return the results of the ``best`` or ``final`` model without those that already have a curve.

        ``best accuracy`` is kept as long as no accuracy has been printed by itself.
        """
        _, evaluated = self.given_to(reading)
        plain = {name: name.removeprefix(f"{which} ") for name in reading.eval_metrics}
        told = {bare_words(name) for name in (*self.shown, *self._kept_back) if not name.startswith(f"{which} ")}
        new = {
            name: value
            for name, value in reading.eval_metrics.items()
            if (evaluated[name] not in self.shown if plain[name] == name else bare_words(plain[name]) not in told)
        }
        return reading if len(new) == len(reading.eval_metrics) else replace(reading, eval_metrics=new)

    def given_to(self, reading: LineReading) -> tuple[_Shown, _Shown]:
        """Map the training names and the evaluation names of a reading to the names shown; "" if not a metric."""
        key = (tuple(reading.metrics), tuple(reading.eval_metrics))
        known = self._known.get(key)
        if known is None:
            printed = {*reading.metrics, *reading.eval_metrics}
            taken: set[str] = set()
            train = {name: self._give(name, "", printed, taken) for name in reading.metrics}
            evaluated = {name: self._give(name, "val", printed, taken) for name in reading.eval_metrics}
            known = (train, evaluated)
            if not any(best_of(name) is not None for name in printed):  # a best value depends on what is shown
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[key] = known
        return known

    def _give(self, name: str, phase: str, printed: set[str], taken: set[str]) -> str:
        """Return the name to show; two names on one line are two quantities, however similar."""
        if is_never_a_metric(name) or is_of_machine(name) or self._is_a_best(name, printed):
            return ""
        kind, what = quantity(name)
        if what == "lr":
            return "" if phase or not _OF_THE_PLAN.isdisjoint(words_of(name)) else _CURRENT.sub("", name)
        meant = (kind or phase, what)
        shown = self._given.get((name, bool(phase))) or self._names.get(meant, name)
        if shown != name and (shown in self._alone or self._sums_up(name, shown, what, phase)):
            shown = name
        if shown != name and (shown in printed or shown in taken):
            shown = name
        if self._quantities.get(shown, meant) != meant:
            shown = f"{meant[0] or 'train'} {shown}"
        taken.add(shown)
        if len(self._given) < _MOST:
            self._given[name, bool(phase)] = shown
            self._names.setdefault(meant, shown)
            self._quantities.setdefault(shown, meant)
        return shown

    @staticmethod
    def _sums_up(name: str, shown: str, what: str, phase: str) -> bool:
        """Whether just one of two spellings names an average, so that the other is the value of one batch.

        Never for the training loss, whose series are kept apart by other means.
        """
        averages = [not AVERAGE_WORDS.isdisjoint(words_of(one)) for one in (name, shown)]
        return bool(phase or what != "loss") and averages[0] != averages[1]

    def _is_a_best(self, name: str, printed: set[str]) -> bool:
        """Whether a name is the best so far of a value that is itself shown or on the same line."""
        best, others = best_of(name), (*printed, *self.shown)
        if best is None:
            return False
        if not best:  # "New best score": the best of whatever measure is shown
            return any(best_of(other) is None and is_measure(other) for other in others)
        return any(best_of(other) is None and best == bare_words(other) for other in others)

    def _is_trained(self, name: str) -> bool:
        """Whether the same quantity is shown for training."""
        return self._names.get(("", quantity(name)[1])) in self.shown

    def _is_metric(self, name: str, now: _First, *, beside: bool) -> bool:
        """Whether a name has proved to be a metric; ``beside``: its line also holds something that is of training."""
        if name in self.shown:
            return True
        if best_of(name) is not None and is_measure(name) and len(self._kept_back) < _MOST:
            # The value that it is the best of may be printed just below it.
            first = self._kept_back.setdefault(name, now)
            self._came_again += () if first is now else ((name, self._kept_back.pop(name)),)
            return first is not now
        alike = self._alike_to(name, now.moves)
        if len(alike.places) > _MOST_ALIKE:
            return False  # the number in the name is a running count: ``Epoch 3 Val MSE``
        named = is_measure(name)
        if (
            named
            and len(alike.names) <= _MOST_ALIKE
            and (beside or is_plain_measure(name) or looks_measured(now.value))
        ):
            return True
        if name.lower().startswith(_OF_A_SPLIT) and looks_measured(now.value):
            return True
        if beside and classify(name).role is not Role.OTHER:
            return True
        before = self._kept_back.get(name)
        if before is None:
            if (now.moves or beside or named) and len(self._kept_back) < _MOST:
                self._kept_back[name] = now
            return False
        counts_on, moved = _counts_on(before.newest, now.value), before.moves != now.moves
        if moved and now.value == before.value and _is_measured_0(name, now.value):
            self._came_again.append((name, self._kept_back.pop(name)))
            return True
        if counts_on or now.value == before.value:
            before = before.then(now) if moved else before
            self._kept_back[name] = before._replace(newest=now.value) if counts_on else before
            return False
        twice = named and before.again
        if not moved and not beside and not twice:
            if named:  # without a counter it has to change twice
                self._kept_back[name] = before.then(now, again=True)
            return False
        if not beside and not twice and now.value.is_integer() and before.value.is_integer():
            return False
        if not beside and not before.again and not named:
            # Alone on its line it may be a setting that another launch of the program has printed again.
            self._kept_back[name] = before.then(now, again=True)
            return False
        self._came_again.append((name, self._kept_back.pop(name)))
        return True

    def left(self, point: MetricPoint) -> list[MetricPoint]:
        """Return points, modelled on ``point``, of best values printed once of measures printed in no other way."""
        found = []
        for name, first in self._kept_back.items():
            if best_of(name) is not None and not self._is_a_best(name, set()):
                told, none = {name: first.value}, dict[str, float]()
                metrics, eval_metrics = (none, told) if scope_of(words_of(name)) is NameScope.EVAL else (told, none)
                found.append(replace(point, counters=first.held, metrics=metrics, eval_metrics=eval_metrics))
                self.shown[name] = None
        return found

    def _is_to_come(self, name: str, value: float, told: Mapping[str, float]) -> bool:
        """Whether an evaluation loss of 0 is a placeholder: nothing else was measured either."""
        waits = value == 0 and name not in self.shown and "loss" in quantity(name)[1].split()
        if waits and name not in self._to_come:
            waits = not any(now != 0 and is_measure(one) for one, now in told.items())
        if waits and len(self._to_come) < _MOST:
            self._to_come.add(name)
        return waits

    def _alike_to(self, name: str, moves: int) -> _Alike:
        """Return the names that differ from this one only in their numbers, including itself."""
        found = _NONE_ALIKE
        if any(map(str.isdigit, name)):
            alike = _DIGITS.sub("#", name)
            found = self._alike.get(alike) or _Alike(set(), set())
            if name not in found.names and len(found.names) < _MOST:
                found.names.add(name)
                found.places.add(moves)
            if len(self._alike) < _MOST:
                self._alike[alike] = found
        return found

    def late(self, point: MetricPoint) -> list[MetricPoint]:
        """Return the points of the values held back until the last reading, which became ``point``."""
        found = []
        for name, first in self._came_again:
            evaluated = name in point.eval_metrics
            late = replace(point, loss=None, series="", learning_rate=None, throughput=None)
            for value, held in ((first.value, first.held), *first.since):
                told, none = {name: value}, dict[str, float]()
                metrics, eval_metrics = (none, told) if evaluated else (told, none)
                found.append(replace(late, counters=held, metrics=metrics, eval_metrics=eval_metrics))
        return found

    def keeps_back(self, name: str) -> bool:
        """Whether a name has been seen and may still prove to be a metric."""
        return name in self._kept_back or (name in self._to_come and name not in self.shown)

    def room_for(self, name: str) -> int:
        """Return how many more values of a name can be held back."""
        first = self._kept_back.get(name)
        return 0 if first is None else _MOST_KEPT_BACK - len(first.since)

    def decided_after(self, name: str, values: Sequence[float]) -> int:
        """Return how many of the next values it takes to prove a name a metric; 0 if they do not prove it."""
        first = self._kept_back.get(name)
        if first is not None and best_of(name) is not None:
            return 1
        if first is None and name in self._to_come:
            return next((number for number, value in enumerate(values, 1) if value != 0), 0)
        if first is not None and values[0] == first.value and _is_measured_0(name, values[0]):
            return 1
        if first is None or (values[0] == first.value and values.count(first.value) == len(values)):
            return 0
        newest = first.newest
        for number, value in enumerate(values, 1):
            if _counts_on(newest, value):
                newest = value
            elif value != first.value:
                return number
        return 0


@lru_cache(maxsize=_MOST)
def _spreads(names: tuple[str, ...], *, beside: bool) -> frozenset[str]:
    """Return the names of statistics (``min reward``) of a measure whose mean is on the same line.

    ``beside`` something of training, other means there were measured too, even if they never change (``ep_len_mean``).
    """
    words = {name: words_of(name) for name in names}
    taken = {name: tuple(word for word in words[name] if word not in STATISTIC_WORDS) for name in names}
    means = [name for name in names if not CENTRES.isdisjoint(words[name])]
    centres = {taken[name] for name in means if is_measure(name)}
    spread = {name for name in names if taken[name] in centres and len(taken[name]) < len(words[name])}
    return frozenset(spread.union(means) if beside and centres else spread)


def _is_measured_0(name: str, value: float) -> bool:
    """Whether a repeated 0 was measured (a share of nothing, an exact prediction), by the prefix of its name."""
    return value == 0 and name.lower().startswith(_OF_A_SPLIT)


def _counts_on(before: float, now: float) -> bool:
    """Whether a value rises like a count, in whole numbers."""
    return now >= before and now.is_integer() and before.is_integer()
