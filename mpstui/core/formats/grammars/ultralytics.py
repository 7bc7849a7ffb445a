"""Ultralytics YOLO and YOLOv5: a header row of column names, then rows that a bar redraws through the epoch.

YOLOv5 counts epochs ``0/99`` for 100 epochs, YOLOv8 and later ``1/100``. From 8.3.200 on the bar is Ultralytics' own.
The ``results.txt`` of YOLOv3 to v7 has rows without a header, recognised by the fourth loss being the sum of the three
before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..bars import BarFrame
from ..points import Counters, LineReading, Number, Phase, as_float, parse_count
from . import Example, LineGrammar

_HEADER = re.compile(r"Epoch\s{1,12}(?:GPU_mem|gpu_mem)\s{1,12}\S.*", re.IGNORECASE)
_ROW = re.compile(
    r"(\d{1,6})/(\d{1,6})\s{1,24}([\d.]{1,8}[GMK]?)((?:\s{1,24}(?:-?[\d.]{1,16}(?:e[-+]\d{1,3})?|nan|inf)){1,16})"
)
_WITHOUT_HEADER = ["Epoch", "gpu_mem", "box", "obj", "cls", "total"]
_ROUNDED = 0.01
"""Relative tolerance between the sum of printed numbers and the printed sum."""
_NO_LOSSES = ("instances", "size", "labels", "img_size", "targets")
_OWN_BAR = re.compile(r":\s{1,4}(\d{1,3})%\s.{0,80}?(\d{1,9})/(\d{1,9})\s")
_MEASURES = re.compile(
    r"\s{0,40}Class\s{1,20}Images\s{1,20}(?:Instances|Labels|Targets)\s{1,20}(\S[^:]{1,200}(?::\.\d\d)?)"
)
_ALL = re.compile(
    r"\s{0,40}all\s{1,20}\d{1,12}\s{1,20}\d{1,12}((?:\s{1,20}(?:[\d.]{1,16}(?:e[-+]\d{1,3})?|nan)){2,12})\Z"
)


class Ultralytics(LineGrammar):
    """Rows of loss parts under a header (without a total, the box loss is charted), and rows of evaluation measures."""

    name = "ultralytics"
    needles = ("GPU_mem", "gpu_mem", "/", "Class ", " all ", "all ")
    examples = (
        Example(
            "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
            "      1/9      1.76G      2.034      3.517      1.422          5        512: "
            "100%|██████████| 26/26 [00:07<00:00,  2.08it/s]\n",
            2.034,
            epoch=1,
            epochs=9,
            step=26,
            steps=26,
        ),
        Example(
            "     4/39     2.41G    0.0625   0.03125     0.125   0.21875        37       640    0.5    0.25\n",
            0.21875,
            epoch=4,
            epochs=40,
        ),
    )

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._measures: list[str] = []

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Read a header, or a row without a tqdm bar."""
        if _HEADER.match(line):
            self._columns = line.split()
            return ()
        if self._names_measures(line):
            return ()
        row = _ALL.match(line) if self._measures else None
        if row is not None:
            values = {name: float(value) for name, value in zip(self._measures, row[1].split(), strict=False)}
            return (LineReading.evaluation(self.name, values),)
        bar = _OWN_BAR.search(line)
        reading = self._row(line, *((parse_count(bar[2]), parse_count(bar[3])) if bar else ()))
        return None if reading is None else (reading,)

    def read_bar(self, frame: BarFrame) -> LineReading | None:
        """Read a row with its bar; validation bars have a row of column names instead."""
        if self._names_measures(frame.description):
            return LineReading(self.name, phase=Phase.EVAL, bar=True)
        return self._row(frame.description, frame.n, frame.total)

    def _names_measures(self, text: str) -> bool:
        """Take in the column names of the row "all": ``Box(P  R  mAP50)``; a second group is prefixed: ``Mask P``."""
        header = _MEASURES.match(text) if "Class" in text else None
        if header is None:
            return False
        group, self._measures = "", []
        for name in header[1].split():
            opened, bracket, rest = name.rpartition("(")
            group = opened if bracket and opened != "Box" else group
            self._measures.append(f"{group} {rest.rstrip(')')}".strip())
        return True

    def _row(self, text: str, n: Number | None = None, total: Number | None = None) -> LineReading | None:
        match = _ROW.match(text)
        if match is None:
            return None
        columns, cells = self._columns, [as_float(cell) for cell in match[4].split()]
        if not columns and match[3][-1:].isalpha() and _is_summed(cells):
            columns = _WITHOUT_HEADER
        values = dict(zip(columns[2:], cells, strict=False))
        losses = {name: v for name, v in values.items() if v is not None and name.lower() not in _NO_LOSSES}
        if not losses:
            return None
        name = next((n for n in ("total", "loss", "box_loss", "box") if n in losses), next(iter(losses)))
        planned = int(match[2]) + (1 if "obj" in columns or "obj_loss" in columns else 0)
        counters = Counters(epoch=int(match[1]), epochs=planned, epoch_step=n, epoch_steps=total)
        reading = LineReading.training(self.name, counters, name, losses[name], metrics=losses)
        part = name not in ("total", "loss")
        return replace(reading, series=f"{name}@row", bar=True, rank=3, running=True, declared=True, part=part)


def _is_summed(cells: Sequence[float | None]) -> bool:
    """True if there are more than four values and the fourth is the sum of the first three."""
    parts = [cell for cell in cells[:4] if cell is not None]
    return len(cells) > len(parts) == 4 and abs(sum(parts[:3]) - parts[3]) <= _ROUNDED * parts[3]


GRAMMAR = Ultralytics
