"""Text of a model or a programmer, printed among the records of a training: solutions, answers, source code."""

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
_SOURCE = re.compile(
    r"import [a-z_]\w{0,40}(?:\.\w{1,40}|,| as |\s{0,4}\Z)|from [\w.]{1,60} import [\w(*]"
    r"|(?:def|class) \w{1,60}\(.{0,200}:\s{0,4}\Z|if __name__ == "
)
"""Lines found only in source code: some programs log theirs at the start."""
_ASSIGNED = re.compile(r"\s{0,40}[A-Za-z_][\w., \[\]]{0,80} [-+*/]?= ")
_COUNTED = re.compile(r"(?i)epoch|iter|step|batch")
_SOURCE_HINTS = ("import ", "from ", "def ", "class ", "if __")
_REACH = 200
_BEGINS = 2
"""This many computations without a training record in between make the text around them prose, as does a single line
in bold type."""


def is_prose(line: str) -> bool:
    """Whether a line is source code or was written by a model: ``2. **Total cost:** 12 * $2 = $24``."""
    return _is_bold(line) or _computes(line) or _is_source(line)


def _is_bold(line: str) -> bool:
    return "**" in line and _BOLD.match(line) is not None


def _is_source(line: str) -> bool:
    return line.startswith(_SOURCE_HINTS) and _SOURCE.match(line) is not None


def _computes(line: str) -> bool:
    return "= " in line and _COMPUTED.search(line, 0, _REACH) is not None and _COUNTED.search(line) is None


class Prose:
    """Recognises prose among the lines of one log: nothing in it is a value, up to the next record.

    A solution says ``Distance = 124 km`` and ``Step 3: 40 apples`` like any program; its other lines give it away.
    """

    def __init__(self) -> None:
        self._lines = 0
        self._is_source = False

    @property
    def goes_on(self) -> bool:
        """True if the next line is prose too, unless it is a record."""
        return self._lines >= _BEGINS

    @property
    def at_rest(self) -> bool:
        """True if no line since the last record has looked like prose."""
        return self._lines == 0

    def interrupt(self) -> None:
        """End the prose, as a training record was read."""
        self._lines, self._is_source = 0, False

    def read(self, line: str, readings: Sequence[LineReading] | None) -> Sequence[LineReading] | None:
        """Take the next line; return its readings, or none if it is prose."""
        if _is_source(line):
            self._lines, self._is_source = _BEGINS, True
        elif readings and any(map(_is_record, readings)):
            if not self._is_source or _ASSIGNED.match(line) is None:
                self.interrupt()
        elif _is_bold(line):
            self._lines = _BEGINS
        elif not self.goes_on:
            self._lines += _computes(line)
        return () if readings and self.goes_on else readings


def _is_record(reading: LineReading) -> bool:
    """Whether a reading is a record of training or of an evaluation even right below prose."""
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
