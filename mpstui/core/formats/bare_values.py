"""Values named only after their data: ``train 1.11 | val 1.32`` may be losses, or accuracies.

What they do decides: a loss falls. A few readings are kept back, then either all are losses or none ever is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from .measures import is_measure
from .names import NameScope, Role, words_of
from .pairs import Pair
from .points import LineReading
from .vocabulary import TRAIN_WORDS

_NEEDED = 5
_FALLS = 3
"""How many of the changes between kept readings have to go down."""


def bare_loss(line: str, pairs: Sequence[Pair]) -> Pair | None:
    """Return the value called just "train" on a line where nothing else says what was measured."""
    found = [pair for pair in pairs if pair.key.lower() in TRAIN_WORDS and not (pair.total or pair.unit)]
    if len(found) != 1 or "." not in found[0].text or any(pair.name.role is Role.LOSS for pair in pairs):
        return None
    beside = {pair.key.lower() for pair in pairs if pair.name.scope is NameScope.EVAL}
    rest = " ".join([line[before.end : pair.start] for before, pair in pairwise(pairs)] + [line[: pairs[0].start]])
    told = any(is_measure(word) for word in words_of(rest) if word not in beside)
    return found[0] if (found[0].marked or beside) and not told else None


class BareValues:
    """Decides for one log whether such values are losses."""

    def __init__(self) -> None:
        self._kept: list[LineReading] = []
        self._are_losses: bool | None = None

    def as_meant(self, reading: LineReading, *, trained: bool) -> list[LineReading]:
        """Return the reading as it is meant, preceded by those kept back once they are known to be losses.

        Args:
            trained: whether any other loss was read; beside it, these values are something else.
        """
        if self._are_losses:
            return [reading]
        unknown = replace(reading, loss=None, series="")
        if self._are_losses is None and not trained:
            self._kept.append(replace(reading, metrics={}, eval_metrics={}))
        if len(self._kept) < _NEEDED or self._are_losses is False:
            return [unknown]
        values = [one.loss or 0.0 for one in self._kept]
        falls = sum(now < before for before, now in pairwise(values))
        self._are_losses = falls >= _FALLS and values[-1] < values[0]
        kept, self._kept = self._kept[:-1], []
        return [*kept, reading] if self._are_losses else [unknown]
