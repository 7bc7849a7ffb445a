"""YOLACT, with one letter per loss: ``[ 0]   10 || B: 5.5 | C: 8.2 | T: 19.3 || ETA: 3:11:23``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_LINE = re.compile(
    r"\[\s{0,6}(\d{1,6})\]\s{1,12}(\d{1,12}) \|\| ((?:[A-Z]: -?(?:[\d.]{1,16}|nan|inf) \| ){0,12})T: (\S{1,16}) \|\|"
)
_PART = re.compile(r"([A-Z]): (\S{1,16}) \|")
_NAMES = {
    "B": "box_loss",
    "C": "class_loss",
    "M": "mask_loss",
    "S": "semantic_loss",
    "I": "iou_loss",
    "P": "prototype_loss",
}


class Yolact(LineGrammar):
    """The total loss and its parts."""

    name = "yolact"
    needles = ("|| ETA: ",)
    examples = (
        Example(
            "[  2]      10 || B: 5.500 | C: 8.250 | M: 5.500 | T: 19.250 || ETA: 10 days, 3:11:23 || timer: 0.302\n",
            19.25,
            epoch=2,
            step=10,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = _LINE.match(line)
        total = as_float(match[4]) if match is not None else None
        if match is None or total is None:
            return None
        parts = {_NAMES.get(letter) or letter: as_float(text) for letter, text in _PART.findall(match[3])}
        known = {name: value for name, value in parts.items() if value is not None}
        counters = Counters(epoch=parse_count(match[1]), step=parse_count(match[2]))
        return (LineReading.training(self.name, counters, "total_loss", total, metrics=known),)


GRAMMAR = Yolact
