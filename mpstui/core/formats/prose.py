"""What a model has written, printed among the records of its training: solutions, answers, whole pages of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .measures import is_measure
from .names import PART, classify
from .points import Counters, LineReading

_BOLD = re.compile(
    r"\s{0,12}(?:\d{1,2}\.|[*•+-])?\s{0,4}\*\*(?![^*]{0,80}(?:oss|poch|tep \d{1,9}\s?[/*,|]))[A-Za-z][^*]{1,80}\*\*"
)
_COMPUTED = re.compile(
    r"\d[%)]?(?: [A-Za-z/]{1,12}){0,2} [*×÷x+] [($]{0,2}\d[^=\n]{0,80}= ?[($]{0,2}\d|[$€£]\d[^=\n]{0,80}= ?[$€£]\d"
)
_COUNTED = re.compile(r"(?i)epoch|iter|step|batch")
_REACH = 200
_BEGINS = 2
"""So many computations with no record of training between them: what stands there was written too. A line in bold type
is worth as many."""


def is_prose(line: str) -> bool:
    """Whether a line is what a model has written, a solution as a rule: ``2. **Total cost:** 12 * $2 = $24``."""
    return _is_bold(line) or _computes(line)


def _is_bold(line: str) -> bool:
    return "**" in line and _BOLD.match(line) is not None


def _computes(line: str) -> bool:
    return "= " in line and _COMPUTED.search(line, 0, _REACH) is not None and _COUNTED.search(line) is None


class Prose:
    """Knows what was written among the lines of one log: until the next record, nothing in it is a value.

    A solution says ``Distance = 124 km`` and ``Step 3: 40 apples`` like any program; its other lines give it away.
    """

    def __init__(self) -> None:
        self._lines = 0

    @property
    def goes_on(self) -> bool:
        """Whether the next line is one of it, unless that is a record."""
        return self._lines >= _BEGINS

    def interrupt(self) -> None:
        """A record of training was read."""
        self._lines = 0

    def read(self, line: str, readings: Sequence[LineReading] | None) -> Sequence[LineReading] | None:
        """What was read of the next line, without what was written."""
        if readings and any(map(_is_record, readings)):
            self._lines = 0
        elif _is_bold(line):
            self._lines = _BEGINS
        elif not self.goes_on:
            self._lines += _computes(line)
        return () if readings and self.goes_on else readings


def _is_record(reading: LineReading) -> bool:
    """Whether a reading is one of training or of an evaluation, whatever was written above it."""
    if reading.bar or reading.declared or reading.counters.epoch is not None:
        return True
    if reading.learning_rate is not None or reading.throughput is not None:
        return True
    placed = reading.counters != Counters()
    if reading.loss is not None and classify(reading.loss_name).rank < PART:
        return placed or "loss" in reading.loss_name.lower()
    values = [*reading.metrics.items(), *reading.eval_metrics.items()]
    measures = [value for name, value in values if is_measure(name)]
    return bool(measures) and (placed or len(values) > 1 or not measures[0].is_integer())
