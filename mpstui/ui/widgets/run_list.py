"""The list of runs, newest first, below the line that says what needs a person. A run is selected, never a place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.message import Message

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot
from ...core.present import WIDEST_WORD, attention, badge, epoch_text, needs_attention, step_text, total_progress
from ..rows import EMPTY, Row, Span, bar, clean, fit, row, sparkline, spread, width_of
from .lines import LinePanel

_BRAND = (Span(" mpstui", "brand"), Span("  "))
_TWO_BLANKS_FROM = 100
"""From this width on the columns stand two blanks apart."""
_COUNTED = 10
"""``step 1,234``"""
_LEAST_NAME = 5
"""Cells of a name that are worth more than the time beside it."""
_OF_QUEUED = ("state", "name", "dev")
"""The columns that a queued run has, the first ones of the table."""


class TopLine(LinePanel):
    snapshots: Sequence[RunSnapshot] | None = None
    paused_groups: Sequence[str] = ()

    def show(self, snapshots: Sequence[RunSnapshot], paused_groups: Sequence[str] = ()) -> None:
        self.snapshots, self.paused_groups = snapshots, paused_groups
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        if self.snapshots is None:
            return [spread(_BRAND, [Span("reading runs… ", "dim")], width)]
        return [top_line(self.snapshots, width, self.paused_groups)]


def top_line(snapshots: Sequence[RunSnapshot], width: int, paused_groups: Sequence[str] = ()) -> Row:
    """``mpstui   2 failed · 1 stalled      12 runs · 2 live``; trouble is named before anything else.

    A paused queue is named too: nobody may wait in it now, and what is queued next would wait without a word.
    """
    left = [*_BRAND]
    for place, (count, look) in enumerate(attention(snapshots)):
        left += [Span(" · ", "faint")] if place else []
        left.append(Span(f"{look.glyph} {count} {look.word}", look.tone))
    live = sum(item.state.active and item.state != "queued" for item in snapshots)
    counted = f"{len(snapshots)} run{'' if len(snapshots) == 1 else 's'}"
    right = [Span(f"{counted} · {live} live " if snapshots else "", "dim")]
    if paused_groups:
        left += [Span(" · ", "faint")] if len(left) > len(_BRAND) else []
        more = f" and {len(paused_groups) - 1} more" if len(paused_groups) > 1 else ""
        named = f"‖ queue {clean(paused_groups[0], 30)}{more} paused"
        choices = (f"{named}: P resumes it", named, "‖ queue paused: P")
        columns = width - row(*left, *right).width - 1
        left.append(Span(next((words for words in choices if width_of(words) <= columns), "‖ queue paused"), "warn"))
        right = right if row(*left, *right).width < width else []
    return spread(left, right, width)


class RunTable(LinePanel):
    class Opened(Message):
        """A run was clicked while it was selected."""

    class Selected(Message):
        """Another run is selected."""

        def __init__(self, run: str | None) -> None:
            super().__init__()
            self.run = run

    def __init__(self) -> None:
        super().__init__()
        self.snapshots: Sequence[RunSnapshot] = ()
        self.unread = True
        """No snapshots have come yet: nothing is known, not even that there is nothing."""
        self.selected: str | None = None
        self.marked: tuple[str, ...] = ()
        """Runs to be compared, in the order in which they were marked."""
        self._top = 0
        self._hides = False
        """A filter leaves out some of the runs."""
        self._names: NameDisambiguator | None = None

    @property
    def index(self) -> int | None:
        return next((place for place, item in enumerate(self.snapshots) if item.run == self.selected), None)

    @property
    def page(self) -> int:
        return max(1, self.size.height - 1)

    def show(self, snapshots: Sequence[RunSnapshot], everything: Sequence[RunSnapshot]) -> None:
        """The selected run stays selected, and on its line unless the newest were in view.

        Args:
            everything: the runs that a filter hides too; what is marked of them stays marked.
        """
        self.unread = False
        self._hides = len(snapshots) < len(everything)
        before = self.index
        self.snapshots = snapshots
        there = {item.run for item in everything}
        self.marked = tuple(run for run in self.marked if run in there)
        self._names = None
        after = self.index
        if after is None:
            self._select_at(min(before or 0, len(snapshots) - 1))
        elif before is not None and self._top > 0:
            self._top += after - before
        self.repaint()

    def select(self, run: str | None) -> None:
        if run != self.selected:
            self.selected = run
            self.post_message(self.Selected(run))
        self.repaint()

    def mark(self) -> None:
        """Mark the selected run, or no longer; the next one is then selected."""
        if self.selected is not None:
            rest = tuple(run for run in self.marked if run != self.selected)
            self.marked = rest if self.selected in self.marked else (*rest, self.selected)
        self.move(1)

    def move(self, by: int) -> None:
        """Select the run ``by`` places further down; stops at the ends."""
        self._select_at((self.index or 0) + by)
        self.repaint()

    def _select_at(self, place: int) -> None:
        place = max(0, min(len(self.snapshots) - 1, place))
        self.select(self.snapshots[place].run if self.snapshots else None)

    def rows(self, width: int, height: int) -> list[Row]:
        if not self.snapshots:
            return [] if self.unread else NOTHING_MATCHES if self._hides else empty_state(width, height)
        lines, index = height - 1, self.index or 0
        self._top = max(min(self._top, index, max(0, len(self.snapshots) - lines)), index - lines + 1, 0)
        names = self._names = self._names or NameDisambiguator(self.snapshots)
        return [
            heading(width),
            *(
                run_row(item, width, selected=item.run == self.selected, marked=item.run in self.marked, names=names)
                for item in self.snapshots[self._top : self._top + lines]
            ),
        ]

    def on_click(self, event: Click) -> None:
        """The first click selects, the second opens."""
        place = self._top + event.y - 1
        if event.y < 1 or place >= len(self.snapshots):
            return
        if self.snapshots[place].run == self.selected:
            self.post_message(self.Opened())
        else:
            self._select_at(place)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.move(1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.move(-1)


def empty_state(width: int, height: int) -> list[Row]:
    """What to do when there is nothing yet."""
    lines = [
        row(("no runs yet", "title")),
        EMPTY,
        row(("press ", "dim"), ("n", "key"), (" to launch a training from a profile", "dim")),
        row(("or start one from a shell:", "dim")),
        row(("mpstui run -- python train.py", "")),
    ]
    top = max(0, (height - len(lines)) // 2)
    return [EMPTY] * top + [row(" " * max(0, (width - line.width) // 2), *line.spans) for line in lines]


NOTHING_MATCHES = [EMPTY, row((" no run matches", "title"), ("   esc shows all of them", "dim"))]


# -- one run as a row: columns that give way as the window narrows

Cell = Callable[[RunSnapshot, int], tuple[Span, ...]]


class Column(NamedTuple):
    """One column; ``needs`` is the width of the window from which on it is shown."""

    title: str
    width: int
    cell: Cell
    needs: int = 0
    align: str = "left"
    grows: int = 0
    """Share of the cells that are left over."""
    widest: int = 0


def _state(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    look = badge(snapshot)
    return (Span(fit(f"{look.glyph} {look.word}", width), look.tone),)


def _name(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    role = "strong" if snapshot.state.active or needs_attention(snapshot) else ""
    return (Span(fit(clean(snapshot.name), width), role),)


def _epoch(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    """The share of all steps that are done, else of epochs; beside it the epoch being trained, or the step."""
    numbers = snapshot.numbers
    only_step = numbers.epoch is None and numbers.step is not None
    counted = f"step {step_text(numbers)}" if only_step else epoch_text(numbers)
    counted = "…" if counted == shown.UNKNOWN and snapshot.unread else counted
    done = bar(total_progress(numbers), width - 1 - _COUNTED, "bar" if snapshot.state.active else "dim")
    return (*done, Span(" " + fit(counted, _COUNTED), "faint" if counted == shown.UNKNOWN else ""))


def _trend(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    curve = snapshot.train_loss
    return (Span(sparkline(curve.mean if curve else (), width), "train" if snapshot.state.active else "dim"),)


def _number(text: Callable[[RunSnapshot], str], *, ends: bool = False, align: str = "right") -> Cell:
    """A cell of one value. ``ends``: only a run that goes on has it; for one that has ended it is not unknown."""

    def cell(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
        told = text(snapshot) if (snapshot.state.active and not snapshot.numbers.done) or not ends else "–"
        told = "…" if told == shown.UNKNOWN and snapshot.unread else told
        role = "bad" if told == shown.NOT_FINITE else "faint" if told in (shown.UNKNOWN, "–") else ""
        return (Span(fit(told, width, align), role),)

    return cell


COLUMNS: tuple[Column, ...] = (
    Column("state", WIDEST_WORD + 2, _state),
    Column("name", 12, _name, grows=3, widest=60),
    Column("dev", 4, _number(lambda run: clean(run.numbers.device.type or shown.UNKNOWN, 20), align="left"), needs=44),
    Column("epoch", 1 + _COUNTED + 5, _epoch, needs=50, grows=2, widest=40),
    Column("loss", 9, _number(lambda run: shown.loss_text(run.numbers)), needs=32, align="right"),
    Column("trend", 6, _trend, needs=90, grows=2, widest=40),
    Column("step/s", 6, _number(lambda run: shown.rate(run.numbers.steps_per_second), ends=True), 78, "right"),
    Column("eta", 7, _number(lambda run: shown.duration(run.numbers.eta_seconds), ends=True), 66, "right"),
)


def _layout(width: int) -> list[tuple[Column, int]]:
    """The columns that fit and their widths; what is left over goes to those that can use it."""
    chosen = [column for column in COLUMNS if width >= column.needs]
    left = width - 2 - sum(column.width for column in chosen) - len(_gap(width)) * (len(chosen) - 1)
    total = max(1, sum(column.grows for column in chosen))
    return [
        (one, max(4, min(one.widest, one.width + left * one.grows // total)) if one.grows else one.width)
        for one in chosen
    ]


def _gap(width: int) -> str:
    return "  " if width >= _TWO_BLANKS_FROM else " "


def heading(width: int) -> Row:
    titles = ((fit(column.title, cells, column.align), "heading") for column, cells in _layout(width))
    return row(" ", *(part for title in titles for part in (title, _gap(width))))


class NameDisambiguator:
    """How to shorten names so that runs of a list cannot be taken for each other."""

    def __init__(self, snapshots: Iterable[RunSnapshot]) -> None:
        self._names = [clean(item.name) for item in snapshots]
        self._same = Counter(self._names)
        self._common: dict[int, dict[str, frozenset[str]]] = {}
        """By width and name cut to it: the words that all names share which are cut to the same."""

    def name(self, snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
        """Where several names begin alike, the words in which they differ; where they are equal, when it started."""
        name, role = clean(snapshot.name), _name(snapshot, width)[0].role
        moment = shown.moment_of_day(snapshot.started, snapshot.seen)
        fitting = [text for text in (moment, moment[:-3]) if width - len(text) > _LEAST_NAME]
        if self._same[name] > 1 and fitting and snapshot.started is not None:
            left = width - len(fitting[0]) - 1
            return (Span(fit(self._shortened(name, left), left), role), Span(f" {fitting[0]}", "dim"))
        return (Span(fit(self._shortened(name, width), width), role),)

    def _shortened(self, name: str, width: int) -> str:
        if width_of(name) <= width or width <= _LEAST_NAME:
            return name
        if width not in self._common:
            groups: dict[str, list[frozenset[str]]] = {}
            for other in self._same:
                groups.setdefault(fit(other, width), []).append(frozenset(other.split()))
            self._common[width] = {cut: frozenset.intersection(*words) for cut, words in groups.items()}
        common = self._common[width].get(fit(name, width), frozenset())
        differing = [word for word in name.split() if word not in common]
        values = [word.rpartition("=")[2] for word in differing]
        room = width - _LEAST_NAME  # the beginning stays
        end = " ".join(differing) if width_of(" ".join(differing)) <= room else " ".join(values)
        while width_of(end) > room:
            end = end[1:]
        return f"{fit(name, width - width_of(end))}{end}"


def run_row(
    snapshot: RunSnapshot,
    width: int,
    *,
    selected: bool = False,
    marked: bool = False,
    names: NameDisambiguator | None = None,
) -> Row:
    """One run; ``names`` tells those apart that could be taken for each other."""
    columns, gap = _layout(width), _gap(width)
    place = snapshot.queue.sentence() if snapshot.queue else ""
    if place:  # in place of numbers that it cannot have yet
        kept = [item for item in columns if item[0].title in _OF_QUEUED]
        left = sum(cells for _, cells in columns[len(kept) :]) + len(gap) * max(0, len(columns) - len(kept) - 1)
        waits = Column("", left, lambda snapshot, width: (Span(fit(clean(place, 200), width), "dim"),))
        columns = [*kept, (waits, left)] if left else kept
    parts = [Span("◆", "mark") if marked else Span("▌" if selected else " ", "key")]
    for column, cells in columns:
        cell = names.name if names and column.cell is _name else column.cell
        parts += [*cell(snapshot, cells), Span(gap)]
    return row(*parts, base="selected" if selected else "")
