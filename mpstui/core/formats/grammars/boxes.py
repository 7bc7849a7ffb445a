"""Two-column boxes, ``|    loss | -0.0199 |``, one for each record.

Stable-Baselines3 and OpenAI baselines draw them between dashed rules, terminaltables, prettytable and tabulate between
``+------+--------+``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..measures import is_measure
from ..points import Counters, LineReading
from ..records import read_record
from . import Example, LineGrammar

_CELLS = re.compile(r"\|\s{0,80}([^|]{1,80}?)\s{0,80}\|\s{0,80}([^|\s]{0,60})\s{0,80}\|\Z")
_RULE = re.compile(r"-{8,300}\Z")
_GRID = re.compile(r"\+[-=]{3,200}\+[-=]{3,200}\+\Z")
"""The rule of a grid. Such boxes hold settings as often as measurements."""
_MAX_CELLS = 200


class Boxes(LineGrammar):
    """Makes one reading per box, when the box closes."""

    name = "stable-baselines3"
    needles = ("|", "--------", "+--", "+==")
    examples = (
        Example(
            "-----------------------\n| time/           |     |\n|    total_timesteps | 2048 |\n"
            "| train/ | |\n|    loss | -0.0199 |\n-----------------------\n",
            -0.0199,
            step=2048,
        ),
        Example(
            "+------------+-------+\n| Part       | Value |\n+------------+-------+\n| Step       | 40    |\n"
            "| Shape loss | 0.25  |\n| Loss       | 1.75  |\n+------------+-------+\n",
            1.75,
            step=40,
            format="grid",
        ),
    )

    def __init__(self) -> None:
        self._section = ""
        self._cells: dict[str, object] = {}

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Claim each cell without a reading; return the whole box at the rule below it."""
        in_grid = line.startswith("+") and _GRID.match(line) is not None
        if in_grid or _RULE.match(line):
            box, self._cells, self._section = self._cells, {}, ""
            if not box:
                return None
            kind = "grid" if in_grid else self.name if any("/" in name for name in box) else "openai baselines"
            reading = read_record(box, kind)
            if reading is not None and in_grid and reading.loss is None and not any(map(is_measure, box)):
                planned = Counters(epochs=reading.counters.epochs)
                reading = LineReading(kind, planned, learning_rate=reading.learning_rate, plan=True)
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
