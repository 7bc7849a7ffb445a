"""Rows of meters in reinforcement learning: ``| train | E: 3 | S: 600 | R: -12.5 | ALOSS: 0.4``.

Each meter has a short code; the full names are those of the programs' own CSV files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..points import Counters, LineReading, Phase, as_float, parse_count
from . import Example, LineGrammar

_ROW = re.compile(r"\|\s(train|eval)\s{1,16}\|\s([A-Z][A-Z0-9_]{0,11}:\s.{1,400})")
_METER = re.compile(r"([A-Z][A-Z0-9_]{0,11}):\s(-?(?:\d[\d.]{0,20}(?:e[-+]?\d{1,3})?|nan|inf))(?=\s{0,2}(?:\||\Z))")
_NAMES = {
    "R": "episode_reward",
    "L": "episode_length",
    "BR": "batch_reward",
    "ALOSS": "actor_loss",
    "CLOSS": "critic_loss",
    "TLOSS": "alpha_loss",
    "TVAL": "alpha_value",
    "AENT": "actor_entropy",
    "RLOSS": "reconstruction_loss",
}
_NO_METRICS = ("E", "S", "F", "BS", "FPS", "D", "T")
"""Counters, the size of a buffer, times and speeds."""


class Meters(LineGrammar):
    """Rewards, and losses of several networks, none of which is the training loss."""

    name = "meters"
    needles = ("| train ", "| eval ")
    examples = (
        Example(
            "| train          | E: 3 | S: 600 | R: -12.5000 | D: 1.5 s | BR: -0.5000 | ALOSS: 0.2500 | CLOSS: 1.7500\n"
            "| eval           | E: 3 | S: 600 | R: -10.2500\n",
            losses=0,
            step=600,
            format="key-value",
        ),
        Example(
            "| train | F: 1200 | S: 600 | E: 3 | L: 200 | R: 0.5 | BS: 600 | FPS: 90.5 | T: 0:00:42\n",
            losses=0,
            step=600,
            format="key-value",
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        row = _ROW.match(line)
        meters = {} if row is None else {match[1]: match[2] for match in _METER.finditer(row[2])}
        if row is None or "S" not in meters:
            return None
        values = {_NAMES.get(key) or key: as_float(text) for key, text in meters.items() if key not in _NO_METRICS}
        known = {name: value for name, value in values.items() if value is not None}
        if row[1] == "eval":
            return (LineReading.evaluation(self.name, {f"eval {name}": value for name, value in known.items()}),)
        counters = Counters(step=parse_count(meters["S"]))
        return (LineReading(self.name, counters, Phase.TRAIN, metrics=known, declared=True),)


GRAMMAR = Meters
