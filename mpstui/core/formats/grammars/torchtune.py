"""torchtune: the bar's description is ``epoch|step|Loss: value``; its log file is an ordinary one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..bars import BarFrame
from ..numbers import as_float, parse_count
from ..points import Counters, Reading

_DESCRIPTION = re.compile(r"(\d{1,6})\|(\d{1,9})\|[Ll]oss: ?(\d[\d.]{0,20}(?:e[-+]?\d{1,3})?|nan|inf)\Z")


class Torchtune:
    """Epoch, step and loss in front of the bar."""

    name: ClassVar[str] = "torchtune"
    priority: ClassVar[int] = 20
    needles: ClassVar[tuple[str, ...]] = ("%|",)

    def read(self, line: str) -> Sequence[Reading] | None:
        """Its log file is read like any other."""
        return None

    def read_bar(self, frame: BarFrame) -> Reading | None:
        """One reading per step."""
        match = _DESCRIPTION.match(frame.description)
        if match is None:
            return None
        loss = as_float(match[3])
        counters = Counters(epoch=parse_count(match[1]), step=parse_count(match[2]), steps=frame.total)
        return Reading(
            self.name,
            counters,
            loss=loss,
            loss_name="Loss",
            metrics={"Loss": loss or 0.0},
            series="bar loss@",
            bar=True,
            rank=3,
            certain=True,
        )


GRAMMAR = Torchtune
