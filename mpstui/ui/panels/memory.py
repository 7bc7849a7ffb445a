"""Memory, told truly: how far the run is from dying, and every amount that decides it over one time axis.

On unified memory allocator, driver, processes and machine are different questions with different answers, so each has
its own line and none is guessed from another. The lines that matter most stay where there is little room; where there
is much, the curves grow taller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...core.present import format as shown
from ..charting.strips import binned, strip, window_label, window_seconds
from ..rows import Row, Span, clip, cut, fit, row
from ..widgets.memory_amounts import Amount, amounts
from ..widgets.memory_words import cache_words, energy_lines, gpu_words, machine_words, reclaimable, verdict
from . import Panel, RunFacts, RunPanel

if TYPE_CHECKING:
    from ...core.telemetry.headroom import MemoryPoint

_LABEL, _VALUE = 10, 9
_START = 1 + _LABEL + _VALUE + 1
_SHORT_NOTE, _WHOLE_NOTE = 9, 18
_ROOMY = 64
_FEWEST_CELLS = 6
_TALLEST = 4


class _Line(NamedTuple):
    """One line of the panel: its importance, how it is drawn with so many lines of curve, and whether it can grow."""

    importance: int
    draw: Callable[[int], list[Row]]
    grows: bool = False


def memory_rows(facts: RunFacts, width: int, height: int, axis: Axis | None = None) -> list[Row]:
    """What is known, the verdict first; unknown is n/a with its reason. ``axis`` is that of an earlier picture."""
    lines = list(_lines(facts, width, axis or Axis(course_of(facts), width)))
    chosen = sorted(range(len(lines)), key=lambda place: lines[place].importance)[: max(0, height)]
    kept = [lines[place] for place in sorted(chosen)]
    growing = sum(line.grows for line in kept)
    tall = max(1, min(_TALLEST, 1 + (height - len(kept)) // growing)) if growing else 1
    return [drawn for line in kept for drawn in line.draw(tall if line.grows else 1)]


def course_of(facts: RunFacts) -> Sequence[MemoryPoint]:
    """The past of the run's memory."""
    return facts.telemetry.memory if facts.telemetry else ()


def _lines(facts: RunFacts, width: int, axis: Axis) -> Iterator[_Line]:
    yield _Line(0, lambda lines: [_text(verdict(facts), width)])
    for text in _warnings(facts):
        yield _said(2, (Span(f"! {text}", "warn"),), width)
    for amount in amounts(facts):
        yield _Line(amount.importance, _drawing(amount, axis), amount.grows and axis.tells(amount))
    if axis.known:
        yield _Line(10, lambda lines: [axis.row(ended=not facts.snapshot.state.active)])
    yield _fact(3, "cache", shown.size(reclaimable(facts.snapshot)), cache_words(facts), width)
    yield from _machine_lines(facts, width)
    for importance, (label, amount_text, notes) in enumerate(energy_lines(facts, width >= _ROOMY), start=8):
        role = "dim" if amount_text != shown.UNKNOWN else "faint"
        yield _fact(importance, label, amount_text, (Span(notes, role),), width)


def _warnings(facts: RunFacts) -> tuple[str, ...]:
    found = facts.telemetry.headroom if facts.telemetry else None
    return found.warnings if found is not None and facts.snapshot.state.active else ()


def _machine_lines(facts: RunFacts, width: int) -> Iterator[_Line]:
    gpus = facts.system.gpus if facts.system else ()
    around = machine_words(facts.system)
    for place, gpu in enumerate(gpus):
        label = f"gpu {gpu.index}" if len(gpus) > 1 else "gpu"
        words = " · ".join(note for note in (gpu_words(gpu), around if place == 0 else "") if note)
        yield _fact(13 if place else 7, label, shown.size(gpu.memory_used_bytes), (Span(words, "dim"),), width)
    if not gpus and around:
        yield _fact(9, "machine", "", (Span(around, "dim"),), width)


class Axis:
    """The one time axis of all curves. It remembers what it has drawn: the past changes less often than the present."""

    def __init__(self, course: Sequence[MemoryPoint], width: int) -> None:
        self.course, self.width = course, width
        self.note = _WHOLE_NOTE if width >= _ROOMY else _SHORT_NOTE
        self.cells = width - _START - self.note
        self.span = window_seconds(course[-1].time - course[0].time) if course else 0
        self.known = len(course) > 1 and self.cells >= _FEWEST_CELLS
        self._drawn: dict[tuple[object, ...], list[tuple[Span, ...]]] = {}

    def suits(self, course: Sequence[MemoryPoint], width: int) -> bool:
        """Whether it can serve for another picture."""
        return course is self.course and width == self.width

    def tells(self, amount: Amount) -> bool:
        """Whether there is a curve to draw."""
        past = amount.past
        return self.known and past is not None and any(past(point) is not None for point in self.course)

    def curve(self, amount: Amount, lines: int) -> list[tuple[Span, ...]]:
        """The past of an amount."""
        key = amount.label, amount.top, amount.share is None, lines
        if key not in self._drawn:
            self._drawn[key] = self._draw(amount, lines)
        return self._drawn[key]

    def _draw(self, amount: Amount, lines: int) -> list[tuple[Span, ...]]:
        past = amount.past or (lambda point: None)
        points = [(point.time, past(point)) for point in self.course]
        top = amount.top or max((value for _, value in points if value is not None), default=0.0) or 1.0
        values = binned(points, self.course[-1].time, self.span, self.cells)
        return strip(values, top, lines, amount.role_of)

    def row(self, *, ended: bool) -> Row:
        """The axis itself; of a run that has ended its right end is not now."""
        back = window_label(self.span)
        left, right = (f"└ -{back}", "end ┘") if ended else (f"└ {back} ago", "now ┘")
        room = self.cells - len(left) - len(right)
        words = f"{left}{' ' * room}{right}" if room > 0 else f"└{'─' * (self.cells - 2)}┘"
        return row(" " * _START, (words, "faint"))


def _drawing(amount: Amount, axis: Axis) -> Callable[[int], list[Row]]:
    return lambda lines: _amount_rows(amount, axis, lines)


def _amount_rows(amount: Amount, axis: Axis, lines: int) -> list[Row]:
    start = _start(amount.label, amount.value)
    if not axis.tells(amount):
        words = amount.note.strip() if amount.known and amount.note else amount.reason
        return [_text((Span(words, amount.note_role if amount.known else "faint"),), axis.width, start)]
    note = amount.note if len(amount.note) < axis.note else amount.note.partition(" of ")[0]
    tail = Span(fit(f" {note}", axis.note), amount.note_role)
    blank = (Span(" " * _START),)
    *above, lowest = axis.curve(amount, lines)
    return [*(row(*blank, *cells) for cells in above), row(*clip((*start, *lowest, tail), axis.width))]


def _fact(importance: int, label: str, value: str, words: tuple[Span, ...], width: int) -> _Line:
    return _Line(importance, lambda lines: [_text(words, width, _start(label, value))])


def _said(importance: int, words: tuple[Span, ...], width: int) -> _Line:
    return _Line(importance, lambda lines: [_text(words, width)])


def _start(label: str, value: str) -> tuple[Span, ...]:
    role = "faint" if value == shown.UNKNOWN else ""
    return Span(" "), Span(fit(label, _LABEL), "dim"), Span(fit(value, _VALUE, "right"), role), Span(" ")


def _text(words: Sequence[Span], width: int, start: Sequence[Span] = (Span(" "),)) -> Row:
    return row(*clip((*start, *words), width))


class MemoryPanel(RunPanel):
    """The lines as a panel."""

    _axis: Axis | None = None

    def status(self) -> tuple[Span, ...]:
        """How many processes there are, and how busy."""
        tree = self.facts.tree if self.facts else None
        if tree is None or tree.process_count is None:
            return ()
        load = f" · cpu {tree.cpu_percent:.0f} %" if tree.cpu_percent is not None else ""
        return (Span(cut(f"{tree.process_count} proc{load}", 24), "dim"),)

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`memory_rows`."""
        if self.facts is None:
            return []
        course = course_of(self.facts)
        if self._axis is None or not self._axis.suits(course, width):
            self._axis = Axis(course, width)
        return memory_rows(self.facts, width, height, self._axis)


PANEL = Panel(
    order=40,
    help="how far it is from running out of memory, and every amount over time; its energy",
    widget=MemoryPanel,
    needs_machine=True,
)
