"""Values that are called after their data alone: ``train 1.11 | val 1.32`` may be losses, or accuracies.

What they do decides: a loss falls. They are kept for so many readings, then either all are losses or none ever is.
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
"""Of the steps from one to the next, so many have to go down."""


def bare_loss(line: str, pairs: Sequence[Pair]) -> Pair | None:
    """The value of a line that is called "train" alone, where nothing else on it says what was measured."""
    found = [pair for pair in pairs if pair.key.lower() in TRAIN_WORDS and not (pair.total or pair.unit)]
    if len(found) != 1 or "." not in found[0].text or any(pair.name.role is Role.LOSS for pair in pairs):
        return None
    beside = {pair.key.lower() for pair in pairs if pair.name.scope is NameScope.EVAL}
    rest = " ".join([line[before.end : pair.start] for before, pair in pairwise(pairs)] + [line[: pairs[0].start]])
    told = any(is_measure(word) for word in words_of(rest) if word not in beside)
    return found[0] if (found[0].marked or beside) and not told else None


class BareValues:
    """Watches them in one log."""

    def __init__(self) -> None:
        self._kept: list[LineReading] = []
        self._are_losses: bool | None = None

    def as_meant(self, reading: LineReading, *, trained: bool) -> list[LineReading]:
        """The reading as it is meant; before it, as soon as they are known for losses, those that were kept.

        Args:
            trained: whether any loss was counted: beside one these are something else.
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
