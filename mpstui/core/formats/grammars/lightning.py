"""Lightning's RichProgressBar, whose values wrap onto the lines below it, one column each, if the line is too short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..assemble import assemble
from ..pairs import read_pairs
from ..points import NOWHERE, LineReading, as_float, series_name
from . import Example, LineGrammar

_BAR = re.compile(
    r"Epoch (?P<epoch>\d{1,6})/(?P<last>-?\d{1,6}) {1,9}[━╸╺╷ ]{2,300} (?P<n>\d{1,9})/(?P<total>\d{1,9}|--) "
    r"\d{1,4}:\d\d:\d\d • [\d:-]{4,12} (?P<speed>\d{1,9}(?:\.\d{1,4})?)it/s(?=\s|\Z)"
)
_VALUE = r"-?(?:\d{1,12}(?:\.\d{1,12})?(?:e[-+]\d{1,3})?|nan|inf)"
_NAME = r"[A-Za-z][^\s:]{0,80}:"
_NAME_AT_THE_END = re.compile(rf"(?:\A|(?<=\s)){_NAME}\Z")
_BELOW = re.compile(
    rf"(?P<first>{_VALUE})?(?:\s{{0,80}}{_NAME}\s{{1,80}}{_VALUE}){{0,20}}\s{{0,80}}(?P<name>{_NAME})?\Z"
)
"""A wrapped line: the value of the name above, names with their values, and a name whose value is on the next line."""


class Lightning(LineGrammar):
    """Epochs count from 0, and the number after the slash is that of the last epoch."""

    name = "lightning"
    examples = (
        Example(
            "Epoch 1/2  ━━━━━━━━━━━━━ 20/20 0:00:00 • 0:00:00 36.54it/s train_loss_step: \n"
            "                                                           0.492 train_acc: \n"
            "                                                           0.875 val_loss:  \n"
            "                                                           0.423            \n",
            0.492,
            epoch=1,
            epochs=3,
            step=20,
            steps=20,
        ),
    )

    def __init__(self) -> None:
        self._at = NOWHERE
        """The counters of the bar that the next lines may continue."""
        self._name = ""
        """The name at the end of the last line, whose value is on the next one."""

    @property
    def is_open(self) -> bool:
        return self._at != NOWHERE

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Read a bar, or a line that continues one."""
        if line.startswith("Epoch ") and (bar := _BAR.match(line)):
            last, total = int(bar["last"]), bar["total"]
            self._at = NOWHERE._replace(
                epoch=int(bar["epoch"]),
                epochs=last + 1 if last >= 0 else None,
                epoch_step=int(bar["n"]),
                epoch_steps=int(total) if total.isdigit() else None,
            )
            self._name = ""
            return (replace(self._told(line[bar.end() :]), throughput=as_float(bar["speed"]), throughput_unit="it/s"),)
        below = _BELOW.match(line) if self._at != NOWHERE else None
        if below is None or bool(below["first"]) != bool(self._name):
            self._at = NOWHERE
            return None
        return (self._told(line),)

    def _told(self, text: str) -> LineReading:
        told = f"{self._name} {text.strip()}"
        self._name = end.group() if (end := _NAME_AT_THE_END.search(told)) is not None else ""
        found = assemble(self.name, "", read_pairs(told.removesuffix(self._name)), strict=False)
        if found is None or found.loss is None:
            return replace(found or LineReading(self.name), counters=self._at)
        return replace(found, counters=self._at, series=series_name(found.loss_name, self._at))


GRAMMAR = Lightning
