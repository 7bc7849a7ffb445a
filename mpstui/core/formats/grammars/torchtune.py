"""torchtune: the bar's description is ``epoch|step|Loss: value``; its log file is an ordinary one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..bars import BarFrame
from ..points import Counters, LineReading, Priority, as_float, parse_count
from . import Example

_DESCRIPTION = re.compile(r"(\d{1,6})\|(\d{1,9})\|[Ll]oss: ?(\d[\d.]{0,20}(?:e[-+]?\d{1,3})?|nan|inf)\Z")


class Torchtune:
    """Epoch, step and loss in front of the bar."""

    name: ClassVar[str] = "torchtune"
    priority: ClassVar[Priority] = Priority.EXACT
    needles: ClassVar[tuple[str, ...]] = ("%|",)
    examples: ClassVar[tuple[Example, ...]] = (
        Example("2|15|Loss: 1.05:  40%|████      | 5/10 [00:01<00:01,  4.0it/s]\n", 1.05, epoch=2, step=15),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Its log file is read like any other."""
        return None

    def read_bar(self, frame: BarFrame) -> LineReading | None:
        """One reading per step."""
        match = _DESCRIPTION.match(frame.description)
        if match is None:
            return None
        loss = as_float(match[3])
        # The step is that of the run, the total that of an epoch: from the second epoch on it plans nothing.
        epoch, step = parse_count(match[1]), parse_count(match[2])
        counters = Counters(epoch=epoch, step=step, steps=frame.total if epoch == 1 else None)
        return LineReading(
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
