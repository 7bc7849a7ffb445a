"""Lines that say that an epoch is over: "Epoch 3 done", "Epoch 3/10 finished in 12 s", "End of epoch 3"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .numbers import parse_count
from .pairs import spell_ordinals
from .points import Counters, Reading

_HINTS = ("poch", "POCH", "poc", "ép", "Ép", "пох", "ПОХ", "ep ", "Ep ", "[ep", "轮", "輪", "エポック", "에폭")
_EPOCH = r"(?:epoche?n?|époque|época|epoca|эпоха|эпохи|エポック|에폭|ep)"
_COUNT = r"\s{0,4}[#№:=]?\s{0,4}\[?\(?(?P<epoch>\d{1,9})(?:\s{0,4}(?:/|of|von|sur|de|из)\s{0,4}(?P<epochs>\d{1,9}))?"
_END = (
    r"(?:done|finished|completed?|ended|ends?|over|took|fertig|beendet|abgeschlossen|termin(?:ée?|ada|ado|ata)|finie|"
    r"complet(?:ada|ata)|fin|завершена|окончена|закончена|完了|終了|完成|结束|結束|完毕|완료|종료)"
)
_NUMBER_FIRST = re.compile(
    rf"(?i)\W{{0,8}}(?:train(?:ing)? )?{_EPOCH}{_COUNT}[\])\s:.,|\x2d]{{0,6}}"
    rf"(?:(?:is|was|has been|has|training|train|est|ist|wurde|训练|訓練|学習|학습) ?){{0,2}}{_END}(?!\w)"
    r"(?!\W{0,3}\d[\d.]{0,8}+(?!:|\s?(?:s|secs?|seconds|ms|m|mins?|minutes|h|hours?)\b))"
    r"(?!\s{1,3}(?:of|to|early|with errors?)\b)"
)
_WORD_FIRST = re.compile(
    rf"(?i)\W{{0,8}}(?:(?:the )?end(?:ed)? of|finish(?:ed|ing)|completed|done with|fin d(?:e l|e la|e)?|ende(?: von)?)"
    rf"[ '’](?:training )?{_EPOCH}{_COUNT}(?![\w.])"
)


def with_end(line: str, readings: Sequence[Reading] | None) -> Sequence[Reading] | None:
    """The readings of a line, with what it says of the end of an epoch."""
    if not any(map(line.__contains__, _HINTS)):
        return readings
    ended = ended_epoch(line)
    if ended is None:
        return readings
    if readings and any(reading.counters.epoch == ended.epoch for reading in readings):
        return [replace(r, epoch_done=r.counters.epoch == ended.epoch) for r in readings]
    return readings or (Reading("end of epoch", ended, epoch_done=True),)


def ended_epoch(line: str) -> Counters | None:
    """The epoch (and how many are planned) that a line declares to be over; None for any other line."""
    text = line if line.isascii() else spell_ordinals(line)
    found = _NUMBER_FIRST.match(text) or _WORD_FIRST.match(text)
    if found is None:
        return None
    return Counters(epoch=parse_count(found["epoch"]), epochs=parse_count(found["epochs"] or ""))
