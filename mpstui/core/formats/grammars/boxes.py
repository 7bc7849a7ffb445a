"""Boxes of Stable-Baselines3 and OpenAI baselines: ``|    loss | -0.0199 |`` between dashed rules, one box per log."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import LineReading
from ..records import read_record
from . import Example, LineGrammar

_CELLS = re.compile(r"\|\s{0,80}([^|]{1,80}?)\s{0,80}\|\s{0,80}([^|\s]{0,60})\s{0,80}\|\Z")
_RULE = re.compile(r"-{8,300}\Z")
_MAX_CELLS = 200


class Boxes(LineGrammar):
    """One reading per box, made when the box closes."""

    name = "stable-baselines3"
    needles = ("|", "--------")
    examples = (
        Example(
            "-----------------------\n| time/           |     |\n|    total_timesteps | 2048 |\n"
            "| train/ | |\n|    loss | -0.0199 |\n-----------------------\n",
            -0.0199,
            step=2048,
        ),
    )

    def __init__(self) -> None:
        self._section = ""
        self._cells: dict[str, object] = {}

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Nothing for a cell, the whole box for the rule under it."""
        if _RULE.match(line):
            box, self._cells, self._section = self._cells, {}, ""
            if not box:
                return None
            reading = read_record(box, self.name if any("/" in name for name in box) else "openai baselines")
            return () if reading is None else (reading,)
        cells = _CELLS.match(line)
        if cells is None or not line.startswith("|"):
            return None
        name, value = cells[1].strip(), cells[2]
        if not value and name.endswith("/"):
            self._section = name
        elif len(self._cells) < _MAX_CELLS:
            self._cells[self._section + name] = value.rstrip("%")
        return ()


GRAMMAR = Boxes
