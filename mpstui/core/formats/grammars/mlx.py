"""mlx_lm.lora 0.32 and later: ``  40    2.827 ▲    3,533      1.0k`` below ``iter  train_loss  tok/s  tokens``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..points import Counters, LineReading, as_float, parse_count
from . import Example, LineGrammar

_VALUE = r"-?(?:\d{1,9}\.\d{3}|nan|inf)"
_TRAINED = re.compile(rf"(\d{{1,9}}) {{4}} {{0,3}}({_VALUE}) [▼▲] {{4,12}}([\d,]{{1,12}}) {{4,12}}[\d.]{{1,12}}k\Z")
_VALIDATED = re.compile(rf"\d{{1,9}} {{4}}val {{1,4}}({_VALUE}) {{4}}[\d.]{{1,9}}s\Z")
_PLANNED = re.compile(r"\W{0,12}batch · iters {2,40}\d{1,9} · (\d{1,9})\s")


class Mlx(LineGrammar):
    """Training rows have an arrow that shows whether the loss went down or up."""

    name = "mlx"
    needles = ("▼", "▲", "val ", "batch · iters")
    examples = (
        Example(
            "│    batch · iters   2 · 60          │\n"
            "  iter   train_loss     tok/s     tokens\n"
            "    20    val 2.862    0.04s\n"
            "    20    2.858 ▲    3,568      0.5k\n",
            2.858,
            step=20,
            steps=60,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        if trained := _TRAINED.match(line):
            counters = Counters(step=parse_count(trained[1]))
            reading = LineReading.training(self.name, counters, "train_loss", float(trained[2]))
            return (replace(reading, throughput=as_float(trained[3].replace(",", "")), throughput_unit="tok/s"),)
        if validated := _VALIDATED.match(line):
            return (LineReading.evaluation(self.name, {"val_loss": float(validated[1])}),)
        planned = _PLANNED.match(line)
        return None if planned is None else (LineReading(self.name, Counters(steps=int(planned[1])), plan=True),)


GRAMMAR = Mlx
