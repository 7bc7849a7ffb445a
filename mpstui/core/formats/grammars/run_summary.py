"""What the examples of transformers print when all is done: ``global_step = 2490, average loss = 0.4195``.

The loss is the mean over the run, no reading of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..numbers import parse_count
from ..points import Counters, Reading
from . import LineGrammar

_LINE = re.compile(r"global_step = (\d{1,12}), average loss = ")


class RunSummary(LineGrammar):
    """The last step of a run."""

    name: ClassVar[str] = "run summary"
    priority: ClassVar[int] = 40
    needles: ClassVar[tuple[str, ...]] = ("global_step = ",)

    def read(self, line: str) -> Sequence[Reading] | None:
        """The step alone."""
        match = _LINE.search(line, 0, 80)
        return None if match is None else (Reading(self.name, Counters(step=parse_count(match[1]))),)


GRAMMAR = RunSummary
