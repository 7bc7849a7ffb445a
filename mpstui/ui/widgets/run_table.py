"""The list of runs: one row a run, newest first, columns that give way as the window narrows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.message import Message

from ...core.present import format as shown
from ...core.present.states import WIDEST_WORD, face, needs_attention
from ...core.runs.snapshot import RunSnapshot
from ..charting.sparkline import sparkline
from ..rows import EMPTY, Row, Span, bar, clean, fit, row
from .lines import LinePanel

_ROOMY = 100
"""From this width on the columns stand two blanks apart."""

Cell = Callable[[RunSnapshot, int], tuple[Span, ...]]


@dataclass(frozen=True, slots=True)
class Column:
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
    shown_face = face(snapshot)
    return (Span(fit(f"{shown_face.glyph} {shown_face.word}", width), shown_face.tone),)


def _name(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    text = fit(clean(snapshot.name), width)
    return (Span(text, "strong" if snapshot.state.active or needs_attention(snapshot) else ""),)


def _device(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    known = snapshot.device.type
    return (Span(fit(clean(known or shown.UNKNOWN, 20), width), "" if known else "faint"),)


def _epoch(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    """The share of all steps that are done, else of epochs; beside it the epoch being trained."""
    counted = epoch_text(snapshot)
    room = width - 1 - 8
    done = total_progress(snapshot)
    tone = "bar" if snapshot.state.active else "dim"
    return (*bar(done, room, tone), Span(" " + fit(counted, 8), "" if snapshot.epoch is not None else "faint"))


def epoch_text(snapshot: RunSnapshot) -> str:
    """``57/200``, or the steps where no epochs are counted."""
    if snapshot.epoch is not None:
        whole = shown.short_count(snapshot.epochs) if snapshot.epochs is not None else "?"
        return f"{shown.short_count(snapshot.epoch)}/{whole}"
    if snapshot.step is not None:
        return shown.short_count(snapshot.step)
    return shown.UNKNOWN


def total_progress(snapshot: RunSnapshot) -> float | None:
    """The share that is done of everything, None where the end is not known."""
    by_steps = shown.ratio(snapshot.step, snapshot.steps)
    if by_steps is not None:
        return by_steps
    if snapshot.epoch is None:
        return None
    within = shown.ratio(snapshot.epoch_step, snapshot.epoch_steps) or 0
    return shown.ratio(snapshot.epoch - 1 + within, snapshot.epochs)


def _loss(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    if not snapshot.loss_is_finite:
        return (Span(fit("nan", width, "right"), "bad"),)
    return (Span(fit(shown.number(snapshot.loss), width, "right"), "" if snapshot.loss is not None else "faint"),)


def _trend(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    curve = snapshot.train_loss
    tone = "train" if snapshot.state.active else "dim"
    return (Span(sparkline(curve.mean if curve else (), width), tone),)


def _speed(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    known = snapshot.steps_per_second if snapshot.state.active else None
    return _number(shown.rate(known), width)


def _eta(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    if not snapshot.state.active:
        return (Span(fit("–", width, "right"), "faint"),)
    return _number(shown.duration(snapshot.eta_seconds), width)


def _number(text: str, width: int) -> tuple[Span, ...]:
    return (Span(fit(text, width, "right"), "faint" if text == shown.UNKNOWN else ""),)


COLUMNS: tuple[Column, ...] = (
    Column("state", WIDEST_WORD + 2, _state),
    Column("name", 12, _name, grows=3, widest=60),
    Column("dev", 4, _device, needs=44),
    Column("epoch", 9 + 5, _epoch, needs=50, grows=2, widest=40),
    Column("loss", 9, _loss, needs=32, align="right"),
    Column("trend", 8, _trend, needs=92, grows=2, widest=40),
    Column("step/s", 6, _speed, needs=78, align="right"),
    Column("eta", 7, _eta, needs=66, align="right"),
)


def layout(width: int) -> list[tuple[Column, int]]:
    """The columns that fit and their widths; what is left over goes to those that can use it."""
    chosen = [column for column in COLUMNS if width >= column.needs]
    widths = {column.title: column.width for column in chosen}
    left = width - 2 - sum(widths.values()) - len(gap(width)) * (len(chosen) - 1)
    growing = [column for column in chosen if column.grows]
    total = sum(column.grows for column in growing)
    for column in growing:
        widths[column.title] = max(4, min(column.widest, column.width + left * column.grows // max(1, total)))
    return [(column, widths[column.title]) for column in chosen]


def gap(width: int) -> str:
    """Blanks between columns."""
    return "  " if width >= _ROOMY else " "


def heading(width: int) -> Row:
    """The titles of the columns."""
    parts = [Span(" ")]
    for column, cells in layout(width):
        parts += [Span(fit(column.title, cells, column.align), "heading"), Span(gap(width))]
    return row(*parts)


def run_row(snapshot: RunSnapshot, width: int, *, selected: bool = False) -> Row:
    """One run."""
    parts = [Span("▌" if selected else " ", "key")]
    for column, cells in layout(width):
        parts += [*column.cell(snapshot, cells), Span(gap(width))]
    return row(*parts, base="selected" if selected else "")


class RunTable(LinePanel):
    """Rows of runs with one selected; the selection is a run, never a place."""

    class Opened(Message):
        """A run was clicked while it was selected."""

    class Selected(Message):
        """Another run is selected."""

        def __init__(self, run: str | None) -> None:
            super().__init__()
            self.run = run

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.snapshots: Sequence[RunSnapshot] = ()
        self.selected: str | None = None
        self._top = 0

    @property
    def index(self) -> int | None:
        """The place of the selected run now."""
        return next((place for place, item in enumerate(self.snapshots) if item.run == self.selected), None)

    def show(self, snapshots: Sequence[RunSnapshot]) -> None:
        """New pictures. The selected run stays selected, and on its line unless the newest were in view."""
        before = self.index
        self.snapshots = snapshots
        after = self.index
        if after is None:
            self._select_at(min(before or 0, len(snapshots) - 1))
        elif before is not None and self._top > 0:
            self._top += after - before
        self.repaint()

    def select(self, run: str | None) -> None:
        """Select a run by its id."""
        if run != self.selected:
            self.selected = run
            self.post_message(self.Selected(run))
        self.repaint()

    def move(self, by: int) -> None:
        """Select the run ``by`` places further down; stops at the ends."""
        self._select_at((self.index or 0) + by)
        self.repaint()

    def _select_at(self, place: int) -> None:
        place = max(0, min(len(self.snapshots) - 1, place))
        self.select(self.snapshots[place].run if self.snapshots else None)

    @property
    def page(self) -> int:
        """Runs in view."""
        return max(1, self.size.height - 1)

    def rows(self, width: int, height: int) -> list[Row]:
        """The titles, then the runs around the selected one."""
        if not self.snapshots:
            return empty_state(width, height)
        self._scroll_to_selection(height - 1)
        seen = self.snapshots[self._top : self._top + height - 1]
        return [heading(width), *(run_row(item, width, selected=item.run == self.selected) for item in seen)]

    def _scroll_to_selection(self, room: int) -> None:
        index = self.index or 0
        self._top = max(min(self._top, index, max(0, len(self.snapshots) - room)), index - room + 1, 0)

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
        """The wheel moves the selection."""
        self.move(1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """The wheel moves the selection."""
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
