"""The step axis of metrics in Weights & Biases, as the program defined it (``define_metric``).

All curves share one axis, so the run has one step: the step metric that the program defined for everything, or for its
training loss; else the number of the row. Metrics with another step metric are placed at its values. An epoch is never
taken for a step metric: it is kept beside the steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..names import NameScope, Role, classify
from ..records import ALIASES, EPOCH
from ..rows import Row
from ..vocabulary import TRAIN_WORDS

_EVERY = "*"


class Steps:
    """Determines the step of each row in turn."""

    def __init__(self) -> None:
        self.newest = math.nan
        """The newest step of the run."""
        self._own: str | None = None
        self._own_rank = 9
        self._asked: dict[str, str] = {}
        """The step metric defined for a name, or for a prefix ending in ``*``."""
        self._of: dict[str, str | None] = {}
        """Cache of the step metric by metric name; None for the step of the run."""
        self._last: dict[str, float] = {}

    def define(self, name: str, step: str) -> None:
        """Take in a definition: ``name`` has the step metric ``step``."""
        last = step.rpartition("/")[2].lower()
        if not name or not step or EPOCH in (ALIASES.get(step.lower()), ALIASES.get(last)):
            return
        self._asked[name] = step
        self._of.clear()
        begin = name.rstrip("*/._-").lower()
        said = classify(name)
        of_training = begin in TRAIN_WORDS or (said.role is Role.LOSS and said.scope is not NameScope.EVAL)
        rank = 0 if name == _EVERY else 1 if last == "global_step" else 2 if of_training else 9
        if rank < self._own_rank:
            self._own, self._own_rank = step, rank

    def rewind(self) -> None:
        """Forget the newest step: the next rows are earlier ones."""
        self.newest = math.nan
        self._last.clear()

    def rows(self, values: dict[str, float | bytes], counted: float, moment: float) -> Sequence[Row]:
        """Split a row by the step metrics of its values; ``counted`` is the row's own step, NaN if unknown."""
        if self._own is not None:
            counted = _number(values.get(self._own, self._last.get(self._own, counted)))
            self._last[self._own] = counted
        self.newest = step = self.newest if math.isnan(counted) else counted
        if not self._asked:
            return (Row(values, step, moment),) if values else ()
        parts: dict[str | None, dict[str, float | bytes]] = {}
        for name, value in values.items():
            parts.setdefault(self._count_of(name), {})[name] = value
        own = parts.pop(None, None)
        found = []
        for other, part in parts.items():
            at = self._last[other or ""] = _number(values.get(other or "", self._last.get(other or "", step)))
            found.append(Row(part, at, moment, aside=True))
        return found if own is None else [*found, Row(own, step, moment)]

    def _count_of(self, name: str) -> str | None:
        if name not in self._of:
            begins = (one[:-1] for one in self._asked if one.endswith(_EVERY))
            longest = max((one for one in begins if name.startswith(one)), key=len, default=None)
            asked = self._asked.get(name) or (None if longest is None else self._asked[longest + _EVERY])
            self._of[name] = None if asked in (self._own, name) else asked
        return self._of[name]


def _number(value: float | bytes) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan
