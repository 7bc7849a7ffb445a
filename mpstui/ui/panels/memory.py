"""Memory: how far the run is from its limit, and every amount that decides this, over one time axis.

If there are few lines, the most important stay; if there are many, the curves grow taller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ...core import present as shown
from ..rows import BLOCKS, EMPTY, LEVELS, Row, Span, clip, cut, fit, row, wrap
from ..widgets.memory_words import Amount, amounts, loads, others, ranks, verdict
from . import Panel, RunFacts, RunPanel, at_moment

if TYPE_CHECKING:
    from ...core.telemetry.headroom import MemoryPoint

_LABEL, _VALUE = 10, 9
_START = 1 + _LABEL + _VALUE + 1
_SHORT_NOTE, _WHOLE_NOTE = 9, 18
_WHOLE_NOTE_FROM = 64
"""From this width on, the whole note is shown beside a curve."""
_FEWEST_CELLS = 6
_TALLEST, _WHOLE_WINDOW_SHARE = 4, 5
"""Most lines of a curve: the first or, if more, the panel's height divided by the second."""
_MODEST_LINES, _MOST_LINES = 14, 36
_CEILING = "┈"
"""Marks the limit above a tall strip that does not reach it."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_WINDOWS = (
    *(minutes * _MINUTE for minutes in (2, 5, 10, 15, 20, 30, 45, 60, 90)),
    *(hours * _HOUR for hours in (2, 3, 4, 6, 8, 12, 18, 24, 36)),
    *(days * _DAY for days in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512)),
)


class MemoryPanel(RunPanel):
    """How close the run is to a memory limit, the amounts that decide this, and their history."""

    drawn_from = (
        *(f"snapshot.{name}" for name in ("state", "pid", "numbers.memory", "numbers.device")),
        *("snapshot.ranks", "beats", "system", "tree", "telemetry", "cleared", "prices", "moment"),
    )
    _axis: Axis | None = None

    def wishes(self, most: int) -> tuple[int, int]:
        if self.facts is not None and self.facts.moment is not None:
            lines = len(memory_then(self.facts, course_of(self.facts))) + 1
            return lines, lines
        whole, tallest = self._axis.fills if self._axis is not None else (_MODEST_LINES, _MOST_LINES)
        return min(_MODEST_LINES, whole), min(_MOST_LINES, max(whole, tallest))

    def status(self) -> tuple[Span, ...]:
        tree = self.facts.tree if self.facts else None
        if tree is None or tree.process_count is None:
            return ()
        load = f" · cpu {tree.cpu_percent:.0f} %" if tree.cpu_percent is not None else ""
        return (Span(cut(f"{tree.process_count} proc{load}", 24), "dim"),)

    def rows(self, width: int, height: int) -> list[Row]:
        if self.facts is None:
            return []
        course = course_of(self.facts)
        if self._axis is None or not self._axis.suits(course, width):
            self._axis = Axis(course, width)
        if self.facts.moment is None:
            return memory_rows(self.facts, width, height, self._axis)
        then = memory_then(self.facts, course)
        left = height - len(then) - 2
        if left < _MODEST_LINES:
            return then
        return [*then, EMPTY, row((" now", "strong")), *memory_rows(self.facts, width, left, self._axis)]


def memory_rows(facts: RunFacts, width: int, height: int, axis: Axis | None = None) -> list[Row]:
    """Return all that is known, the verdict first; unknown amounts are n/a with a reason. ``axis``: an earlier one."""
    axis, active = axis or Axis(course_of(facts), width), facts.snapshot.state.active
    found = facts.telemetry.headroom if facts.telemetry else None
    lines: list[tuple[int, Row | Amount]] = [(0, row(*clip((Span(" "), *verdict(facts)), width)))]
    for text in found.warnings if found is not None and active else ():
        lines.append((2, row(*clip((Span(" "), Span(f"! {text}", "warn")), width))))
    lines += [(amount.importance, amount) for amount in (*amounts(facts), *loads(facts))]
    if axis.known:
        lines.append((10, axis.row(ended=not active)))
    lines += [(amount.importance, amount) for amount in others(facts, width >= _WHOLE_NOTE_FROM)]
    empty = [line for _, line in lines if isinstance(line, Amount) and line.value == shown.UNKNOWN]
    empty = [line for line in empty if not axis.tells(line) and all(span.role == "faint" for span in line.said())]
    if len(empty) > 1:
        lines = [item for item in lines if item[1] not in empty]
        lines += [(9 + 5 * place, line) for place, line in enumerate(not_measured(empty, width))]
    lines += [(8, row(*clip((Span(" "), *told), width))) for told in ranks(facts.snapshot)]
    many = sum(isinstance(line, Amount) and line.grows and axis.tells(line) for _, line in lines)
    axis.fills = len(lines) + 1, len(lines) + 1 + many * (_TALLEST - 1)
    chosen = sorted(range(len(lines)), key=lambda place: lines[place][0])[: max(0, height)]
    kept = [lines[place][1] for place in sorted(chosen)]
    growing = [line for line in kept if isinstance(line, Amount) and line.grows and axis.tells(line)]
    each, rest = divmod(max(0, height - len(kept)), len(growing) or 1)
    tallest = max(_TALLEST, height // _WHOLE_WINDOW_SHARE)
    tall = {id(line): min(tallest, 1 + each + (place < rest)) for place, line in enumerate(growing)}
    rows: list[Row] = []
    for line in kept:
        rows += [line] if isinstance(line, Row) else axis.rows_of(line, tall.get(id(line), 1))
    return rows


def memory_then(facts: RunFacts, course: Sequence[MemoryPoint]) -> list[Row]:
    """Return every amount at the moment that the panels show, if there is a sample within a minute of it."""
    heading, time = at_moment(facts), facts.moment.time if facts.moment is not None else None
    near = min(course, key=lambda point: abs(point.time - time), default=None) if time is not None else None
    if near is None or time is None or abs(near.time - time) > _MINUTE:
        why = "memory was not measured then" if time is not None else "the time of this step is unknown"
        return [*heading, row((f" {why}", "dim"))]
    names = ("allocated", "driver", "limit", "footprint", "system_used", "swap_used")
    amounts = [(name.removesuffix("_used"), getattr(near, name)) for name in names]
    looked = row((f" measured at {shown.clock(near.time)}", "dim"))
    told = [row(" ", (fit(name, _LABEL), "dim"), fit(shown.size(value), _VALUE, "right")) for name, value in amounts
            if value is not None]  # fmt: skip
    return [*heading, *told, looked]


def not_measured(amounts: Iterable[Amount], width: int) -> list[Row]:
    """Return all unknown amounts together: ``n/a  device, cache: this program does not report it · energy: ...``."""
    names: dict[str, list[str]] = {}
    for amount in amounts:
        names.setdefault("".join(span.text for span in amount.said()), []).append(amount.label)
    told = " · ".join(f"{', '.join(labels)}: {why}" for why, labels in names.items())
    return [
        row(" n/a  " if place == 0 else "      ", (line, "faint"))
        for place, line in enumerate(wrap(told, width - 6, 6))
    ]


def course_of(facts: RunFacts) -> Sequence[MemoryPoint]:
    """Return its recorded memory, oldest first."""
    return facts.telemetry.memory if facts.telemetry else ()


class Axis:
    """The time axis shared by all curves. It keeps what it drew: the past changes less often than the present."""

    def __init__(self, course: Sequence[MemoryPoint], width: int) -> None:
        self.course, self.width = course, width
        self.note = _WHOLE_NOTE if width >= _WHOLE_NOTE_FROM else _SHORT_NOTE
        self.cells = width - _START - self.note
        self.span = window_seconds(course[-1].time - course[0].time) if course else 0
        self.fills = _MODEST_LINES, _MOST_LINES
        """Lines, title included, that show everything, and lines with the curves at full height."""
        self.known = len(course) > 1 and self.cells >= _FEWEST_CELLS
        self._drawn: dict[tuple[object, ...], list[tuple[Span, ...]]] = {}

    def suits(self, course: Sequence[MemoryPoint], width: int) -> bool:
        return course is self.course and width == self.width

    def tells(self, amount: Amount) -> bool:
        return self.known and any(amount.at(point) is not None for point in self.course)

    def rows_of(self, amount: Amount, lines: int) -> list[Row]:
        """Return an amount with its curve in this many lines; without a curve, the text about it."""
        unknown = amount.value == shown.UNKNOWN
        value = Span(fit(amount.value, _VALUE, "right"), "faint" if unknown else "")
        start = (Span(" "), Span(fit(amount.label, _LABEL), "dim"), value, Span(" "))
        if not self.tells(amount):
            return [row(*clip((*start, *amount.said()), self.width))]
        note = amount.note if len(amount.note) < self.note else amount.short_note or amount.note
        *above, lowest = self._curve(amount, lines)
        tail = Span(fit(f" {note}", self.note), amount.note_role)
        return [*(row(" " * _START, *cells) for cells in above), row(*clip((*start, *lowest, tail), self.width))]

    def _curve(self, amount: Amount, lines: int) -> list[tuple[Span, ...]]:
        key = amount.label, amount.top, amount.share is None, lines
        if key not in self._drawn:
            points = [(point.time, amount.at(point)) for point in self.course]
            top = amount.top or max((value for _, value in points if value is not None), default=0.0) or 1.0
            values = binned(points, self.course[-1].time, self.span, self.cells)
            self._drawn[key] = strip(values, top, lines, amount.role_of)
        return self._drawn[key]

    def row(self, *, ended: bool) -> Row:
        """Return the axis itself; for a run that has ended, its right end is not now."""
        back = window_label(self.span)
        left, right = (f"└ -{back}", "end ┘") if ended else (f"└ {back} ago", "now ┘")
        between = self.cells - len(left) - len(right)
        words = f"{left}{' ' * between}{right}" if between > 0 else f"└{'─' * (self.cells - 2)}┘"
        return row(" " * _START, (words, "faint"))


def window_seconds(age_seconds: float) -> int:
    """Return the round time span, in seconds, that holds ``age_seconds``."""
    return next((window for window in _WINDOWS if window >= age_seconds), _WINDOWS[-1])


def window_label(seconds: float) -> str:
    """``20 min``, ``1.5 h``, ``3 d``."""
    if seconds >= 2 * _DAY:
        return f"{seconds / _DAY:g} d"
    return f"{seconds / _HOUR:g} h" if seconds >= _HOUR else f"{seconds / _MINUTE:g} min"


def binned(
    points: Iterable[tuple[float, float | None]], now: float, span_seconds: float, width: int
) -> list[float | None]:
    """Return the highest known value in each of ``width`` equal time spans, of which the last holds ``now``.

    It is peaks that kill a run. The borders of the spans stay fixed over time, so that a new point changes one cell.
    """
    cells: list[float | None] = [None] * max(0, width)
    if not cells:
        return cells
    each = span_seconds / width
    last = math.floor(now / each)
    for time, value in points:
        place = width - 1 - (last - math.floor(time / each))
        if value is not None and 0 <= place < width:
            before = cells[place]
            cells[place] = value if before is None else max(before, value)
    return cells


def strip(
    values: Sequence[float | None], top: float, lines: int, role_of: Callable[[float], str]
) -> list[tuple[Span, ...]]:
    """Return a filled block curve in ``lines`` rows, full at ``top``; ``role_of`` colours a column by its value."""
    drawn: list[tuple[Span, ...]] = []
    for below in range(lines - 1, -1, -1):
        spans: list[Span] = []
        for value in values:
            text = " " if value is None else _cell(value / top if top > 0 else 0.0, lines, below)
            role = role_of(value) if value is not None and text != " " else ""
            if text == " " and value is not None and below == lines - 1:
                text, role = _CEILING, "track"
            if spans and spans[-1].role == role:
                spans[-1] = Span(spans[-1].text + text, role)
            else:
                spans.append(Span(text, role))
        drawn.append(tuple(spans))
    return drawn


def _cell(share: float, lines: int, below: int) -> str:
    """The part of a column in the line ``below`` lines from the bottom; in the lowest, a known value is never blank."""
    if share >= 1:
        return BLOCKS[-1]
    eighths = round(max(0.0, share) * (8 * (lines - 1) + LEVELS)) - below * 8
    if eighths <= 0:
        return BLOCKS[0] if below == 0 else " "
    return BLOCKS[min(eighths, len(BLOCKS)) - 1]


PANEL = Panel(order=40, help="how far from running out; its energy", widget=MemoryPanel, needs_machine=True)
