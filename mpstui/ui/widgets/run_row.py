"""One run as a row: columns that are dropped as the window narrows, columns the user chose, and headings of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product, takewhile
from typing import NamedTuple

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot, SeriesView, State
from ...core.present import WIDEST_WORD, badge, epoch_text, needs_attention, step_text, total_progress
from ...core.runs.comparison import BROKEN_MARK, broken_since, told_apart
from ...core.runs.listing import (
    BUILT_IN,
    Column,
    Group,
    Line,
    ListView,
    best_in,
    brief,
    column,
    moment_of_end,
    varied,
)
from ..rows import Row, Span, bar, clean, cut, fit, row, sparkline, spread, width_of
from .short_names import LEAST_NAME, ShortNames

_TWO_BLANKS_FROM = 100
"""From this width on, columns are separated by two blanks."""
_COUNTED = 10
"""Cells for a count such as ``step 1,234``."""
_OF_QUEUED = ("state", "name", "host", "device")
"""Columns shown for a queued run, provided they come first in the table."""
_OF_RUNNING, _ENDED = ("speed", "left"), "ended · took"
"""Columns that only apply to active runs; ended runs use their place to say when they ended and how long they took."""
_WIDEST_VALUE = 16
_REST_OF_HEAD = 40
"""Cells of a group's heading that are reserved for the counts of its runs by state."""

Cell = Callable[[RunSnapshot, int, float], tuple[Span, ...]]


class Shown(NamedTuple):
    """A column as drawn; ``needs`` is the window width from which it is shown unasked."""

    id: str
    title: str
    width: int
    cell: Cell
    needs: int = 0
    align: str = "left"
    grows: int = 0
    """Its share of the spare cells."""
    widest: int = 0


Layout = Sequence[tuple[Shown, int]]


def _state(snapshot: RunSnapshot, width: int, now: float) -> tuple[Span, ...]:
    look = badge(snapshot)
    return (Span(fit(f"{look.glyph} {look.word}", width), look.tone),)


def _lives(snapshot: RunSnapshot) -> bool:
    return snapshot.is_live or snapshot.state is State.QUEUED


def _name_role(snapshot: RunSnapshot) -> str:
    return "strong" if _lives(snapshot) or needs_attention(snapshot) else ""


def _name(snapshot: RunSnapshot, width: int, now: float) -> tuple[Span, ...]:
    return (Span(fit(clean(snapshot.name), width), _name_role(snapshot)),)


def _epoch(snapshot: RunSnapshot, width: int, now: float) -> tuple[Span, ...]:
    """Progress by steps, else by epochs, with the current epoch or step beside it."""
    numbers = snapshot.numbers
    # An endless stream of epochs has no total: an epoch bar would show nothing.
    by_steps = numbers.epoch is None or (numbers.epochs is None and numbers.steps is not None)
    counted = f"step {step_text(numbers)}" if by_steps and numbers.step is not None else epoch_text(numbers)
    counted = "…" if counted == shown.UNKNOWN and snapshot.unread else counted
    done = bar(total_progress(numbers), width - 1 - _COUNTED, "bar" if _lives(snapshot) else "dim")
    return (*done, Span(" " + fit(counted, _COUNTED), "faint" if counted == shown.UNKNOWN else ""))


def _trend(snapshot: RunSnapshot, width: int, now: float) -> tuple[Span, ...]:
    curve = snapshot.train_loss
    return (Span(_curve(curve, width) if curve else " " * width, "train" if _lives(snapshot) else "dim"),)


@lru_cache(128)
def _curve(curve: SeriesView, width: int) -> str:
    """Cached: every key redraws every row, and the curve took half the time of a row."""
    return sparkline(curve.mean, width)


def _text(of: Column, align: str) -> Cell:
    """Return a cell that shows one value."""
    ends, read_through = of.id in _OF_RUNNING, of.id.startswith("best")

    def cell(snapshot: RunSnapshot, width: int, now: float) -> tuple[Span, ...]:
        goes_on = not snapshot.is_over and not snapshot.numbers.done
        told = clean(of.text(snapshot, now), 200) if goes_on or not ends else "–"
        reads_on = read_through and snapshot.is_ours and not snapshot.extremes and bool(snapshot.series)
        unread = snapshot.unread or reads_on
        told = "…" if told == shown.UNKNOWN and unread else told
        role = "bad" if told == shown.NOT_FINITE else "faint" if told in (shown.UNKNOWN, "–") else ""
        return (Span(fit(told, width, align), role),)

    return cell


def _tags(snapshot: RunSnapshot, width: int, now: float) -> tuple[Span, ...]:
    """The tags, then as much of the note as fits."""
    tags = clean("".join(f"#{tag} " for tag in snapshot.tags))
    left = max(0, width - width_of(tags))
    return (Span(fit(tags, min(width, width_of(tags))), "mark"), Span(fit(clean(snapshot.note, 200), left), "dim"))


def _of(name: str, width: int, needs: int = 0, align: str = "right") -> Shown:
    found = column(name)
    assert found is not None
    return Shown(name, found.title, width, _text(found, align), needs, align)


COLUMNS: tuple[Shown, ...] = (
    Shown("state", "state", WIDEST_WORD + 2, _state),
    Shown("name", "name", 12, _name, grows=3, widest=60),
    _of("host", 10, 40, "left"),
    _of("device", 4, 44, "left"),
    Shown("epoch", "epoch", 1 + _COUNTED + 5, _epoch, needs=50, grows=2, widest=40),
    _of("loss", 9, 32),
    _of("best", 9, 130),
    Shown("trend", "trend", 6, _trend, needs=90, grows=2, widest=40),
    _of("memory", 8, 150),
    _of("speed", 6, 78),
    _of("left", 7, 66),
    Shown("tags", "tags · note", 8, _tags, needs=170, grows=2, widest=60),
)
_DRAWN = {one.id: one for one in COLUMNS}


def layout(width: int, view: ListView, snapshots: Sequence[RunSnapshot], now: float) -> Layout:
    """Return the columns that fit and their widths; spare cells go to the columns that can use them."""
    gap = len(_gap(width))
    if view.columns:
        asked = dict.fromkeys(("state", "name", *view.columns))
        chosen = [_DRAWN.get(name) or _asked_for(name, snapshots, now) for name in asked]
        while len(chosen) > 2 and sum(one.width for one in chosen) + gap * (len(chosen) - 1) + 2 > width:
            chosen.pop()
    else:
        chosen = [one for one in COLUMNS if width >= one.needs]
        told = {"host": ("host",), "tags": ("tags", "note"), "best": ("best",), "memory": ("memory",)}
        empty = {name for name, of in told.items() if not any(_has(one, of, now) for one in snapshots)}
        chosen = [one for one in chosen if one.id not in empty]
        # In a narrow window, cells that host names do not need go to the names of the runs.
        hosts = max((width_of(clean(one.host or "local", 20)) for one in snapshots), default=0)
        chosen = [one._replace(width=min(one.width, max(4, hosts))) if one.id == "host" else one for one in chosen]
    left = width - 2 - sum(one.width for one in chosen) - gap * (len(chosen) - 1)
    total = max(1, sum(one.grows for one in chosen))
    return [
        (one, max(4, min(one.widest, one.width + left * one.grows // total)) if one.grows else one.width)
        for one in chosen
    ]


def _has(snapshot: RunSnapshot, names: Sequence[str], now: float) -> bool:
    return any(BUILT_IN[name].value(snapshot, now) is not None for name in names)


def _asked_for(name: str, snapshots: Sequence[RunSnapshot], now: float) -> Shown:
    """Return a column that the user chose, as wide as its content."""
    found = column(name)
    assert found is not None
    texts = [found.text(one, now) for one in snapshots[:200]]
    wide = max((width_of(clean(text, 200)) for text in texts), default=0)
    numeric = any(isinstance(found.value(one, now), float) for one in snapshots[:200])
    align = "right" if numeric else "left"
    return _of(name, min(_WIDEST_VALUE, max(wide, width_of(found.title) + 1, 4)), align=align)


def _gap(width: int) -> str:
    return "  " if width >= _TWO_BLANKS_FROM else " "


def heading(width: int, columns: Layout, view: ListView, *, ended: bool = False) -> Row:
    """The column titles, with an arrow for the direction on the column that sorts the list.

    Args:
        ended: all runs have ended, so the columns for active runs are replaced by one for the end.
    """
    titles = []
    if ended and view.sort not in _OF_RUNNING:
        columns = _in_one(columns, len(_gap(width)), _of_ended)
    for one, cells in columns:
        found = column(one.id)
        if one.id == view.sort and found is not None:
            arrow = "▲" if found.rising != view.reverse else "▼"
            titles.append(Span(fit(cut(one.title, cells - 1) + arrow, cells, one.align), "key"))
        else:
            titles.append(Span(fit(one.title, cells, one.align), "heading"))
    return row(" ", *(part for title in titles for part in (title, _gap(width))))


def _of_ended(cells: int) -> Shown:
    title = _ENDED if width_of(_ENDED) <= cells else _ENDED.partition(" ")[0]
    return Shown("", title, cells, _state, align="right")


def column_at(x: int, width: int, columns: Layout) -> str | None:
    """Return the id of the column drawn at cell ``x``."""
    start = 1
    for one, cells in columns:
        if start <= x < start + cells:
            return one.id
        start += cells + len(_gap(width))
    return None


class NameDisambiguator:
    """Shortens names such that no two runs in a list look the same."""

    def __init__(self, snapshots: Iterable[RunSnapshot]) -> None:
        self._snapshots = list(snapshots)
        self._same = Counter(clean(item.name) for item in self._snapshots)
        self._apart: dict[str, dict[str, str]] = {}
        """For each name drawn so far that several runs share: what distinguishes them, by run."""
        self._short = ShortNames(self._same)

    def name(self, snapshot: RunSnapshot, width: int) -> tuple[Span, ...]:
        """The name; if several names begin alike, with the words that differ; if several are equal, with the settings
        that differ or, if these do not distinguish all runs, with the start time."""
        name, role = clean(snapshot.name), _name_role(snapshot)
        if self._same[name] < 2:
            return (Span(fit(self._short.of(name, width), width), role),)
        if name not in self._apart:
            self._apart[name] = told_apart([one for one in self._snapshots if clean(one.name) == name])
        apart = self._apart[name]
        words = clean(apart.get(snapshot.run, ""), 200)
        values = " ".join(word.partition("=")[2] or word for word in words.split())
        moment = "" if snapshot.started is None else shown.moment_of_day(snapshot.started, snapshot.seen)
        alone = words and list(apart.values()).count(apart[snapshot.run]) == 1
        times = [""] if alone else [moment, moment[:-3]]
        for settings, time in [*product((words, values), times), *(("", time) for time in times)]:
            left = width - width_of(settings) - width_of(time) - bool(settings) - bool(time)
            if (settings or time) and left >= min(LEAST_NAME, width_of(name)):
                told = [Span(f" {settings}", role)] if settings else []
                told += [Span(f" {time}", "dim")] if time else []
                return (Span(fit(self._short.of(name, left), left), role), *told)
        cells = max(0, width - LEAST_NAME - 1) if values else 0
        return (
            Span(fit(self._short.of(name, width - cells), width - cells), role),
            Span(fit(f" {values}", cells), role),
        )


def line_row(
    line: Line,
    width: int,
    columns: Layout,
    now: float,
    *,
    selected: bool,
    marked: bool,
    names: NameDisambiguator,
) -> Row:
    """Draw a run, or the heading of a group."""
    if line.run is None and line.group is not None:
        return group_row(line.group, width, folded=line.folded, selected=selected, marked=marked)
    assert line.run is not None
    return run_row(line.run, width, columns, now, selected=selected, marked=marked, names=names, group=line.group)


def group_row(group: Group, width: int, *, folded: bool, selected: bool, marked: bool) -> Row:
    """``▸ six optimizers  18 · 3 live · 1 failed``, with the best value of the group at the right."""
    parts = [
        Span("◆", "mark") if marked else Span("▌" if selected else " ", "key"),
        Span("▸ " if folded else "▾ ", "key"),
    ]
    parts.append(Span(cut(clean(group.title, 200), max(12, width // 2)), "strong"))
    settings = _varying(group)
    room = width - sum(width_of(one.text) for one in parts) - _REST_OF_HEAD
    parts += [Span(f"  {settings}", "dim")] if settings and width_of(settings) <= room else []
    parts.append(Span(f"  {len(group.runs)}", "dim"))
    parts += [Span(" · ", "faint"), Span(f"{group.live} live", "good")] if group.live else []
    for count, look in shown.attention(group.runs):
        parts += [Span(" · ", "faint"), Span(f"{look.glyph} {count} {look.word}", look.tone)]
    waiting = sum(one.state == "queued" for one in group.runs)
    parts += [Span(" · ", "faint"), Span(f"{waiting} waiting", "dim")] if waiting else []
    best, right = best_in(group.runs), list[Span]()
    if best is not None:
        run, metric, value = best
        own, broken = cut(clean(what_differs(run, group)), 40), broken_since(run, metric)
        of_what = Span(f"{clean(metric, 24)} ", "dim")  # never dropped: the column it stands in is titled loss
        whose = [Span("best ", "dim"), Span(f"{own} "), of_what]
        since = [Span(f"{broken} ", "bad")] if broken else []
        value_of = Span(shown.number(value) + (f" {BROKEN_MARK}" if broken else ""), "warn" if broken else "train")
        choices: tuple[list[Span], ...] = (
            [*whose, *since, value_of],
            [of_what, *since, value_of],
            [of_what, value_of],
            [],
        )
        right = next(one for one in choices if not one or row(*parts, *one).width + 3 <= width)
    return Row(spread(parts, [*right, Span(" ")] if right else [], width).spans, "selected" if selected else "")


def _varying(group: Group) -> str:
    """The names of the settings that differ within a group, in order: ``lr wd``."""
    told = _differing(tuple(one.name for one in group.runs)).values()
    return clean(" ".join(dict.fromkeys(word.partition("=")[0] for words in told for word in words)))


def what_differs(snapshot: RunSnapshot, group: Group) -> str:
    """The words of a run's name that not all names in its group contain."""
    own = _differing(tuple(one.name for one in group.runs)).get(snapshot.name)
    return " ".join(own) if own else snapshot.name


@lru_cache(64)
def _differing(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """For each name, the settings (``lr=0.1``) that not all names contain."""
    words = {name: varied(name) for name in names}
    shared = set.intersection(*(set(told) for told in words.values()))
    return {name: tuple(word for word in told if word not in shared) for name, told in words.items()}


def _in_group(snapshot: RunSnapshot, group: Group, width: int) -> tuple[Span, ...]:
    """The settings of a run; if any run's do not fit, all of the group show values only, as the heading names them."""
    told = _differing(tuple(one.name for one in group.runs))
    words = told.get(snapshot.name)
    text = clean(" ".join(words) if words else snapshot.name)
    if words and any(width_of(" ".join(one)) > width - 2 for one in told.values()):
        text = clean(" ".join(word.rpartition("=")[2] for word in words))
    return (Span("  "), Span(fit(text, max(0, width - 2)), _name_role(snapshot)))


def run_row(
    snapshot: RunSnapshot,
    width: int,
    columns: Layout | None = None,
    now: float | None = None,
    *,
    selected: bool = False,
    marked: bool = False,
    names: NameDisambiguator | None = None,
    group: Group | None = None,
) -> Row:
    """One run; ``names`` tells similar names apart, and ``group`` is the group it is drawn in."""
    now, gap = snapshot.seen if now is None else now, _gap(width)
    columns = layout(width, ListView(), (), now) if columns is None else columns
    place = clean(snapshot.waits, 200)
    if place:  # shown instead of numbers that do not exist yet
        kept = list(takewhile(lambda item: item[0].id in _OF_QUEUED, columns))
        left = sum(cells for _, cells in columns) - sum(cells for _, cells in kept)
        left += len(gap) * max(0, len(columns) - len(kept) - 1)
        waits = Shown("", "", left, lambda run, cells, now: (Span(fit(place, cells), "dim"),))
        columns = [*kept, (waits, left)] if left else kept
    else:
        columns = _with_end(snapshot, columns, len(gap), now)
    parts = [Span("◆", "mark") if marked else Span("▌" if selected else " ", "key")]
    for one, cells in columns:
        if one.id == "name" and group is not None:
            parts += _in_group(snapshot, group, cells)
        elif one.id == "name" and names is not None:
            parts += names.name(snapshot, cells)
        else:
            parts += one.cell(snapshot, cells, now)
        parts.append(Span(gap))
    return row(*parts, base="selected" if selected else "")


def _with_end(snapshot: RunSnapshot, columns: Layout, gap: int, now: float) -> Layout:
    """For an ended run, merge the columns for active runs into one: when it ended and how long it took."""
    end = moment_of_end(snapshot)
    if end is None:
        return columns
    ago = f"{brief(max(0.0, now - end))} ago"
    seconds = snapshot.lasted(end)
    texts = [f"{ago} · {shown.duration(seconds)}", f"{ago} · {brief(seconds)}"] if seconds is not None else []

    def told(cells: int) -> Shown:
        text = next((one for one in [*texts, ago] if width_of(one) <= cells), "")
        return Shown("", "", cells, lambda run, width, now: (Span(fit(text, width, "right"), "dim"),))

    return _in_one(columns, gap, told)


def _in_one(columns: Layout, gap: int, made: Callable[[int], Shown]) -> Layout:
    """Merge the columns for active runs into one of the same total width, if they are adjacent."""
    places = [place for place, (one, _) in enumerate(columns) if one.id in _OF_RUNNING]
    if not places or places != list(range(places[0], places[-1] + 1)):
        return columns
    cells = sum(columns[place][1] for place in places) + gap * (len(places) - 1)
    return [*columns[: places[0]], (made(cells), cells), *columns[places[-1] + 1 :]]
