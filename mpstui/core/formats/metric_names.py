"""Which named values of one log are metrics, and the one name under which each is shown.

A setting is said once, a metric comes again: what stands beside a loss, a counter or an evaluated measure is one, and
so is what is named like a measure. Any other value must come again, changed, after the training has moved on; until
then it is kept back. One quantity under several spellings (``Loss``, ``train_loss``, ``Average loss``) has the
program's first name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from .names import is_duration, is_measure, is_never_a_metric, quantity
from .points import Counters, LineReading

_MOST = 512
_CURRENT = re.compile(r"(?i)(?:the |current |cur |now |new )+")
_Shown = Mapping[str, str]


class _First(NamedTuple):
    """A value that was kept back, and where the training stood."""

    value: float
    moves: int
    held: Counters


class MetricNames:
    """What one log calls its values."""

    def __init__(self) -> None:
        self.shown: dict[str, None] = {}
        """The metrics so far, in the order in which they came."""
        self._quantities = {"loss": ("", "loss")}
        """Of every name that is given away, what it stands for."""
        self._names: dict[tuple[str, str], str] = {}
        self._given: dict[tuple[str, bool], str] = {}
        self._known: dict[object, tuple[_Shown, _Shown]] = {}
        self._kept_back: dict[str, _First] = {}
        self._alone: set[str] = set()
        """Names that came on lines of their own, with nothing that says whether they are of training."""
        self.came_again: list[tuple[str, _First]] = []
        """Of the last reading, the names whose first value was kept back, and that value."""

    def of(self, reading: LineReading, moves: int, held: Counters) -> LineReading:
        """A reading with its metrics alone, by the names under which they are shown.

        Args:
            moves: how often the training was seen to move on before.
            held: the counters that hold where the reading has none.
        """
        self.came_again = []
        if not (reading.metrics or reading.eval_metrics):
            return reading
        train, evaluated = self.given_to(reading)
        metrics = {train[name]: value for name, value in reading.metrics.items() if train[name]}
        eval_metrics = {evaluated[name]: value for name, value in reading.eval_metrics.items() if evaluated[name]}
        counted = reading.rank > 1 if reading.bar else reading.counters.positioned
        beside = reading.certain or counted or reading.loss is not None
        alone = beside and reading.loss is None and all(map(is_duration, (*metrics, *eval_metrics)))
        if (alone or not beside) and not any(is_measure(name) or self._is_trained(name) for name in eval_metrics):
            metrics, eval_metrics = (
                {name: value for name, value in values.items() if self._is_metric(name, _First(value, moves, held))}
                for values in (metrics, eval_metrics)
            )
        for name in (*metrics, *eval_metrics):
            if len(self.shown) < _MOST and name not in self.shown:
                self.shown[name] = None
                self._alone.update(() if beside else (name,))
        if metrics == reading.metrics and eval_metrics == reading.eval_metrics:
            return reading
        return replace(reading, metrics=metrics, eval_metrics=eval_metrics)

    def given_to(self, reading: LineReading) -> tuple[_Shown, _Shown]:
        """For the names of a reading, of training and of an evaluation, those that are shown; empty for no metric."""
        key = (tuple(reading.metrics), tuple(reading.eval_metrics))
        known = self._known.get(key)
        if known is None:
            printed = {*reading.metrics, *reading.eval_metrics}
            taken: set[str] = set()
            train = {name: self._give(name, "", printed, taken) for name in reading.metrics}
            evaluated = {name: self._give(name, "val", printed, taken) for name in reading.eval_metrics}
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = (train, evaluated)
        return known

    def _give(self, name: str, phase: str, printed: set[str], taken: set[str]) -> str:
        """The name shown; two names of one line are two quantities, however alike they are."""
        if is_never_a_metric(name):
            return ""
        kind, what = quantity(name)
        if what == "lr":
            return "" if phase else _CURRENT.sub("", name)
        meant = (kind or phase, what)
        shown = self._given.get((name, bool(phase))) or self._names.get(meant, name)
        if shown in self._alone and shown != name:
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

    def _is_trained(self, name: str) -> bool:
        """Whether training shows the same quantity."""
        return self._names.get(("", quantity(name)[1])) in self.shown

    def _is_metric(self, name: str, now: _First) -> bool:
        if name in self.shown or is_measure(name):
            return True
        if is_duration(name):
            return False
        before = self._kept_back.get(name)
        if before is not None and before.moves != now.moves and before.value != now.value:
            self.came_again.append((name, self._kept_back.pop(name)))
            return True
        if now.moves and before is None and len(self._kept_back) < _MOST:
            self._kept_back[name] = now
        return False
