"""Reading at the speed of a regular expression: the shape of a log's own lines, learned and then matched in bulk.

A log of a gigabyte is ten million lines of one shape. The shape is learned from one line that a stateless grammar has
read: every number in it is changed in turn, and what changes in the reading tells what the number is. The numbers then
become groups of one expression, which is run over megabytes at once. Nothing is trusted that was not checked: a slot
whose value does not arrive unchanged in the reading spoils the shape, the first lines are read both ways, and whatever
the expression does not match goes the ordinary way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from .points import LineReading, MetricPoint, Number, PointColumns, parse_number

Read = Callable[[str], Sequence[LineReading] | None]
PRINTED = re.compile(r"(?<![\w.])[-+]?\d+(?:,\d{3}(?!\d))*(?:\.\d+)?(?:[eE][-+]?\d+)?|\d+")
"""A number of a log, which may have commas between thousands."""
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\d+")
"""One of a record, whose commas stand between values, and which without one that is none is another record."""
_WHOLE = "(?:0|[1-9][0-9]{0,17}+)"
_REAL = f"(?>-?{_WHOLE}(?:[.][0-9]{{1,30}})?(?:[eE][-+]?[0-9]{{1,2}})?)"
_OF_NO_MEANING = _REAL.replace(_WHOLE, "[0-9]{1,20}")
"""Also of a date or a time."""
_DRAWING = re.compile(r" {0,3}\d{1,3}%\|[^|\n]{0,200}\||\[[\d:]{1,12}<[\d:?]{1,12},")
"""Parts of a progress bar that change with every frame and say nothing: percentage and blocks, the two clocks."""
_DRAWN = (r" {0,3}[0-9]{1,3}%[|][^|\n]{0,600}+[|]", r"\[[0-9:]{1,12}<[0-9:?]{1,12},")
_COUNTERS = ("epoch", "step", "epoch_step")
_PLANNED = ("epochs", "steps", "epoch_steps")
_PADDED_BEHIND = ("[", "(", "/")
_MAYBE_PADDED_BEHIND = (*_PADDED_BEHIND, "{", "<", "=", ":", "|", "#")
_MAX_SLOTS = 60
_MAX_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class LineShape:
    """An expression for lines of one shape, learned from one of them, and what its groups mean."""

    template: LineReading
    pattern: re.Pattern[bytes]
    targets: tuple[tuple[str, ...], ...]
    """For every group of ``pattern`` the fields of the reading it sets: ``epoch``, ``loss``, ``metrics.NAME`` ..."""

    def column(self, field: str) -> int | None:
        """The group that sets ``field``."""
        return next((i for i, fields in enumerate(self.targets) if field in fields), None)

    def reading(self, line: bytes) -> LineReading | None:
        """The reading of one line; None when it does not fit."""
        match = self.pattern.match(line)
        return None if match is None else self.row_reading(match.groups())

    def row_reading(self, row: Sequence[bytes]) -> LineReading | None:
        """The reading of one row of texts, one for each group."""
        values: dict[str, Number] = {}
        for fields, text in zip(self.targets, row, strict=True):
            number = parse_number(text.decode())
            if number is None:
                return None
            values.update(dict.fromkeys(fields, number))
        template = self.template
        counters = {name: values[name] for name in _COUNTERS if name in values}
        single = {name: float(values[name]) for name in ("loss", "learning_rate", "throughput") if name in values}
        metrics = {name: float(values.get(f"metrics.{name}", old)) for name, old in template.metrics.items()}
        other = {name: float(values.get(f"eval_metrics.{name}", old)) for name, old in template.eval_metrics.items()}
        return replace(
            template,
            counters=template.counters._replace(**counters),
            loss=single.get("loss", template.loss),
            learning_rate=single.get("learning_rate", template.learning_rate),
            throughput=single.get("throughput", template.throughput),
            metrics=metrics,
            eval_metrics=other,
        )


def learn(line: bytes, read: Read, number: re.Pattern[str] = PRINTED) -> LineShape | None:
    """The shape of ``line``, or None when it cannot be trusted to mean the same with other numbers."""
    text = line.decode(errors="replace")
    if len(line) > _MAX_LENGTH or not _DRAWING.sub("", text).isascii():
        return None
    template = _single(read(text))
    drawn = [match.span() for match in _DRAWING.finditer(text)]
    slots = [slot for slot in number.finditer(text) if not any(a <= slot.start() < b for a, b in drawn)]
    if template is None or template.loss is None or not 0 < len(slots) <= _MAX_SLOTS:
        return None
    meanings = [_meaning(text, slot, template, read) for slot in slots]
    targets = [fields for fields in meanings if fields]
    known = {field for fields in targets for field in fields}
    if "loss" not in known or any(getattr(template.counters, f) is not None and f not in known for f in _COUNTERS):
        return None
    return LineShape(
        template,
        _expression(text, slots, meanings, strict=number is NUMBER),
        tuple(tuple(sorted(fields)) for fields in targets),
    )


def _meaning(text: str, slot: re.Match[str], template: LineReading, read: Read) -> set[str] | None:
    """The fields that a number sets; an empty set when it sets none, None when it must stay as it is."""
    fields, before = set[str](), _values(template)
    number = slot.group()
    digits = [at for at, character in enumerate(re.split("[eE]", number)[0]) if character.isdigit()]
    for at in {digits[0], digits[-1]}:
        other = number[:at] + ("1" if number[at] != "1" else "2") + number[at + 1 :]
        changed = _single(read(text[: slot.start()] + other + text[slot.end() :]))
        if changed is None or _kind(changed) != _kind(template):
            return None
        moved = {name: value for name, value in _values(changed).items() if value != before[name]}
        if any(value != parse_number(other) for value in moved.values()):
            return None
        fields |= moved.keys()
    return None if fields & set(_PLANNED) else fields


def _single(readings: Sequence[LineReading] | None) -> LineReading | None:
    return readings[0] if readings is not None and len(readings) == 1 else None


def _kind(reading: LineReading) -> tuple[object, ...]:
    names = (reading.metrics.keys(), reading.eval_metrics.keys())
    return (reading.grammar, reading.series, reading.phase, reading.loss_name, *names)


def _values(reading: LineReading) -> dict[str, Number | None]:
    """What a reading holds, by field."""
    single = {name: getattr(reading, name) for name in ("loss", "learning_rate", "throughput")}
    metrics = {f"metrics.{name}": value for name, value in reading.metrics.items()}
    other = {f"eval_metrics.{name}": value for name, value in reading.eval_metrics.items()}
    return {**reading.counters._asdict(), **single, **metrics, **other}


def _expression(
    text: str, slots: Sequence[re.Match[str]], meanings: Sequence[set[str] | None], *, strict: bool
) -> re.Pattern[bytes]:
    """The line as a pattern: each number that means something is a group; another may vary, or must stay (None)."""
    parts: list[str] = []
    position = 0
    for slot, fields in zip(slots, meanings, strict=True):
        parts.append(_literal_expression(text[position : slot.start()]))
        position, number = slot.end(), slot.group()
        if fields is None:
            parts.append(re.escape(number))
            continue
        if strict:
            parts.append(f"({_WHOLE if number.isdigit() else _REAL})" if fields else _OF_NO_MEANING)
            continue
        has_commas = not number.isdigit() and "," in number
        characters, longest = ("0-9", 20) if number.isdigit() else ("0-9,", 24) if has_commas else ("-+0-9.eE", 30)
        # Possessive where the text behind the number cannot be part of one: nothing is tried twice then.
        possessive = "" if re.match(f"[{characters}]", text[position : position + 1]) else "+"
        body = f"[{characters}]{{1,{longest}}}{possessive}" + ("(?:[.][0-9]{1,12})?" if has_commas else "")
        parts.append(f"({body})" if fields else body)
    parts.append(_literal_expression(text[position:]))
    return re.compile(("^" + "".join(parts) + "$").encode(), re.MULTILINE)


def _literal_expression(text: str) -> str:
    """The text itself, with as many spaces in front of the next number as that needs, and any drawing of a bar.

    A column is padded until it is full, so that there may be none in the next line; behind a bracket there may be some
    where this line has none.
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
    padding = " {0,16}+" if full else " {1,16}+" if padded else ""
    return "".join(parts) + re.escape(bare) + padding


_MOST_REMEMBERED = 1 << 12


class Floats:
    """Numbers by their text. Losses are printed with a few digits, so that most of them were converted before."""

    def __init__(self) -> None:
        self._known: dict[bytes, float] = {}

    def of(self, column: Sequence[bytes]) -> list[float]:
        """A column of numbers; raises ValueError when one is none."""
        first = column[0]
        if first == column[-1] and column.count(first) == len(column):
            return [self._convert(first)] * len(column)
        values = list(map(self._known.get, column))
        if None in values:
            return [self._convert(text) if value is None else value for text, value in zip(column, values, strict=True)]
        return cast("list[float]", values)

    def _convert(self, text: bytes) -> float:
        value = self._known.get(text)
        if value is None:
            number = parse_number(text.decode())
            if number is None:
                raise ValueError(text)
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            value = self._known[text] = float(number)
        return value

    def all_of(self, shape: LineShape, columns: Sequence[Sequence[bytes]]) -> dict[str, list[float]]:
        """The columns by the field of the reading that each sets; raises like `of`."""
        found: dict[str, list[float]] = {}
        for fields, column in zip(shape.targets, columns, strict=True):
            if not {"step", "epoch_step"} & set(fields):
                values = self.of(column)
                found.update(dict.fromkeys(fields, values))
        return found


def columns_of(
    last: MetricPoint, losses: Sequence[float], steps: Sequence[float] | None, told: Mapping[str, Sequence[float]]
) -> PointColumns:
    """Readings that simply go on, as columns.

    Args:
        last: the newest of them, placed.
        steps: the finest counter of each, if they have one of their own.
        told: what the readings say beside: ``epoch``, ``learning_rate``, the metrics by the names that are shown.
    """
    count = len(losses)
    values = {name: told.get(name) or [value] * count for name, value in {**last.metrics, **last.eval_metrics}.items()}
    rate, epoch, whole = last.learning_rate, last.counters.epoch, last.run_step
    if whole is None:
        run_steps: Sequence[float] | None = None
    elif steps is None:
        run_steps = [whole] * count
    else:  # those of an epoch are moved behind the epochs before
        offset = whole - steps[-1]
        run_steps = [step + offset for step in steps] if offset else steps
    return PointColumns(
        newest=last,
        steps=run_steps,
        epochs=told.get("epoch") or [math.nan if epoch is None else float(epoch)] * count,
        losses=losses,
        rates=None if rate is None else told.get("learning_rate") or [rate] * count,
        values=values,
    )
