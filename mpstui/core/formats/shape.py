"""Read at the speed of a regular expression: learn the shapes of a log's lines, then match lines in bulk.

A log of a gigabyte is ten million lines of a few shapes. A shape is learned from one line that a stateless grammar has
read: each number is varied in turn, and what changes in the reading shows what that number means. The numbers then
become groups of one expression. Nothing is trusted unchecked: a number whose new value does not arrive unchanged in the
reading spoils the shape, a number format that was not tried (no fraction, negative) does not match, the first lines are
read both ways, and any line that the expression does not match is read the ordinary way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from .points import NOWHERE, LineReading, Number, parse_number

Read = Callable[[str], Sequence[LineReading] | None]
PRINTED = re.compile(r"(?<![\w.])[-+]?\d+(?:,\d{3}(?!\d))*(?:\.\d+)?(?:[eE][-+]?\d+)?|\d+")
"""A number in a log, which may have commas between thousands."""
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\d+")
"""A number in a record, where commas separate values."""
_WHOLE = "(?:0|[1-9][0-9]{0,17}+)"
_REAL = f"(?>-?{_WHOLE}(?:[.][0-9]{{1,30}})?(?:[eE][-+]?[0-9]{{1,2}})?)"
_OF_NO_MEANING = _REAL.replace(_WHOLE, "[0-9]{1,20}")
"""A number that sets no field; may have leading zeros, as in dates and times."""
_PARTS = re.compile(r"(?P<sign>[-+]?)(?P<whole>[\d,]{1,40})(?P<fraction>\.\d{1,40})?(?P<exponent>[eE][-+]?\d{1,9})?")
_DRAWING = re.compile(r" {0,3}\d{1,3}%\|[^|\n]{0,200}\||\[[\d:]{1,12}<[\d:?]{1,12},")
"""Parts of a progress bar that change with every frame but carry no reading: percentage and blocks, the two clocks."""
_DRAWN = (r" {0,3}[0-9]{1,3}%[|][^|\n]{0,600}+[|]", r"\[[0-9:]{1,12}<[0-9:?]{1,12},")
_COUNTERS = ("epoch", "step", "epoch_step")
_PLANNED = ("epochs", "steps", "epoch_steps")
_SINGLE = ("loss", "learning_rate", "throughput")
_PLACES = {field.name: at for at, field in enumerate(fields(LineReading))}
"""Positions of the fields of `LineReading`: building one from a list takes half the time of `replace`."""
_PADDED_BEHIND = ("[", "(", "/")
_MAYBE_PADDED_BEHIND = (*_PADDED_BEHIND, "{", "<", "=", ":", "|", "#")
_MAX_SLOTS = 60
_MAX_LENGTH = 2000


@dataclass(frozen=True, slots=True, eq=False)
class LineShape:
    """A regular expression for lines of one shape, learned from one of them, and what its groups mean."""

    template: LineReading
    pattern: re.Pattern[bytes]
    targets: tuple[tuple[str, ...], ...]
    """For each group of ``pattern``, the fields of the reading that it sets: ``epoch``, ``loss``, ``metrics.NAME``."""
    waits_as: bytes = b""
    """Set if such a line waits for the next one, which supplies its counter if it looks the same: that look."""

    def column(self, field: str) -> int | None:
        """Return the index of the group that sets ``field``, or None."""
        return next((i for i, fields in enumerate(self.targets) if field in fields), None)

    def row_reading(self, row: Sequence[bytes]) -> LineReading:
        """Return the reading of one match, given the text of each group."""
        values: dict[str, Number] = {}
        for targets, text in zip(self.targets, row, strict=True):
            number = parse_number(text.decode())
            if number is not None:
                values |= dict.fromkeys(targets, number)
        template, at = self.template, values.get
        counters = {name: values[name] for name in _COUNTERS if name in values}
        metrics = {name: float(at(f"metrics.{name}", old)) for name, old in template.metrics.items()}
        other = {name: float(at(f"eval_metrics.{name}", old)) for name, old in template.eval_metrics.items()}
        told: list[Any] = [getattr(template, name) for name in _PLACES]
        for name in _SINGLE:
            if name in values:
                told[_PLACES[name]] = float(values[name])
        told[_PLACES["counters"]] = template.counters._replace(**counters)
        told[_PLACES["metrics"]], told[_PLACES["eval_metrics"]] = metrics, other
        return LineReading(*told)


class _Slot(NamedTuple):
    """One number of the line: the fields it sets, and a pattern for the number formats found to set the same."""

    fields: frozenset[str]
    pattern: str


def learn(line: bytes, read: Read, number: re.Pattern[str] = PRINTED, unlike: str = "") -> LineShape | None:
    """Return the shape of ``line``, or None if it cannot be trusted to mean the same with other numbers.

    Lines that start with ``unlike`` are excluded from the shape.
    """
    text = line.decode(errors="replace")
    if len(line) > _MAX_LENGTH or not _DRAWING.sub("", text).isascii():
        return None
    template = _single(read(text))
    drawn = [match.span() for match in _DRAWING.finditer(text)]
    found = [slot for slot in number.finditer(text) if not any(a <= slot.start() < b for a, b in drawn)]
    if template is None or not _is_of_one_line(template) or not 0 < len(found) <= _MAX_SLOTS:
        return None
    slots = [_slot_of(text, slot, template, read, strict=number is NUMBER) for slot in found]
    known = frozenset[str]().union(*(slot.fields for slot in slots if slot is not None))
    if not {name for name in (*_COUNTERS, "loss") if _values(template)[name] is not None} <= known:
        return None
    return LineShape(
        template,
        _expression(text, found, slots, unlike),
        tuple(tuple(sorted(slot.fields)) for slot in slots if slot is not None and slot.fields),
    )


def _is_of_one_line(reading: LineReading) -> bool:
    """True if the reading can be understood from its line alone."""
    depends = reading.plan or reading.bare or reading.brief or reading.restart or reading.epoch_done
    return not depends and reading.under_way is None and reading.told_step is None


def _slot_of(text: str, slot: re.Match[str], template: LineReading, read: Read, *, strict: bool) -> _Slot | None:
    """Return what a number sets and how it may be printed; None if it must stay as it is."""
    number, before = slot.group(), _values(template)

    def moved(other: str) -> frozenset[str] | None:
        """Return the fields that ``other`` sets in place of the number; None if the line then means something else."""
        changed = _single(read(text[: slot.start()] + other + text[slot.end() :]))
        if changed is None or _kind(changed) != _kind(template):
            return None
        value = parse_number(other)
        now = {name: told for name, told in _values(changed).items() if told != before[name]}
        same = all(told == value and (name not in _COUNTERS or type(told) is type(value)) for name, told in now.items())
        return frozenset(now) if same else None

    digits = [at for at, character in enumerate(re.split("[eE]", number)[0]) if character.isdigit()]
    found = [
        moved(number[:at] + ("1" if number[at] != "1" else "2") + number[at + 1 :]) for at in {digits[0], digits[-1]}
    ]
    fields = frozenset[str]().union(*(one for one in found if one is not None))
    if None in found or fields & set(_PLANNED):
        return None
    if strict:
        return _Slot(fields, (_WHOLE if number.isdigit() else _REAL) if fields else _OF_NO_MEANING)
    counted = [name for name in _COUNTERS if name in fields]
    totals = [getattr(template.counters, f"{name}s") for name in counted]
    special = (
        ["0", *(str(total) for total in totals if total is not None)] if counted else ["0.0", "1.0"] if fields else []
    )
    if any(moved(one) not in (fields, frozenset()) for one in special):
        return None  # an extreme value (first, last, 0, 1) means something else
    return _Slot(fields, _forms(text, slot, lambda other: moved(other) == fields, counts=not fields or bool(counted)))


def _forms(text: str, slot: re.Match[str], reads: Callable[[str], bool], *, counts: bool) -> str:
    """Return a pattern for the number in every format that ``reads`` the same; with ``counts``, an int stays an int."""
    number, parts = slot.group(), _PARTS.fullmatch(slot.group())
    # Possessive if the text after the number cannot be part of it, so that there is no backtracking.
    once = "" if re.match("[0-9.,eE]", text[slot.end() : slot.end() + 1]) else "+"
    if parts is None or (number.isdigit() and counts):
        return f"[0-9]{{1,20}}{once}"
    sign, whole, fraction, exponent = (parts[name] or "" for name in ("sign", "whole", "fraction", "exponent"))
    if "," in whole:
        return f"[0-9]{{1,3}}(?:,[0-9]{{3}}){{{0 if reads('37' + fraction) else 1},6}}" + (
            "[.][0-9]{1,12}" if fraction else ""
        )
    other = "37" if whole != "37" else "41"

    def part(pattern: str, there: str, changed: str) -> str:
        """Return ``pattern``, made optional if the number is read the same with and without this part."""
        return f"(?:{pattern})?{once}" if reads(changed) else pattern if there else ""

    minus = part("-", sign, f"{'' if sign else '-'}{other}{fraction}{exponent}") if sign != "+" else "[+]"
    point = part(f"[.][0-9]{{1,30}}{once}", fraction, f"{sign}{other}{'' if fraction else '.25'}{exponent}")
    power = part(f"[eE][-+]?[0-9]{{1,3}}{once}", exponent, f"{sign}{other}{fraction}{'' if exponent else 'e-05'}")
    return f"{minus}[0-9]{{1,20}}{once}{point}{power}"


def _single(readings: Sequence[LineReading] | None) -> LineReading | None:
    return readings[0] if readings is not None and len(readings) == 1 else None


def _kind(reading: LineReading) -> tuple[object, ...]:
    """Return everything of a reading but its numbers."""
    names = (tuple(reading.metrics), tuple(reading.eval_metrics))
    told = tuple(name for name in _SINGLE if getattr(reading, name) is not None)
    bare = replace(
        reading, counters=NOWHERE, loss=None, learning_rate=None, throughput=None, metrics={}, eval_metrics={}
    )
    return (bare, names, told, tuple(value is None for value in reading.counters))


def _values(reading: LineReading) -> dict[str, Number | None]:
    """Return the numbers of a reading by field."""
    single = {name: getattr(reading, name) for name in _SINGLE}
    metrics = {f"metrics.{name}": value for name, value in reading.metrics.items()}
    other = {f"eval_metrics.{name}": value for name, value in reading.eval_metrics.items()}
    return {**reading.counters._asdict(), **single, **metrics, **other}


def _expression(
    text: str, found: Sequence[re.Match[str]], slots: Sequence[_Slot | None], unlike: str
) -> re.Pattern[bytes]:
    """Return the line as a pattern: numbers that set a field are groups, others may vary, or must stay (slot None)."""
    parts: list[str] = []
    position = 0
    for match, slot in zip(found, slots, strict=True):
        parts.append(_literal_expression(text[position : match.start()]))
        position = match.end()
        number = re.escape(match.group()) if slot is None else slot.pattern
        parts.append(f"({number})" if slot is not None and slot.fields else f"(?:{number})")
    parts.append(_literal_expression(text[position:]))
    start = f"^(?!{re.escape(unlike)})" if unlike else "^"
    return re.compile((start + "".join(parts) + "$").encode(), re.MULTILINE)


def _literal_expression(text: str) -> str:
    """Return a pattern for the text between numbers, with variable padding before the next number, and any bar drawing.

    Padding shrinks to nothing as a number fills its column; after a bracket there may be some where this line has none.
    """
    parts: list[str] = []
    position = 0
    for drawing in _DRAWING.finditer(text):
        parts += [re.escape(text[position : drawing.start()]), _DRAWN[drawing.group().startswith("[")]]
        position = drawing.end()
    rest = text[position:]
    bare = rest.rstrip(" ")
    padded = len(bare) < len(rest)
    full = bare.endswith(_MAYBE_PADDED_BEHIND if padded else _PADDED_BEHIND)
    padding = " {0,99}+" if full else " {1,99}+" if padded else ""
    return "".join(parts) + re.escape(bare) + padding
