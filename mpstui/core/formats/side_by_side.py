"""Several names followed by as many values: ``loss(train/val)=0.5/0.6``, ``IS, FID: 1.7, 341.4``."""

from __future__ import annotations

import re

from .measures import is_measure
from .vocabulary import PART_WORDS, STATISTIC_WORDS

NUMBER = r"[-+−]?(?:\d{1,3}(?:,\d{3}){1,6}(?!,?\d)|\d{1,30}|(?=\.\d))(?:\.\d{1,30})?(?:[eE][-+]?\d{1,4})?"
_PHASES = r"(tr|train|training|val|valid|validation|test|dev|eval)"
_OF_BOTH = re.compile(
    rf"(?i)(?<![\w/])(?:([a-z_]{{1,20}})[ _]?[(\[]{_PHASES}\s?[/|,]\s?{_PHASES}[)\]]"
    rf"|([a-z_]{{1,20}} )?\(?{_PHASES}\s?/\s?{_PHASES} ([a-z_]{{1,20}})\)?)"
    rf"\s{{0,3}}[:=]\s{{0,3}}({NUMBER})\s{{0,3}}[/|,]\s{{0,3}}({NUMBER})(?![\w/])"
)
"""``loss(train/val)=0.5/0.6``, ``Train/Val Acc: 0.5 / 0.6``, ``Linear (Train/Val Acc): 0.5/0.6``."""
_BESIDE_TRAINING = [f"{sign}{word}" for sign in "/|," for word in ("val", "Val", "VAL", "test", "Test", "TEST", "dev")]
_STATISTIC = f"(?:{'|'.join(sorted(STATISTIC_WORDS))})"
_STATISTICS = re.compile(
    rf"(?i)(?<![\w/])(?:(?P<each>{_STATISTIC}(?:\s?/\s?{_STATISTIC}){{1,4}}) (?P<of>[a-z_][\w-]{{0,30}})"
    rf"|(?P<whose>[a-z_][\w-]{{0,30}}) [(\[]?(?P<behind>{_STATISTIC}(?:\s?/\s?{_STATISTIC}){{1,4}})[)\]]?)"
    rf"\s{{0,3}}[:=]?\s{{0,3}}(?P<values>{NUMBER}(?:\s?/\s?{NUMBER}){{1,4}})(?![\w/.])"
)
"""``mean/median reward 20.5/20.0``, ``loss (min/max): 0.25/0.75``."""
_STROKES = re.compile(rf"(?i)\b{_STATISTIC}\s?/\s?{_STATISTIC}\b")
_IN_TURN = re.compile(
    rf"(?:(?<=  )|(?<=[|\t] )|\A)([A-Za-z][\w-]{{0,20}}), ([A-Za-z][\w-]{{0,20}})(?:, ([A-Za-z][\w-]{{0,20}}))?: "
    rf"({NUMBER}), ({NUMBER})(?:, ({NUMBER}))?\Z"
)
"""``IS, FID: 1.7, 341.4``: all the names, then all the values."""
_LIST = re.compile(
    r"(?<![\w/.-])(?P<whose>(?:[A-Za-z][a-z]{1,15} ){0,2})"
    r"(?P<names>[A-Za-z][\w@]{0,15}(?:\s?/\s?[A-Za-z][\w@]{0,15}){1,5})"
    rf"\s{{0,3}}[:=]?\s{{0,3}}(?P<values>{NUMBER}%?(?:\s?/\s?{NUMBER}%?){{1,5}})(?![\w/]|\.\d)"
)
"""``mIoU/mAcc/allAcc 0.41/0.52/0.83``, ``Macro P/R/F1: 0.5 / 0.6 / 0.7``."""
_LETTERS = frozenset(("P", "R", "F"))
"""Short for precision, recall and the F-score, in a list with a plain measure."""
_PART = re.compile(
    r"\s{0,8}(?P<part>(?P<word>[A-Za-z]{2,12})[ _]\d{1,4})\b(?: ?[-(] ?[\w .-]{1,40}\)?)?(?: [Rr]esult)?\s?[:|]"
)
"""At the start of a line of one class: ``Class_3 Result: iou/accuracy 0.41/0.52``."""


def each_of_list(line: str) -> str:
    """Put each measure of a list in front of its value: ``Macro P: 0.5, Macro R: 0.6, Macro F1: 0.7``."""
    part = _PART.match(line)
    of_part = f"{part['part']} " if part is not None and part["word"].lower() in PART_WORDS else ""

    def spelt_out(match: re.Match[str]) -> str:
        names, values = re.split(r"\s?/\s?", match["names"]), re.split(r"\s?/\s?", match["values"])
        measured = [is_measure(name) for name in names]
        known = any(measured) and all(one or name in _LETTERS for one, name in zip(measured, names, strict=True))
        if len(names) != len(values) or not known or "." not in match["values"]:
            return match.group()
        whose = of_part or match["whose"]
        return ", ".join(f"{whose}{name}: {value}" for name, value in zip(names, values, strict=True))

    return _LIST.sub(spelt_out, line)


def each_of_statistics(line: str) -> str:
    """Spell out the name of each statistic: ``mean reward: 20.5, median reward: 20.0``."""
    return _STATISTICS.sub(_with_statistic, line) if _STROKES.search(line) else line


def each_of_both(line: str) -> str:
    """Give the training value and the evaluation value a name each: ``train loss: 0.5, val loss: 0.6``."""
    return _OF_BOTH.sub(_with_phase, line) if any(map(line.__contains__, _BESIDE_TRAINING)) else line


def each_in_turn(line: str) -> str:
    """Put each name in front of its value, in a line that ends with all the values."""
    return _IN_TURN.sub(_with_name, line)


def _with_statistic(match: re.Match[str]) -> str:
    each, values = (match["each"] or match["behind"]).split("/"), match["values"].split("/")
    if len(each) != len(values):
        return match.group()
    what = match["of"] or match["whose"]
    return ", ".join(f"{one.strip()} {what}: {value.strip()}" for one, value in zip(each, values, strict=True))


def _with_phase(match: re.Match[str]) -> str:
    name, one, other, whose, first, second, behind, *values = match.groups()
    one, other, name = one or first, other or second, name or f"{whose or ''}{behind}"
    return f"{one} {name}: {values[0]}, {other} {name}: {values[1]} "


def _with_name(match: re.Match[str]) -> str:
    names, values = match.groups()[:3], match.groups()[3:]
    if (names[2] is None) != (values[2] is None):
        return match.group()
    return ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True) if name)
