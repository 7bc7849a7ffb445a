"""Values that a later line repeats, among others or rounded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from .measures import decimals_of, is_rounded, is_same
from .names import words_of
from .points import NOWHERE, Counters, LineReading, Number, Phase
from .vocabulary import EVAL_WORDS, LOSS_WORDS, TRAIN_WORDS

_LETTERS = re.compile(r"[^\W\d_]+")


def as_evaluation(reading: LineReading, at: Counters, under_way: tuple[Number, Number] | None) -> LineReading:
    """Return the reading with all its values as those of an evaluation, which may still be under way."""
    evaluated = {**reading.metrics, **reading.eval_metrics}
    return replace(
        reading,
        phase=Phase.EVAL,
        counters=at,
        loss=None,
        series="",
        metrics={},
        eval_metrics=evaluated,
        under_way=under_way,
    )


@lru_cache(maxsize=4096)
def _is_loss_on_known_data(name: str) -> bool:
    """True if a name is that of a loss and says on which data it was measured."""
    words = words_of(name)
    return not LOSS_WORDS.isdisjoint(words) and not (TRAIN_WORDS | EVAL_WORDS).isdisjoint(words)


class ToldAgain:
    """Finds a loss that the next line repeats among others: ``Val loss: 52.67071`` above ``l1: 0.676 loss: 52.671``.

    The first line says which data the other values belong to. Two losses that have ever differed are never joined.
    """

    def __init__(self) -> None:
        self._above: tuple[str, float] | None = None
        self._differ: set[str] = set()

    def learn(self, reading: LineReading) -> None:
        """Remember this line of training or evaluation as the one above the next."""
        told = {**reading.metrics, **reading.eval_metrics}
        name, value = next(iter(told.items()), ("", 0.0))
        self._above = (name, value) if len(told) == 1 and not reading.bar and _is_loss_on_known_data(name) else None

    def of(self, reading: LineReading) -> LineReading:
        """Return the reading without the loss repeated from the line above, its other values as of the same data."""
        if self._above is None or reading.bar or reading.loss is None or len(reading.metrics) < 2:
            return reading
        name, full = self._above
        if reading.certain or reading.eval_metrics or reading.counters.positioned or name in self._differ:
            return reading
        if not is_rounded(full, reading.loss):
            self._differ.add(name)
            return reading
        others = {one: value for one, value in reading.metrics.items() if one != reading.loss_name}
        whose = next((word for word in _LETTERS.findall(name) if word.lower() in EVAL_WORDS), "")
        reading = replace(reading, loss=None, series="", metrics=others)
        if not whose:
            return reading
        return replace(
            as_evaluation(reading, NOWHERE, None),
            eval_metrics={f"{whose} {one}": value for one, value in others.items()},
        )


class Rounded:
    """Finds results of an evaluation that are repeated with fewer decimals before training goes on:
    ``{'acc': 48.4375}`` above ``best so far, acc: 48.44``; or first with fewer, then in full."""

    def __init__(self) -> None:
        self._newest: dict[str, float] = {}
        """Values measured since the last line of training."""
        self._beside: dict[str, int] = {}
        """For each of these, the number of values on its line, itself included."""
        self._at = NOWHERE
        """The counters of the line they were last on."""
        self._rounded: set[str] = set()
        """Names seen repeated this way; any other value may have been measured again with the same result."""

    def learn(self, reading: LineReading) -> None:
        """Take in another line of training or evaluation."""
        if reading.loss is not None or reading.metrics or (reading.counters != NOWHERE and not reading.eval_metrics):
            self._newest.clear()
        if reading.eval_metrics and not reading.bar and reading.under_way is None:
            self._newest |= reading.eval_metrics
            self._beside |= dict.fromkeys(reading.eval_metrics, len(reading.eval_metrics))
            self._at = reading.counters

    def of(self, reading: LineReading) -> LineReading:
        """Return the reading without values that repeat those above it."""
        if not (self._newest and reading.eval_metrics) or reading.loss is not None or reading.metrics:
            return reading
        if reading.bar or reading.under_way is not None:
            return reading  # each frame is a reading of its own, with as many digits as it needs
        now, then = reading.counters, self._at
        if any(None not in two and two[0] != two[1] for two in zip(now, then, strict=True)):
            return reading
        if self._is_record(reading.eval_metrics):
            return replace(reading, eval_metrics={})
        new = {name: value for name, value in reading.eval_metrics.items() if not self._is_known(name, value)}
        return reading if len(new) == len(reading.eval_metrics) else replace(reading, eval_metrics=new)

    def _is_record(self, values: Mapping[str, float]) -> bool:
        """True if the values only collect what shorter lines above have told, as a JSON record below them does."""
        return all(
            name in self._newest
            and (now == self._newest[name] or is_same(now, self._newest[name]))
            and self._beside[name] < len(values)
            for name, now in values.items()
        )

    def _is_known(self, name: str, now: float) -> bool:
        before = self._newest.get(name)
        if before is None or not is_same(now, before):
            return False
        if abs(decimals_of(before) - decimals_of(now)) > 1:  # one fewer may only be a trailing zero
            self._rounded.add(name)
        return name in self._rounded
