"""Darknet: ``123: 2.345678, 2.401234 avg loss, 0.001000 rate, 3.512345 seconds, 7872 images``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..numbers import as_float, parse_count
from ..points import Counters, Reading
from . import LineGrammar

_VALUE = r"-?(?:[\d.]{1,20}|nan|inf)"
_LINE = re.compile(rf"(\d{{1,9}}): ({_VALUE}), ({_VALUE}) avg(?: loss)?, ([\d.]{{1,16}}) rate, ")


class Darknet(LineGrammar):
    """The loss of the batch in front of its average."""

    name: ClassVar[str] = "darknet"
    needles: ClassVar[tuple[str, ...]] = (" rate, ",)

    def read(self, line: str) -> Sequence[Reading] | None:
        """One reading per batch."""
        match = _LINE.match(line)
        loss = as_float(match[2]) if match else None
        if match is None or loss is None:
            return None
        average = as_float(match[3])
        metrics = {"loss": loss} | ({} if average is None else {"avg loss": average})
        reading = Reading(
            self.name,
            Counters(step=parse_count(match[1])),
            loss=loss,
            loss_name="loss",
            learning_rate=as_float(match[4]),
            metrics=metrics,
            series="loss@s",
            certain=True,
        )
        return (reading,)


GRAMMAR = Darknet
