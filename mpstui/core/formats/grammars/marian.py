"""Marian: ``Ep. 1 : Up. 500 : Sen. 64,000 : Cost 9.21034 * 1,234 @ 56 after 78,900 : Time 12.3s : 456.7 words/s``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_LINE = re.compile(
    r"(?P<valid>\[valid\] )?Ep\. (?P<epoch>[\d.]{1,9}) : Up\. (?P<step>\d{1,12}) :"
    r"(?:.{0,60}?: Cost (?P<cost>-?[\d.]{1,24}|nan|inf))?(?:.{0,120}? : (?P<rate>[\d.]{1,16}) words/s)?"
    r"(?:.{0,60}? : L\.r\. (?P<lr>[\d.e+-]{1,16}))?"
)

_MEASURED = re.compile(r" (?P<name>[A-Za-z][\w-]{1,40}) : (?P<value>-?[\d.]{1,24}|nan|inf)(?= |\Z)")
"""The result on a validation line: ``cross-entropy : 50.1 : new best``."""


class Marian(LineGrammar):
    """Updates with their cost; validation lines set no counters."""

    name = "marian"
    needles = ("Ep. ",)
    examples = (
        Example(
            "[2024-01-02 10:00:00] Ep. 2 : Up. 500 : Sen. 1,234 : Cost 9.25 * 5,324 @ 24 after 12,345 : "
            "Time 12.1s : 123.4 words/s : L.r. 3.0e-04\n"
            "[2024-01-02 10:00:09] [valid] Ep. 2 : Up. 500 : cross-entropy : 50.1 : new best\n",
            9.25,
            epoch=2,
            step=500,
            learning_rate=3e-4,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = _LINE.match(line)
        if match is None:
            return None
        if match["valid"]:
            told = _MEASURED.match(line, match.end())
            value = as_float(told["value"]) if told is not None else None
            measured = {} if told is None or value is None else {told["name"]: value}
            return (LineReading.evaluation(self.name, measured),)
        counters = Counters(epoch=parse_count(match["epoch"]), step=parse_count(match["step"]))
        cost, rate, speed = as_float(match["cost"]), as_float(match["lr"]), as_float(match["rate"])
        if cost is None:
            return (LineReading(self.name, counters, learning_rate=rate),)
        reading = LineReading.training(self.name, counters, "Cost", cost, learning_rate=rate)
        return (replace(reading, throughput=speed, throughput_unit="words/s" if speed is not None else ""),)


GRAMMAR = Marian
