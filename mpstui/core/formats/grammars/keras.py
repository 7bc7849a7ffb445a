"""Keras ``fit``: ``Epoch 3/10``, then ``128/128 - 5s - loss: 0.5`` or a bar that is redrawn through the epoch.

``evaluate`` prints the same row without an ``Epoch`` line: a row that no such line opened, or that follows a finished
one, is an evaluation. A ``fit`` of one epoch has no ``Epoch`` line either: its last row has validation values, and rows
with as many batches belong to the fits that follow. Rows before any sign of a ``fit`` are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..assemble import assemble
from ..pairs import read_pairs
from ..points import Counters, LineReading, Number, parse_count, series_name
from . import Example, LineGrammar

_BANNER = re.compile(r"Epoch (\d{1,7})/(\d{1,7})\Z")
_ROW = re.compile(r"(\d{1,9})/(\d{1,9}|Unknown)(?: \[[=>.\-]{1,80}\](?= - )| [━─╸╺\-]{2,80}| - (?=\d))(.*)\Z")


class Keras(LineGrammar):
    """Rows of ``fit``, by epoch."""

    name = "keras"
    needles = ("/",)
    examples = (
        Example(
            "Epoch 1/3\n10/10 - 1s - loss: 0.9 - accuracy: 0.5 - val_loss: 0.8\n4/4 - 0s - loss: 0.7 - accuracy: 0.6\n",
            0.9,
            epoch=1,
            epochs=3,
            step=10,
            steps=10,
        ),
        Example(
            "Epoch 2/3\n\x08\x08 5/10 ━━━━━━━━━━ 1s 20ms/step - accuracy: 0.5 - loss: 0.95\x08\x08\r"
            "10/10 ━━━━━━━━━━ 1s 20ms/step - accuracy: 0.5 - loss: 0.9 - val_loss: 0.8\n"
            "4/4 ━━━━━━━━━━ 1s 20ms/step - accuracy: 0.6 - loss: 0.7\n",
            0.9,
            losses=2,
            epoch=2,
            epochs=3,
            step=10,
            steps=10,
        ),
    )

    def __init__(self) -> None:
        self._epoch: Number | None = None
        self._epochs: Number | None = None
        self._open = False
        self._of_one: Number | None = None
        """Batches of a ``fit`` of one epoch."""
        self._last: tuple[Number | None, Number | None] = (None, None)

    def read(self, line: str) -> Sequence[LineReading] | None:
        banner = _BANNER.match(line)
        if banner:
            self._epoch, self._epochs = parse_count(banner[1]), parse_count(banner[2])
            self._open, self._last = True, (None, None)
            return (LineReading(self.name, Counters(epoch=self._epoch, epochs=self._epochs)),)
        row = _ROW.match(line)
        return None if row is None else self._row(row)

    def _row(self, row: re.Match[str]) -> Sequence[LineReading]:
        n, total = parse_count(row[1]), parse_count(row[2])
        # Dashes between the values are separators, not signs.
        reading = assemble(self.name, "", read_pairs(row[3]), strict=False)
        if reading is None or not (reading.metrics or reading.eval_metrics):
            return ()
        last, before = self._last
        # A row of the open epoch has the same total as the one before it, and no lower count.
        if before is not None and (total != before or (n or 0) < (last or 0)):
            self._open = False
        if not self._open and reading.eval_metrics:
            self._of_one = total
        if not self._open and (total is None or total != self._of_one):
            redrawn = total is not None and n != total  # interim values over part of the data
            unknown = self._epoch is None and self._of_one is None  # perhaps the first ``fit`` of one epoch
            values = {**reading.metrics, **reading.eval_metrics}
            return () if redrawn or unknown else (LineReading.evaluation(self.name, values),)
        self._last = (n, total)
        epoch, epochs = (self._epoch, self._epochs) if self._open else (None, None)
        counters = Counters(epoch=epoch, epochs=epochs, epoch_step=n, epoch_steps=total)
        series = series_name(f"bar {reading.loss_name}", Counters())
        return (replace(reading, counters=counters, bar=True, rank=3, certain=True, series=series),)


GRAMMAR = Keras
