"""Metrics, checkpoints and events of a run, each a list with fixed columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...core.model.snapshot import Checkpoint, RunEvent, RunSnapshot, SeriesView
from ...core.present import format as shown
from ...core.present.states import short_paths, why_not_its_own, without_echoes
from ..charting.strips import sparkline
from ..rows import Row, Span, clean, clip, fit, row
from .lines import LinePanel

_NUMBER = 10
EVENT_TONES = {
    "crash": "bad",
    "exit": "strong",
    "checkpoint": "good",
    "request": "key",
    "ack": "key",
    "restart": "warn",
    "launched": "strong",
}


def metric_rows(snapshot: RunSnapshot, width: int) -> list[Row]:
    """Every reported value: newest, least, greatest, how often, and its course."""
    named = {**_loose_values(snapshot), **dict(snapshot.series)}
    if not named:
        return [_empty("no metrics reported yet", unread=snapshot.loading or snapshot.brief)]
    name_width = max(10, min(28, max(len(name) for name in named) + 1, max(18, width // 3)))
    room = width - 3 - name_width
    numbers = max(1, min(4, room // (_NUMBER + 1)))
    trend = room - numbers * (_NUMBER + 1) - 1
    titles = ("last", "min", "max", "count")[:numbers]
    heads = [Span(fit(title, _NUMBER, "right") + " ", "heading") for title in titles]
    lines = [row(" ", (fit("metric", name_width), "heading"), *heads)]
    for name, value in named.items():
        lines.append(_metric_row(name, value, name_width, numbers, trend))
    return lines


def _empty(why: str, *, unread: bool) -> Row:
    """``unread``: it may be that there is something, which this picture does not have."""
    return row((" being read …" if unread else f" {why}", "dim"))


def _loose_values(snapshot: RunSnapshot) -> dict[str, SeriesView | float | None]:
    """Values without a history of their own."""
    loose: dict[str, SeriesView | float | None] = (
        {"loss": snapshot.numbers.loss} if snapshot.numbers.loss is not None else {}
    )
    loose.update({"lr": snapshot.numbers.lr} if snapshot.numbers.lr is not None else {})
    loose.update(snapshot.numbers.metrics)
    return loose


def _metric_row(name: str, value: SeriesView | float | None, name_width: int, numbers: int, trend: int) -> Row:
    if isinstance(value, SeriesView):
        # A series holds at least one point: where none of them is known, none is finite.
        known = (value.last, value.minimum, value.maximum)
        texts = [shown.NOT_FINITE if one is None else shown.number(one) for one in known]
        texts.append(shown.short_count(value.count))
        tone = "val" if value.evaluation else "train"
        curve = sparkline(value.mean, min(40, trend)) if trend >= 6 else ""
    else:
        texts, tone, curve = [shown.number(value), "", "", ""], "", ""
    cells = [Span(fit(text, _NUMBER, "right") + " ", "" if place == 0 else "dim") for place, text in enumerate(texts)]
    return row(" ", fit(clean(name, 60), name_width), *cells[:numbers], (" " + curve, tone))


def checkpoint_rows(snapshot: RunSnapshot, width: int) -> list[Row]:
    """Checkpoints, newest first; the best and the incomplete are named."""
    if not snapshot.checkpoints:
        note = snapshot.numbers.checkpoint
        if note is None:
            return [_empty("no checkpoint yet", unread=snapshot.brief)]
        return [row(*clip((Span(" reported: ", "dim"), Span(clean(note.path, 300))), width))]
    newest_first = sorted(snapshot.checkpoints, key=lambda item: item.time, reverse=True)
    moments = _moments([item.time for item in newest_first], snapshot.seen)
    return [_checkpoint_row(item, moment, snapshot, width) for item, moment in zip(newest_first, moments, strict=True)]


def _moments(times: list[float], now: float) -> list[str]:
    """The moments as texts of one width."""
    texts = [shown.moment_of_day(time, now) for time in times]
    longest = max(len(text) for text in texts)
    return [text.ljust(longest + 2) for text in texts]


def _checkpoint_row(item: Checkpoint, moment: str, snapshot: RunSnapshot, width: int) -> Row:
    stranger = why_not_its_own(item, snapshot)
    parts = [
        Span(" "),
        Span(moment, "dim"),
        Span(fit(f"step {shown.whole(item.step)}" if item.step is not None else "", 12)),
        Span(fit(shown.size(item.size_bytes), 9, "right") + "  "),
        Span("★ best  " if item.best else "", "good"),
        Span("" if item.complete else "! incomplete  ", "warn"),
        Span(clean(item.path.name, 200), "dim"),
        Span(f"  {stranger}" if stranger else "", "warn"),
    ]
    return row(*clip(tuple(part for part in parts if part.text), width))


def event_rows(snapshot: RunSnapshot, width: int) -> list[Row]:
    """What happened, newest first."""
    if not snapshot.events:
        return [_empty("nothing has happened yet", unread=snapshot.brief)]
    newest_first = without_echoes(snapshot.events)[::-1]
    moments = _moments([item.time for item in newest_first], snapshot.seen)
    return [_event_row(item, moment, snapshot.dir, width) for item, moment in zip(newest_first, moments, strict=True)]


def _event_row(item: RunEvent, moment: str, folder: Path, width: int) -> Row:
    """One event; files are named from the run's folder, checkpoints by their names alone: the step stays in view."""
    path = item.details.get("path") if item.event == "checkpoint" else None
    text = item.text.replace(path, Path(path).name) if isinstance(path, str) else short_paths(item.text, folder)
    parts = (
        Span(" "),
        Span(moment, "dim"),
        Span(fit(clean(item.event, 20), 11), EVENT_TONES.get(item.event, "")),
        Span(clean(text, 400)),
    )
    return row(*clip(parts, width))


Rows = Callable[[RunSnapshot, int], list[Row]]


class TablePanel(LinePanel):
    """A list of a run that can be scrolled."""

    def __init__(self, table: Rows, *, id: str, heading_rows: int = 0) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._table = table
        self._heading_rows = heading_rows
        self._top = 0
        self._lines: list[Row] = []
        self.snapshot: RunSnapshot | None = None

    def show(self, snapshot: RunSnapshot) -> None:
        """A new picture."""
        if self.snapshot is not None and self.snapshot.run != snapshot.run:
            self._top = 0
        self.snapshot = snapshot
        self.repaint()

    def scroll_rows(self, by: int) -> None:
        """Move the view down (or up)."""
        self._top += by
        self.repaint()

    def to_edge(self, direction: int) -> None:
        """To the first or the last line."""
        self._top = 0 if direction < 0 else len(self._lines)
        self.repaint()

    def repaint(self) -> None:
        """Read the table anew, for the title too, which tells what does not fit."""
        width, height = self.rows_size
        self._lines = self._table(self.snapshot, width) if self.snapshot and width > 0 else []
        self._top = max(0, min(self._top, len(self._lines) - height))
        super().repaint()

    def status(self) -> tuple[Span, ...]:
        """How many lines there are below those in view."""
        hidden = len(self._lines) - self._top - self.rows_size[1]
        return (Span(f"… {hidden} more", "dim"),) if hidden > 0 else ()

    def rows(self, width: int, height: int) -> list[Row]:
        """The part of the table that fits; its titles stay."""
        fixed = self._lines[: self._heading_rows]
        return fixed + self._lines[self._heading_rows + self._top :]
