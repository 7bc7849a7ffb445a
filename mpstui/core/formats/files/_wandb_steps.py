"""What the metrics of a run of Weights & Biases count by, as its program said (``define_metric``).

All curves share one axis, so the run has one step: the count that a program declared for everything, or for its
training loss; else the number of the row. What was declared to count by something else lies where it says; a count of
epochs is no other step, it is told beside the steps.
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
    """The steps of rows, one after the other."""

    def __init__(self) -> None:
        self.newest = math.nan
        """Of the run."""
        self._own: str | None = None
        self._own_rank = 9
        self._asked: dict[str, str] = {}
        """By what the metrics of a name, or of a beginning with a star behind it, count."""
        self._of: dict[str, str | None] = {}
        """What was found there, by the metric's name; None: they count by the step of the run."""
        self._last: dict[str, float] = {}

    def define(self, name: str, step: str) -> None:
        """``name`` counts by ``step``."""
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
        """The rows that come next are earlier ones."""
        self.newest = math.nan
        self._last.clear()

    def rows(self, values: dict[str, float | bytes], counted: float, moment: float) -> Sequence[Row]:
        """One row for each count that its metrics have; ``counted`` is the number of the row, NaN where untold."""
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
