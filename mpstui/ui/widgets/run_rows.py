"""One run as one row of the list: columns that give way as the window narrows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...core.model.snapshot import RunSnapshot
from ...core.present import format as shown
from ...core.present.states import WIDEST_WORD, badge, needs_attention
from ..charting.strips import sparkline
from ..rows import Row, Span, bar, clean, fit, row, width_of

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
    look = badge(snapshot)
    return (Span(fit(f"{look.glyph} {look.word}", width), look.tone),)


def _name(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    return (_named(snapshot, width),)


def _named(snapshot: RunSnapshot, width: int) -> Span:
    return Span(
        fit(clean(snapshot.name), width), "strong" if snapshot.state.active or needs_attention(snapshot) else ""
    )


def _name_and_start(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    """Several runs have this name: beside it when this one was started, as closely as there is room for."""
    moment = shown.moment_of_day(snapshot.started, snapshot.seen)
    told = next((text for text in (moment, moment[:-3]) if width - len(text) > _LEAST_NAME), "")
    if snapshot.started is None or not told:
        return _name(snapshot, width)
    return (_named(snapshot, width - len(told) - 1), Span(f" {told}", "dim"))


def _name_and_end(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    """Several names begin so: both ends of it, as those of a sweep differ in their last words."""
    name = clean(snapshot.name)
    room = width * 2 // 3
    end = name[-room:].partition(" ")[2] or name[-(width // 2) :]
    while width_of(end) > room:
        end = end[1:]
    head = _named(snapshot, width - width_of(end))
    return (head, Span(end, head.role))


_LEAST_NAME = 5
"""Cells of a name that are worth more than the time beside it."""


def _device(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    known = snapshot.numbers.device.type
    return (Span(fit(clean(known or shown.UNKNOWN, 20), width), "" if known else "faint"),)


def _epoch(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    """The share of all steps that are done, else of epochs; beside it the epoch being trained, or the step."""
    counted = epoch_text(snapshot)
    if snapshot.numbers.epoch is None and snapshot.numbers.step is not None:
        counted = f"step {step_text(snapshot.numbers.step)}"
    room = width - 1 - _COUNTED
    done = total_progress(snapshot)
    tone = "bar" if snapshot.state.active else "dim"
    return (*bar(done, room, tone), Span(" " + fit(counted, _COUNTED), "faint" if counted == shown.UNKNOWN else ""))


_COUNTED = 10
"""``step 1,234``"""


def epoch_text(snapshot: RunSnapshot) -> str:
    """``57/200``, ``57/?`` where the end is not known, n/a where no epochs are counted."""
    if snapshot.numbers.epoch is None:
        return shown.UNKNOWN
    whole = shown.short_count(snapshot.numbers.epochs) if snapshot.numbers.epochs is not None else "?"
    return f"{shown.short_count(snapshot.numbers.epoch)}/{whole}"


def step_text(step: int) -> str:
    """``1,234``, and from ten thousand on ``22.3k``."""
    return shown.whole(step) if step < 10_000 else shown.short_count(step)


def total_progress(snapshot: RunSnapshot) -> float | None:
    """The share that is done of everything, None where the end is not known."""
    by_steps = shown.ratio(snapshot.numbers.step, snapshot.numbers.steps)
    if by_steps is not None:
        return by_steps
    if snapshot.numbers.epoch is None:
        return None
    within = epoch_progress(snapshot) or 0
    return shown.ratio(snapshot.numbers.epoch - snapshot.numbers.first_epoch + within, snapshot.numbers.epochs)


def epoch_progress(snapshot: RunSnapshot) -> float | None:
    """The share that is done of the epoch, None where that is not known."""
    return (
        1.0 if snapshot.numbers.epoch_done else shown.ratio(snapshot.numbers.epoch_step, snapshot.numbers.epoch_steps)
    )


def _loss(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    if not snapshot.numbers.loss_is_finite:
        return (Span(fit(shown.NOT_FINITE, width, "right"), "bad"),)
    return (
        Span(
            fit(shown.number(snapshot.numbers.loss), width, "right"),
            "" if snapshot.numbers.loss is not None else "faint",
        ),
    )


def _trend(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    curve = snapshot.train_loss
    tone = "train" if snapshot.state.active else "dim"
    return (Span(sparkline(curve.mean if curve else (), width), tone),)


def _speed(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    return _of_active(snapshot, shown.rate(snapshot.numbers.steps_per_second), width)


def _eta(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    return _of_active(snapshot, shown.duration(snapshot.numbers.eta_seconds), width)


def _of_active(snapshot: RunSnapshot, text: str, width: int) -> tuple[Span, ...]:
    """A number that only a run has that goes on; for one that has ended it is not unknown, there is none."""
    if not snapshot.state.active:
        return (Span(fit("–", width, "right"), "faint"),)
    return (Span(fit(text, width, "right"), "faint" if text == shown.UNKNOWN else ""),)


def _place(snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
    """Where a queued run stands, in place of numbers that it cannot have yet."""
    return (Span(fit(clean(snapshot.queue.sentence() if snapshot.queue else "", 200), width), "dim"),)


_OF_QUEUED = ("state", "name", "dev")
"""The columns that a queued run has, the first ones of the table."""

COLUMNS: tuple[Column, ...] = (
    Column("state", WIDEST_WORD + 2, _state),
    Column("name", 12, _name, grows=3, widest=60),
    Column("dev", 4, _device, needs=44),
    Column("epoch", 1 + _COUNTED + 5, _epoch, needs=50, grows=2, widest=40),
    Column("loss", 9, _loss, needs=32, align="right"),
    Column("trend", 6, _trend, needs=90, grows=2, widest=40),
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


class Namesakes:
    """Which runs of a list could be taken for each other."""

    def __init__(self, snapshots: Iterable[RunSnapshot]) -> None:
        self._snapshots = tuple(snapshots)
        self._same = Counter(item.name for item in self._snapshots)
        self._cut: tuple[int, Counter[str]] = (0, Counter())

    def cell(self, snapshot: RunSnapshot, width: int) -> Cell:
        """How to show the run's name in ``width`` cells: as it is, with both of its ends, or with its start."""
        if self._same[snapshot.name] > 1:
            return _name_and_start
        if width_of(snapshot.name) <= width or width < 2 * _LEAST_NAME:
            return _name
        if self._cut[0] != width:
            self._cut = width, Counter(fit(clean(item.name), width) for item in self._snapshots)
        return _name_and_end if self._cut[1][fit(clean(snapshot.name), width)] > 1 else _name


def run_row(
    snapshot: RunSnapshot,
    width: int,
    *,
    selected: bool = False,
    marked: bool = False,
    among: Namesakes | None = None,
) -> Row:
    """One run; ``among`` others, those that could be taken for it are told apart."""
    parts = [Span("◆", "mark") if marked else Span("▌" if selected else " ", "key")]
    columns = layout(width)
    place = snapshot.queue.sentence() if snapshot.queue else ""
    if place:
        kept = [item for item in columns if item[0].title in _OF_QUEUED]
        room = sum(cells for _, cells in columns[len(kept) :]) + len(gap(width)) * max(0, len(columns) - len(kept) - 1)
        columns = [*kept, (Column("", room, _place), room)] if room else kept
    for column, cells in columns:
        cell = among.cell(snapshot, cells) if among and column.cell is _name else column.cell
        parts += [*cell(snapshot, cells), Span(gap(width))]
    return row(*parts, base="selected" if selected else "")
