"""The output of a run: follows its end, scrolls through the file, searches it, keeps the program's own colours."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING

from textual.events import (
    MouseDown,
    MouseMove,
    MouseScrollLeft,
    MouseScrollRight,
)
from textual.message import Message

from ...core import present as shown
from ..rows import Row, Span, clean, row, width_of
from ..widgets.lines import WheelScrolled
from ..widgets.log_reading import LEVELS, LogReading
from ..widgets.log_rows import Look, log_rows
from . import Panel, RunPanel

if TYPE_CHECKING:
    from ...core.logview.document import LogDocument
    from ...core.logview.line import LogLine
    from ...core.logview.times import LogTimes
    from ...core.model.snapshot import RunSnapshot, SeriesView
    from ...core.runs.window import Window
    from ..messages import WindowRead

_SIDEWAYS = 16
"""Columns per key press or turn of the wheel."""
_CLOCK, _DATED, _WIDE = 9, 20, 100
"""Columns of a time, columns of a time with its date, and the window width from which the date is shown."""
_SLICE_SECONDS, _BREATH_SECONDS = 0.02, 0.001
_ASKED_AGAIN_SECONDS = 4.0
"""Least seconds between two requests for the times of a growing log: they may go to another machine."""
AskTimes = Callable[["RunSnapshot", "Window"], object]


class LogMoved(Message):
    """The user has moved the view of the log."""


class LogPane(WheelScrolled, RunPanel):
    """The panel; it has no document until the run has written something."""

    scrolls = True
    drawn_from: tuple[str, ...] | None = ()  # redrawn when its file has grown instead, see `grew`

    def __init__(self) -> None:
        super().__init__()
        self.reading: LogReading | None = None
        self.absent = "reading …"
        self.attempt = ""
        """The attempt whose output is shown; empty for the newest."""
        self.times: LogTimes | None = None
        """Knows when lines were printed, if that is to be shown."""
        self.unknown: Callable[[], object] = lambda: None
        """Called once it is certain that no time of the lines in view is known."""
        self._ask_times: AskTimes | None = None
        self._asked_times: tuple[Window, int, float] | None = None
        """The last window requested, the number of points of its curve then, and when."""
        self._measured: tuple[str, Mapping[str, SeriesView]] = "", {}
        """A run, and the part of a curve that tells when the steps in view were measured."""
        self.wrapped = False
        self.shift = 0
        """How many columns it is scrolled sideways."""
        self._covered = 0
        self._counting = False
        self._offsets: list[int] = []
        self._pressed: int | None = None

        self.note = ""
        """A remark about the moment that all panels show."""

    def open(self, document: LogDocument | None, absent: str = "no output yet") -> None:
        """Show another document, or none, with the reason."""
        self.reading = LogReading(document) if document is not None else None
        self.shift = 0
        self.absent = absent
        self.tell_times(None)
        self.repaint()

    def grew(self) -> None:
        """Redraw because the file has changed; a view that was scrolled away stays in place."""
        if self.reading is not None and self.reading.document.refresh():
            self.count()
            self.repaint()

    def count(self) -> None:
        """Count matches, in slices between keys."""
        reading = self.reading
        if reading is not None and not self._counting and reading.count_on(_SLICE_SECONDS):
            self._counting = True

            def go_on() -> None:
                self._counting = False
                self.count()
                self.repaint()

            self.set_timer(_BREATH_SECONDS, go_on)

    @property
    def page(self) -> int:
        return max(1, self.size.height - (1 if self.titled else 0))

    def scroll_rows(self, by: int) -> None:
        """Move the view down (or up) or, while lines are selected, the end of the selection."""
        if self.reading is not None:
            (self.reading.extend if self.reading.selection is not None else self.reading.scroll)(by, self.page)
            self.repaint()
            self.post_message(LogMoved())

    def wrap(self) -> None:
        """Toggle wrapping of long lines."""
        self.wrapped, self.shift = not self.wrapped, 0
        self.repaint()

    def tell_times(self, wanted: LogTimes | None, ask: AskTimes | None = None) -> None:
        """Show when each line was printed, as far as known; None: no longer.

        Args:
            ask: has part of a run's curve read point by point, which arrives as a ``WindowRead``.
        """
        self.unknown = lambda: None
        self.times, self._ask_times, self._asked_times = wanted, ask, None
        self.drawn_from = ("snapshot.series",) if wanted is not None else ()

    @property
    def known_times(self) -> int:
        """The number of lines in view whose time is known."""
        return sum(bool(self._time_of(line)) for line in self.reading.lines(self.page)) if self.reading else 0

    @property
    def asks_for_times(self) -> bool:
        """True if more times may be known in a moment."""
        if self.reading is not None:
            self.ask_for_times(self.reading.lines(self.page))
        return self._asked_times is not None

    def sideways(self, direction: int) -> None:
        """Scroll sideways, as far as the lines in view extend."""
        if self.reading is not None and not self.wrapped:
            longest = max((width_of(line.text) for line in self.reading.lines(self.page)), default=0)
            most = max(0, longest - self.size.width // 2)
            self.shift = max(0, min(self.shift + direction * _SIDEWAYS, most - most % -_SIDEWAYS))
            self.repaint()

    def _rows_of(self, line: LogLine, look: Look) -> tuple[Row, ...]:
        reading = self.reading
        found = reading is not None and (line.offset == reading.found or reading.selects(line.offset))
        return _drawn(line, look, found=found)

    @property
    def _curves(self) -> list[SeriesView]:
        """The curves that tell when steps were measured, the most precise first."""
        if self.facts is None:
            return []
        run, parts = self._measured
        return [*(parts.values() if run == self.facts.snapshot.run else ()), *self.facts.snapshot.series.values()]

    def ask_for_times(self, lines: Sequence[LogLine]) -> None:
        """Have the steps of these lines looked up if the curves at hand lack a point for some."""
        if self.times is None or self._ask_times is None or self.facts is None:
            return
        missing, snapshot = self.times.untold(lines, self._curves), self.facts.snapshot
        timed = [one for one in snapshot.series.values() if one.axis == "step" and any(map(isfinite, one.times))]
        finest = max(timed, key=lambda one: one.count, default=None)
        if missing is None or finest is None:
            return
        from ...core.runs.window import Window

        (first, last), now = missing, time.monotonic()
        if self._asked_times is not None:
            asked, count, at = self._asked_times
            is_within = asked.left <= first and last <= asked.right and asked.run == snapshot.run
            follows = self.reading is not None and self.reading.following
            if (is_within and count == finest.count) or (follows and now - at < _ASKED_AGAIN_SECONDS):
                return
        around = last - first + 1
        window = Window(snapshot.run, (finest.name,), first - around, last + around)
        self._asked_times = window, finest.count, now
        self._ask_times(snapshot, window)

    def on_window_read(self, found: WindowRead) -> None:
        """Show the times of the lines in view from what was read."""
        self._measured = found.window.run, found.curves
        if not self.known_times:
            self.unknown()
        self.unknown = lambda: None
        self.repaint()

    def _time_of(self, line: LogLine) -> str:
        stamp = self.times.of(line, self._curves) if self.times is not None else None
        return f"{stamp.day:.10} {stamp.clock:>8}".strip() if stamp is not None else ""

    def follow_search(self, found: bool | None, done: Callable[[bool], object]) -> None:
        """Report the result of a search; an unfinished one continues in slices, between keys and frames.

        Args:
            found: what `LogReading.find` returned.
            done: called with whether anything was found, now or later; not called if the search is stopped.
        """
        reading = self.reading
        if found is not None or reading is None:
            done(bool(found))
        else:
            hunt = reading.hunt

            def go_on() -> None:
                if self.reading is reading and reading.hunt is hunt is not None:
                    self.follow_search(reading.search_on(self.page, _SLICE_SECONDS), done)

            self.set_timer(_BREATH_SECONDS, go_on)
        self.count()
        self.repaint()
        if found:
            self.post_message(LogMoved())

    def stop_search(self) -> bool:
        """See :meth:`LogReading.stop_search`."""
        there = self.reading is not None and self.reading.stop_search()
        self.repaint()
        if there:
            self.post_message(LogMoved())
        return there

    def to_line(self, number: int) -> bool:
        """Show a line by its number; return False if it does not exist."""
        shown = self.reading is not None and self.reading.to_line(number, self.page)
        self.repaint()
        return shown

    def to_edge(self, direction: int) -> None:
        if self.reading is not None:
            (self.reading.follow if direction > 0 else self.reading.to_start)()
            self.repaint()
            self.post_message(LogMoved())

    def status(self) -> tuple[Span, ...]:
        if self.reading is None:
            return (Span(self.attempt, "dim"),) if self.attempt else ()
        reading, count = self.reading, self.reading.document.line_count
        if reading.searched_to is not None:
            parts = [f"searching, at {reading.searched_to:.0%} · esc stops"]
        elif reading.selection is not None:
            parts = ["selecting · Y copies"]
        else:
            at = "scrolled" if reading.number is None else f"▶ line {shown.whole(reading.number)}"
            parts = ["following" if reading.following else f"{at} · G follows"]
        parts = [self.attempt, *parts] if self.attempt else parts
        parts += [self.note] if self.note else []
        parts += [f"{reading.level_count} {LEVELS[reading.level][0]}".lstrip()] if reading.level else []
        parts += ["wrapped"] if self.wrapped else [f"from column {self.shift + 1}"] if self.shift else []
        parts += [f"/{clean(reading.pattern, 20)}  {reading.matches}".rstrip()] if reading.pattern else []
        parts += [f"{shown.whole(count)} {'line' if count == 1 else 'lines'}"] if count is not None else []
        return tuple(Span(part if place == 0 else f" · {part}", "dim") for place, part in enumerate(parts))

    def make_room(self, lines: int) -> None:
        """Draw the newest lines above the covered area: this many lines of the window, not counting the footer."""
        covered = max(0, self.region.bottom - (self.screen.size.height - 1 - lines)) if lines else 0
        if covered != self._covered:
            self._covered = covered
            self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        reading = self.reading
        if reading is not None and reading.following:
            height = max(1, height - self._covered)
        over = self.facts is not None and (self.facts.snapshot.is_over or self.facts.snapshot.silent)
        if reading is None:
            return [row((" no output was kept" if over else f" {self.absent}", "dim"))]
        stamped = 0 if self.times is None else _DATED if width >= _WIDE else _CLOCK
        look = Look(width - stamped, self.wrapped, self.shift, reading.pattern)
        reading.rows_of = lambda line: len(self._rows_of(line, look))
        shown = reading.rows(height)
        self._offsets = [line.offset for line, _ in shown]
        if not shown:
            none = "it printed nothing" if over else self.absent
            return [row((f" no {LEVELS[reading.level][0]}" if reading.level else f" {none}", "dim"))]
        drawn = [self._rows_of(line, look)[place] for line, place in shown]
        if not stamped:
            return drawn
        self.ask_for_times([line for line, _ in shown])
        times = [f"{self._time_of(line)[-stamped + 1 :]:>{stamped - 1}} " if not place else "" for line, place in shown]
        return [
            row(Span(time.ljust(stamped), "dim"), *one.spans, base=one.base)
            for time, one in zip(times, drawn, strict=True)
        ]

    def _line_at(self, y: int) -> int | None:
        """Return the offset of the line in a row of the panel."""
        place = y - (1 if self.titled else 0)
        return self._offsets[place] if 0 <= place < len(self._offsets) else None

    def on_mouse_down(self, event: MouseDown) -> None:
        """Note that a selection may begin here; a mere click keeps the current one."""
        self._pressed = self._line_at(event.y)
        if self.reading is not None:
            self.reading.selection = None
            self.repaint()

    def on_mouse_move(self, event: MouseMove) -> None:
        """Select lines while the button is down."""
        here = self._line_at(event.y)
        if event.button and self.reading is not None and self._pressed is not None and here is not None:
            self.reading.select_between(self._pressed, here, self.page)
            self.repaint()

    def on_mouse_scroll_right(self, event: MouseScrollRight) -> None:
        self.sideways(1)

    def on_mouse_scroll_left(self, event: MouseScrollLeft) -> None:
        self.sideways(-1)


@lru_cache(512)
def _drawn(line: LogLine, look: Look, *, found: bool) -> tuple[Row, ...]:
    return log_rows(line, look, found=found)


PANEL = Panel(order=20, help="the output of its program", widget=LogPane, at_left=True)
