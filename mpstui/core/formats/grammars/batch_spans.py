"""Two numbers joined by a dash: ``Batch [20-40]``, the batches since the last line, or ``Batch [5-100]``, 5 of 100.

The second number is a total if it stays the same from line to line; until that is known, it is read as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import LineReading
from . import Example, LineGrammar
from .general import General

_SPAN = re.compile(r"(?<=Batch )\[(\d{1,9})-(\d{1,9})\]")


class BatchSpans(LineGrammar):
    """Rewrites the span and leaves the rest of the line to the general reader."""

    name = "batch spans"
    needles = ("Batch [",)
    examples = (
        Example(
            "Epoch[5] Batch [0-20]\tloss=0.50\nEpoch[5] Batch [20-40]\tloss=0.40\n",
            0.4,
            2,
            5,
            step=40,
            format="key-value",
        ),
        Example(
            "Epoch [5] Batch [10-100] Loss: 0.5\nEpoch [5] Batch [20-100] Loss: 0.4\n",
            0.4,
            2,
            5,
            step=20,
            steps=100,
            format="key-value",
        ),
    )

    def __init__(self) -> None:
        self._general = General()
        self._last = ("", "")
        self._of_total: bool | None = None

    def read(self, line: str) -> Sequence[LineReading] | None:
        span = _SPAN.search(line)
        if span is None:
            return None
        (first, last), before = span.groups(), self._last
        if self._of_total is None and before[1] and before != (first, last):
            self._of_total = last == before[1]
        self._last = (first, last)
        place = f"[{last}]" if self._of_total is False else f"[{first}/{last}]"
        return self._general.read(f"{line[: span.start()]}{place}{line[span.end() :]}")


GRAMMAR = BatchSpans
