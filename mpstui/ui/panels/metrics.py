"""Every metric of a run: newest and best value, the step of the best, its trend. The cursor chooses what is charted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from textual.events import Click
from textual.message import Message

from ...core import present as shown
from ...core.model.patterns import PatternMistake
from ...core.model.snapshot import RunSnapshot, SeriesView
from ...core.series.direction import best_point
from ...core.series.overview import Entry, Fold, Metric, arranged, measured_at, metrics_of
from ..charting.data import BEST_SIGNS, has_said_all, is_of_the_agent, none_reported
from ..rows import Row, Span, clean, fit, row, sparkline, width_of
from ..shortening import cut_apart
from ..widgets.lines import WheelScrolled
from . import Panel, RunFacts, RunPanel, nothing_yet

_LEAST_CELLS, _LONGEST_STEP = (7, 8, 7, 7), 9
_SHORT_AXES = {"sample": "smp", "optimizer step": "update", "printed step": "printed"}
_NARROWEST, _LEAST_NAME, _MOST_NAME, _LEAST_TREND, _FAIR_TREND, _LONGEST_TREND = 46, 10, 30, 6, 20, 40
_SHORT_TREND = 4
"""The trend may shrink to this width if all names then fit that would otherwise lose a letter or two."""


class MetricChosen(Message):
    """A row of the table was chosen."""

    def __init__(self, name: str, *, enlarge: bool = False) -> None:
        """``enlarge``: the chart should replace the table, if they share a place."""
        super().__init__()
        self.name = name
        self.enlarge = enlarge


class MetricTable(WheelScrolled, RunPanel):
    """The table; its highlighted row is the metric that the chart draws."""

    scrolls = True
    wheel_rows = 1

    def __init__(self) -> None:
        super().__init__()
        self.pattern = ""
        """Only metrics whose names match this are shown."""
        self._name = ""
        self._opened: frozenset[str] = frozenset()
        self._metrics: list[Metric] = []
        self._entries: list[Entry] = []
        self._arranged: dict[tuple[int, frozenset[str]], list[Entry]] = {}
        self._cursor = 0
        self._top = 0
        self._blocks = 1
        self._known: tuple[RunSnapshot, str] | None = None
        self._cells: dict[str, _Cells] = {}

    # -- what it shows

    def repaint(self) -> None:
        """Make the entries before the title is drawn, as it says how many do not fit."""
        self._take(*self.rows_size)
        super().repaint()

    def _take(self, width: int, height: int) -> None:
        if self.facts is None:
            return
        known = self.facts.snapshot, self.pattern
        if self._known is None or known[0] is not self._known[0] or known[1] != self._known[1]:
            self._known, self._metrics, self._arranged = known, metrics_of(*known), {}
        page = self._page(width, height)
        self._entries = self._in_lines(page)
        names = [one.name if isinstance(one, Metric) else one.beginning for one in self._entries]
        if self._name in names:
            self._cursor = names.index(self._name)
        self._cursor = max(0, min(self._cursor, len(self._entries) - 1))
        self._top = max(0, min(max(self._top, self._cursor - page + 1), self._cursor, len(self._entries) - page))

    def _page(self, width: int, height: int) -> int:
        """How many entries have room, in as many blocks side by side as fit if one is too short."""
        lines = max(1, height - 1)
        self._blocks = max(1, min(width // _NARROWEST, ceil(len(self._metrics) / lines)))
        return self._blocks * lines

    def _in_lines(self, lines: int) -> list[Entry]:
        if (lines, self._opened) not in self._arranged:
            self._arranged[lines, self._opened] = arranged(self._metrics, lines, self._opened)
        return self._arranged[lines, self._opened]

    def wishes(self, most: int) -> tuple[int, int]:
        lines = len(self._in_lines(most - 2)) + 2
        return lines, lines

    def status(self) -> tuple[Span, ...]:
        if self.facts is not None and self.facts.moment is not None:
            return (Span(f"at step {shown.whole(self.facts.moment.step)}", "key"),)
        hidden = len(self._entries) - self._top - self._page(*self.rows_size)
        found = (Span(f"/{clean(self.pattern, 20)} · {len(self._metrics)}", "match"),) if self.pattern else ()
        more = (Span(f"{'  ' if found else ''}… {hidden} more", "warn"),) if hidden > 0 else ()
        return (*found, *more)

    def rows(self, width: int, height: int) -> list[Row]:
        if self.facts is None:
            return []
        self._take(width, height)
        if not self._entries:
            unread = self.facts.snapshot.loading or self.facts.snapshot.brief
            none = none_reported("metrics", ended=has_said_all(self.facts.snapshot))
            why = "no metric has this in its name" if self.pattern else none
            return [nothing_yet(why, unread=unread and not self.pattern)]
        blocks, lines = self._blocks, max(1, height - 1)
        in_view = self._entries[self._top : self._top + blocks * lines]
        table = _Table(width // blocks - (blocks > 1), self.facts, self._cells, in_view)
        cells = [table.row(entry, here=self._top + place == self._cursor) for place, entry in enumerate(in_view)]
        drawn = [row(*_joined([table.heading] * blocks))]
        for line in range(min(lines, len(cells))):
            drawn.append(cells[line] if blocks == 1 else row(*_joined(cells[line::lines])))
        return drawn

    # -- keys

    def scroll_rows(self, by: int) -> None:
        """Move the cursor down (or up), and choose the row it reaches."""
        if not self._entries:
            return
        self._cursor = max(0, min(self._cursor + by, len(self._entries) - 1))
        entry = self._entries[self._cursor]
        self._name = entry.name if isinstance(entry, Metric) else entry.beginning
        self.repaint()
        if isinstance(entry, Metric):
            self.post_message(MetricChosen(entry.name))

    def to_edge(self, direction: int) -> None:
        self.scroll_rows(direction * len(self._entries))

    def select(self, name: str) -> None:
        """Put the cursor on a metric or, if that is in a closed fold, on the fold."""
        aliased = (one.name for one in self._metrics if name in (one.name, *one.also))
        self._name = next(aliased, name)
        folds = (one.beginning for one in self._entries if isinstance(one, Fold) and not one.is_open)
        if not any(isinstance(one, Metric) and one.name == self._name for one in self._entries):
            self._name = next((beginning for beginning in folds if name.startswith(beginning)), self._name)
        self.repaint()

    def enter(self) -> None:
        """Open or close a fold; on a metric, have the chart enlarge it."""
        entry = self._entries[self._cursor] if self._entries else None
        if isinstance(entry, Fold):
            self._opened ^= {entry.beginning}
            self._name = entry.beginning
            self.repaint()
        elif entry is not None:
            self.post_message(MetricChosen(entry.name, enlarge=True))

    def filter(self, pattern: str) -> str | None:
        """Show only metrics that match; return a sentence if the pattern is invalid."""
        try:
            found = metrics_of(self.facts.snapshot, pattern) if self.facts is not None else []
        except PatternMistake as mistake:
            return f"{mistake}: {mistake.hint}"
        if pattern and not found:
            return f"no metric has {clean(pattern, 40)} in its name"
        self.pattern = pattern
        self.repaint()
        return None

    def on_click(self, event: Click) -> None:
        """Choose the row under the mouse; if already chosen, enter it."""
        width, height = self.rows_size
        line = event.y - (1 if self.titled else 0) - 1
        place = self._top + line + event.x * self._blocks // max(1, width) * (height - 1)
        if 0 <= line < height - 1 and place < len(self._entries):
            if place == self._cursor:
                self.enter()
            else:
                self.scroll_rows(place - self._cursor)


def metric_rows(facts: RunFacts, width: int, height: int) -> list[Row]:
    """Return the table without a cursor, in at most ``height`` lines; empty if nothing was measured."""
    entries = arranged(metrics_of(facts.snapshot, ""), max(1, height - 1), frozenset())[: max(0, height - 1)]
    table = _Table(width, facts, {}, entries)
    return [table.heading, *(table.row(entry, here=False) for entry in entries)] if entries else []


def _joined(parts: list[Row]) -> list[Span]:
    spans: list[Span] = []
    for place, part in enumerate(parts):
        spans += [Span("│", "faint")] if place else []
        spans += [span._replace(role=f"{part.base} {span.role}".strip()) for span in part.spans]
    return spans


class _Table:
    """The columns of the table at one width; in little room, the trend is dropped first, then the step of the best."""

    def __init__(self, width: int, facts: RunFacts, known: dict[str, _Cells], entries: Sequence[Entry]) -> None:
        by = facts.snapshot.numbers.told_by
        seen = {"loss": "agent"} if is_of_the_agent(facts.snapshot) else {}
        self._by = {**by, **seen} if len(set(by.values())) > 1 else {}
        self._width = width
        self._told = {
            one.name: _cells_of(one, known) if facts.moment is None else _cells_at(one, facts.moment.step)
            for one in entries
            if isinstance(one, Metric)
        }
        then = ("last", "best", *["at step"] * 2) if facts.moment is None else ("then", "", *["of step"] * 2)
        longest = max((width_of(self._named(one)) for one in entries), default=0)
        last, best, short, whole = [
            max([least, *(width_of(told.texts[place]) for told in self._told.values())])
            for place, least in enumerate(_LEAST_CELLS)
        ]
        self._in_whole = longest + last + best + whole + 5 + _LEAST_TREND <= width
        at = whole if self._in_whole else short
        room = width - last - best - at - 5
        most = max(_MOST_NAME, room - _FAIR_TREND)
        least_trend = _SHORT_TREND if longest <= min(most, room - _SHORT_TREND) else _LEAST_TREND
        self._name = max(_LEAST_NAME, min(most, longest, room - least_trend))
        self._cut = cut_apart(tuple(map(self._named, entries)), self._name)
        left = width - self._name - 2 - last
        self._columns = [last, *([best] if left > best else []), *([at] if left > best + at + 1 else [])]
        rest = width - self._name - 2 - sum(self._columns) - len(self._columns)
        self._trend = min(_LONGEST_TREND, rest) if rest >= least_trend else 0
        self.heading = self._row(Span("metric", "heading"), then, None, "heading")

    def _named(self, entry: Entry) -> str:
        if isinstance(entry, Fold):
            return f"{clean(entry.beginning, 60)}*"
        by = f" · {self._by[entry.name]}" if entry.name in self._by else ""  # who reported it, if several did
        also = f" = {clean(entry.otherwise, 60)}" if entry.otherwise else ""
        return clean(entry.name, 60) + by + also

    def _row(self, name: Span, texts: Sequence[str], trend: Span | None, role: str = "") -> Row:
        shown = (*texts[:2], *(texts[3:] if self._in_whole else texts[2:3]))
        cells = [Span(" " + fit(text, width, "right"), role) for text, width in zip(shown, self._columns, strict=False)]
        cut = self._cut.get(name.text) or fit(name.text, self._name)
        found = row(" ", (cut, name.role), *cells, " ", *([trend] if trend else []))
        return row(*found.spans, " " * (self._width - found.width))

    def row(self, entry: Entry, *, here: bool) -> Row:
        base = "selected" if here else ""
        if isinstance(entry, Fold):
            count = f"{entry.count} {'▾' if entry.is_open else '▸'}"
            return Row(self._row(Span(self._named(entry), "key"), (count,), None, "key").spans, base)
        told, trend = self._told[entry.name], None
        if told.view is not None and self._trend:
            if told.width != self._trend:
                told.width, told.trend = self._trend, sparkline(told.view.mean, self._trend)
            trend = Span(told.trend, "val" if told.view.evaluation else "train")
        return Row(self._row(Span(self._named(entry)), told.texts, trend).spans, base)


@dataclass
class _Cells:
    """The texts of a metric, which stay the same until a point is added to its curve."""

    view: SeriesView | None
    value: float | None
    texts: tuple[str, str, str, str]
    """The newest value, the best one, and where that was: in short, and with the full name of the axis."""
    width: int = 0
    trend: str = ""


def _cells_of(metric: Metric, known: dict[str, _Cells]) -> _Cells:
    view, value = metric.view, metric.value
    found = known.get(metric.name)
    if found is None or found.view is not view or found.value != value:
        unknown = shown.UNKNOWN if view is None else shown.NOT_FINITE  # a series holds at least one point
        best = best_point(view, metric.name) if view is not None else None
        worth = f"{BEST_SIGNS[best.way]}{shown.number(best.value)}" if best else ""
        at, in_whole = _step(best.at, view.axis) if best and view else ("", "")
        found = _Cells(view, value, (unknown if value is None else shown.number(value), worth, at, in_whole))
        known[metric.name] = found
    return found


def _cells_at(metric: Metric, step: float) -> _Cells:
    found = measured_at(metric, step)
    if found is None:
        return _Cells(metric.view, None, (shown.UNKNOWN, "", "", ""))
    return _Cells(metric.view, None, (shown.number(found[0]), "", *_step(found[1], "step")))


def _step(at: float | None, axis: str) -> tuple[str, str]:
    """Return the step as a number, shortened if too long; other axes name their unit, in short and in full."""
    if at is None:
        return shown.UNKNOWN, shown.UNKNOWN
    if axis != "step":
        count = shown.short_count(at)
        return f"{_SHORT_AXES.get(axis, axis)} {count}", f"{axis} {count}"
    text = shown.whole(at)
    text = text if len(text) <= _LONGEST_STEP else shown.short_count(at)
    return text, text


PANEL = Panel(order=30, help="each metric; the chosen one is drawn", widget=MetricTable)
