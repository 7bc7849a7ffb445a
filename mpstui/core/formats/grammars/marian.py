"""Marian: ``Ep. 1 : Up. 500 : Sen. 64,000 : Cost 9.21034 * 1,234 @ 56 after 78,900 : Time 12.3s : 456.7 words/s``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..numbers import as_float, parse_count
from ..points import Counters, Phase, Reading
from . import LineGrammar

_LINE = re.compile(
    r"(?P<valid>\[valid\] )?Ep\. (?P<epoch>[\d.]{1,9}) : Up\. (?P<step>\d{1,12}) :"
    r"(?:.{0,60}?: Cost (?P<cost>-?[\d.]{1,24}|nan|inf))?(?:.{0,120}? : (?P<rate>[\d.]{1,16}) words/s)?"
    r"(?:.{0,60}? : L\.r\. (?P<lr>[\d.e+-]{1,16}))?"
)


class Marian(LineGrammar):
    """Updates with their cost; its lines of validation count no update."""

    name: ClassVar[str] = "marian"
    needles: ClassVar[tuple[str, ...]] = ("Ep. ",)

    def read(self, line: str) -> Sequence[Reading] | None:
        """One reading."""
        match = _LINE.match(line)
        if match is None:
            return None
        if match["valid"]:
            return (Reading(self.name, phase=Phase.EVAL),)
        cost = as_float(match["cost"])
        reading = Reading(
            self.name,
            Counters(epoch=parse_count(match["epoch"]), step=parse_count(match["step"])),
            loss=cost,
            loss_name="Cost" if cost is not None else "",
            learning_rate=as_float(match["lr"]),
            throughput=as_float(match["rate"]),
            throughput_unit="words/s" if match["rate"] else "",
            metrics={} if cost is None else {"Cost": cost},
            series="cost@es" if cost is not None else "",
            certain=True,
        )
        return (reading,)


GRAMMAR = Marian
