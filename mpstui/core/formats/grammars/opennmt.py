"""OpenNMT-py: ``Step 50/100000; acc: 3.40; ppl: 9861.20; xent: 9.20; lr: 0.00001; 12345/13456 tok/s; 10 sec``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..numbers import as_float, parse_count
from ..points import Counters, Reading
from . import LineGrammar

_HEAD = re.compile(r"Step (\d{1,12})/\s{0,8}(\d{1,12});")
_VALUE = re.compile(r"\b([a-z]{2,12}): {1,6}(-?[\d.]{1,24}(?:e[-+]\d{1,3})?|nan|inf)\b")


class Opennmt(LineGrammar):
    """The cross entropy per token is what is minimised."""

    name: ClassVar[str] = "opennmt"
    needles: ClassVar[tuple[str, ...]] = ("xent:",)

    def read(self, line: str) -> Sequence[Reading] | None:
        """One reading."""
        head = _HEAD.match(line)
        if head is None:
            return None
        values = {name: value for name, text in _VALUE.findall(line[:600]) if (value := as_float(text)) is not None}
        if "xent" not in values:
            return None
        reading = Reading(
            self.name,
            Counters(step=parse_count(head[1]), steps=parse_count(head[2])),
            loss=values["xent"],
            loss_name="xent",
            learning_rate=values.pop("lr", None),
            metrics=values,
            series="xent@s",
            certain=True,
        )
        return (reading,)


GRAMMAR = Opennmt
