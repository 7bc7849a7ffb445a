"""Keras ``fit``: ``Epoch 3/10``, then ``128/128 - 5s - loss: 0.5`` or a bar that is redrawn through the epoch.

``evaluate`` prints the same row without the line in front of it: a row that no ``Epoch`` line opened, or that follows a
finished one, is an evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from ..assemble import assemble, series_name
from ..numbers import parse_count
from ..pairs import read_pairs
from ..points import Counters, Number, Phase, Reading
from . import LineGrammar

_BANNER = re.compile(r"Epoch (\d{1,7})/(\d{1,7})\Z")
_ROW = re.compile(r"(\d{1,9})/(\d{1,9}|Unknown)(?: \[[=>.\-]{1,80}\]| [━─╸╺\-]{2,80}| - (?=\d))(.*)\Z")


class Keras(LineGrammar):
    """Rows of ``fit``, by epoch."""

    name: ClassVar[str] = "keras"
    priority: ClassVar[int] = 35
    needles: ClassVar[tuple[str, ...]] = ("/",)

    def __init__(self) -> None:
        self._epoch: Number | None = None
        self._epochs: Number | None = None
        self._open = False
        self._last: tuple[Number | None, Number | None] = (None, None)

    def read(self, line: str) -> Sequence[Reading] | None:
        """The epoch's banner or a row of it."""
        banner = _BANNER.match(line)
        if banner:
            self._epoch, self._epochs = parse_count(banner[1]), parse_count(banner[2])
            self._open, self._last = True, (None, None)
            return (Reading(self.name, Counters(epoch=self._epoch, epochs=self._epochs)),)
        row = _ROW.match(line)
        return None if row is None else self._row(row)

    def _row(self, row: re.Match[str]) -> Sequence[Reading]:
        n, total = parse_count(row[1]), parse_count(row[2])
        # Dashes between the values are separators, not signs.
        reading = assemble(self.name, "", read_pairs(row[3]), strict=False)
        if reading is None or not (reading.metrics or reading.eval_metrics):
            return ()
        if not self._belongs(n, total):
            values = {**reading.metrics, **reading.eval_metrics}
            return (Reading(self.name, phase=Phase.EVAL, eval_metrics=values),)
        counters = Counters(epoch=self._epoch, epochs=self._epochs, epoch_step=n, epoch_steps=total)
        return (
            replace(
                reading,
                counters=counters,
                bar=True,
                rank=3,
                certain=True,
                series=series_name(f"bar {reading.loss_name}", Counters()),
            ),
        )

    def _belongs(self, n: Number | None, total: Number | None) -> bool:
        """Whether the row is of the open epoch: the same total as before, and not further back."""
        last, before = self._last
        if not self._open or (before is not None and (total != before or (n or 0) < (last or 0))):
            self._open = False
            return False
        self._last = (n, total)
        return True


GRAMMAR = Keras
