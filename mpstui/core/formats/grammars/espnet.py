"""ESPnet: ``1epoch:train:91-180batch: loss_ctc=80.1, loss=70.8``; the step is the range's upper end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..assemble import assemble
from ..pairs import read_pairs
from ..points import Counters, LineReading, parse_count, series_name
from . import Example, LineGrammar

_HEAD = re.compile(r"(\d{1,6})epoch:(train|valid):\d{1,9}-(\d{1,9})batch: ")
_RESULTS = re.compile(r"(\d{1,6})(?:/(\d{1,6}))?epoch (?:results|started)")

_PART = re.compile(r"\[([a-z_]{3,20})\] ")


class Espnet(LineGrammar):
    """Lines by range of batches, and results by epoch."""

    name = "espnet"
    needles = ("epoch:", "epoch results", "epoch started")
    examples = (
        Example(
            "[h] 2024-01-02 10:00:00,000 (trainer:753) INFO: "
            "1epoch:train:1-90batch: loss_ctc=90.1, loss=80.8, optim0_lr0=6.2e-07\n",
            80.8,
            epoch=1,
            step=90,
            learning_rate=6.2e-07,
        ),
    )

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Read a range of batches, or the number and results of an epoch where one starts or ends."""
        head = _HEAD.search(line, 0, 200)
        if head is None:
            results = _RESULTS.search(line, 0, 200)
            if results is None:
                return None
            counters = Counters(epoch=parse_count(results[1]), epochs=parse_count(results[2] or ""))
            return (LineReading(self.name, counters), *self._results(line[results.end() :], counters))
        reading = assemble(self.name, line, read_pairs(line[head.end() :]), strict=False)
        if reading is None:
            return ()
        if head[2] == "valid":
            return (LineReading.evaluation(self.name, reading.metrics),)
        counters = Counters(epoch=parse_count(head[1]), epoch_step=parse_count(head[3]))
        return (replace(reading, counters=counters, series=series_name(reading.loss_name, counters), certain=True),)

    def _results(self, text: str, counters: Counters) -> list[LineReading]:
        """Return the results of an epoch by split: ``[train] loss=2.85, acc=0.5, [valid] loss=2.38, acc=0.6``."""
        parts = _PART.split(text)
        found: list[LineReading] = []
        for part, values in zip(parts[1::2], parts[2::2], strict=True):
            reading = assemble(self.name, values, read_pairs(values), strict=False)
            if reading is None or part not in ("train", "valid"):
                continue
            if part == "valid":
                found.append(LineReading.evaluation(self.name, reading.metrics))
            else:
                series = series_name(reading.loss_name, counters) if reading.loss is not None else ""
                found.append(replace(reading, counters=counters, series=series, certain=True))
        return found


GRAMMAR = Espnet
