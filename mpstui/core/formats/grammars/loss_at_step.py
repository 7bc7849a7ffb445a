"""``Cost after iteration 100: 0.65``, ``Minibatch loss at step 100: 2.3``: the counter is between name and value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..assemble import series_name
from ..names import Role, Scope, classify
from ..numbers import as_float, parse_count
from ..points import Counters, Reading
from . import LineGrammar

_STEP_FIRST = re.compile(
    r"(?i)(?P<name>(?:train(?:ing)? )?loss)[ :]{1,2}(?P<n>\d{1,12}) (?P<value>\d{1,9}\.\d{3,20}|nan|inf)(?= |\Z)"
)
_LINE = re.compile(
    r"(?i)(?P<name>(?:[a-z_]{1,16} ){0,3}(?:loss|cost)) (?:at|after|for|in|on) (?:the )?"
    r"(?P<what>epoch|step|iteration|iter|batch|minibatch)s?[ #:]{0,4}(?P<n>\d{1,12})(?:\s?/\s?(?P<total>\d{1,12}))?"
    r"\s{0,4}(?::|=|is|was|-)?\s{0,8}(?P<value>-?\d[\d.]{0,24}(?:e[-+]?\d{1,3})?|nan|inf)"
)


class LossAtStep(LineGrammar):
    """A loss named by its place."""

    name: ClassVar[str] = "loss at step"
    priority: ClassVar[int] = 40
    needles: ClassVar[tuple[str, ...]] = ("oss ", "ost a", "ost f", "ost i", "ost o", "oss: ", "LOSS ")

    def read(self, line: str) -> Sequence[Reading] | None:
        """One reading; an evaluation's loss is kept apart."""
        match = _LINE.match(line) or _STEP_FIRST.match(line)
        if match is None:
            return None
        name, value = classify(match["name"]), as_float(match["value"])
        if name.role is not Role.LOSS or value is None:
            return None
        if name.scope is Scope.EVAL:
            return (Reading(self.name, eval_metrics={match["name"]: value}),)
        found = match.groupdict()
        n, total = parse_count(match["n"]), parse_count(found.get("total") or "")
        is_epoch = found.get("what", "").lower() == "epoch"
        counters = Counters(epoch=n, epochs=total) if is_epoch else Counters(step=n, steps=total)
        return (
            Reading(
                self.name,
                counters,
                loss=value,
                loss_name=match["name"],
                metrics={match["name"]: value},
                series=series_name(match["name"], counters),
                certain=name.scope is Scope.TRAIN,
            ),
        )


GRAMMAR = LossAtStep
