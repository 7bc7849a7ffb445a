"""The panels of a run's screen: every module of this package declares one, named after the module::

    PANEL = Panel(order=60, help="what happened to the run, newest first", widget=lambda: ListPanel(event_rows))

Its place on the screen, its number key, its turn with the tab key and its line on the help page follow from this.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot
from ..rows import Row, Span, row
from ..widgets.lines import LinePanel, WheelScrolled

if TYPE_CHECKING:
    from ...core.runs.ghost import Ghost
    from ...core.settings import EnergySettings
    from ...core.telemetry.model import Stretch, SystemSample, TreeSample
    from ...core.telemetry.run_telemetry import RunTelemetry
    from ...wire.records import Ack


@dataclass(frozen=True, slots=True)
class Moment:
    """A past moment of a run that its panels show."""

    step: float
    time: float | None
    """Unix seconds; None if unknown."""
    leader: Literal["chart", "log"]
    """The panel that chose the moment; the others follow."""

    def words(self, now: float) -> str:
        """``step 12,345 · 11:42:10``."""
        time = shown.moment_of_day(self.time, now) if self.time is not None else "time unknown"
        return f"step {shown.whole(self.step)} · {time}"


@dataclass(frozen=True, eq=False, kw_only=True)
class RunFacts:
    """Everything that a run's screen is drawn from."""

    snapshot: RunSnapshot
    warning: str = ""
    """The most serious of the problems it has now."""
    slow: tuple[Stretch, ...] = ()
    """Steps in which the training was slower than before."""
    system: SystemSample | None = None
    """The machine; like ``tree``, sampled only while a panel in view needs it."""
    past: tuple[SystemSample, ...] = ()
    """The machine during the last minute."""
    tree: TreeSample | None = None
    """The run's processes."""
    telemetry: RunTelemetry | None = None
    """The run's telemetry over time."""
    cleared: Ack | None = None
    """The newest answer to "clear cache"."""
    prices: EnergySettings | None = None
    ghost: Ghost | None = None
    """The best earlier run like it, while it is running."""
    moment: Moment | None = None
    """The moment that all panels show; None: now."""

    @property
    def hour(self) -> float:
        """The current hour: texts about moments change no more often."""
        return self.snapshot.seen // 3600

    @property
    def beats(self) -> bool:
        """True if its trainer sends heartbeats."""
        return self.snapshot.numbers.beat is not None


class RunPanel(LinePanel):
    """A part of a run's screen, drawn from the latest facts it was given."""

    facts: RunFacts | None = None
    scrolls = False
    """True if the scrolling keys scroll it."""
    drawn_from: tuple[str, ...] | None = None
    """The fields of the facts that it depends on, so that not every heartbeat redraws it; None for all."""

    def wishes(self, most: int) -> tuple[int, int]:
        """Return the lines it needs, including its title, and the lines it could fill if given up to ``most``."""
        return 2, 2

    def show(self, facts: RunFacts) -> None:
        """Draw new facts; a hidden panel draws them when it comes into view."""
        before, self.facts = self.facts, facts
        if self.display:
            names = self.drawn_from if before is not None else None
            if names is None or any(attrgetter(name)(before) != attrgetter(name)(facts) for name in names):
                self.repaint()

    def scroll_rows(self, by: int) -> None:
        """Move the view down (or up)."""

    def to_edge(self, direction: int) -> None:
        """Move the view to the first or the last line."""


_MODEST_LINES = 7
"""Lines that a list asks for while the other panels of its column lack some."""
RowsOf = Callable[[RunFacts, int], list[Row]]
"""Turns the facts into all lines of a panel, given its width in cells."""


class ListPanel(WheelScrolled, RunPanel):
    """A panel of rows that can be scrolled."""

    scrolls = True

    def __init__(self, rows_of: RowsOf, drawn_from: tuple[str, ...] | None = None, heading_rows: int = 0) -> None:
        """``heading_rows``: how many of the first rows stay in place when the others are scrolled."""
        super().__init__()
        self.drawn_from = drawn_from
        self.rows_of = rows_of
        self._heading_rows = heading_rows
        self._top = 0
        self._lines: list[Row] = []

    def scroll_rows(self, by: int) -> None:
        self._top += by
        self.repaint()

    def to_edge(self, direction: int) -> None:
        self._top = 0 if direction < 0 else len(self._lines)
        self.repaint()

    def wishes(self, most: int) -> tuple[int, int]:
        lines = max(1, len(self._lines)) + 1
        return min(_MODEST_LINES, lines), lines

    def repaint(self) -> None:
        """Draw the lines first, then the title, as it says how many do not fit."""
        width, height = self.rows_size
        self._lines = self.rows_of(self.facts, width) if self.facts and width > 0 else []
        self._top = max(0, min(self._top, len(self._lines) - height))
        super().repaint()

    def status(self) -> tuple[Span, ...]:
        hidden = len(self._lines) - self._top - self.rows_size[1]
        return (Span(f"… {hidden} more", "dim"),) if hidden > 0 else ()

    def rows(self, width: int, height: int) -> list[Row]:
        fixed = self._lines[: self._heading_rows]
        return fixed + self._lines[self._heading_rows + self._top :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel, as declared by a module of this package."""

    order: int
    """Determines its number key and its turn with the tab key."""
    help: str
    """Its line on the help page."""
    widget: Callable[[], RunPanel]
    at_left: bool = False
    """True if a wide window shows it at the left, like chart and log, instead of in the right column."""
    needs_machine: bool = False
    """True if the machine must be sampled while it is in view."""


@cache
def panels() -> Mapping[str, Panel]:
    """Return all panels by name, in order."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    found: dict[str, Panel] = {name: import_module(f"{__name__}.{name}").PANEL for name in names}
    return dict(sorted(found.items(), key=lambda item: item[1].order))


def nothing_yet(why: str, *, unread: bool) -> Row:
    """Return the single row of an empty list. ``unread``: there may be entries not yet in this snapshot."""
    return row((" being read …" if unread else f" {why}", "dim"))


def at_moment(facts: RunFacts, word: str = "at") -> list[Row]:
    """Return a row that says which past moment a panel shows; none if it shows the present."""
    moment = facts.moment
    return [row((f" {word} {moment.words(facts.snapshot.seen)}", "key"))] if moment is not None else []


def moments(times: Iterable[float], now: float) -> list[str]:
    """Format moments as texts of equal width."""
    texts = [shown.moment_of_day(time, now) for time in times]
    longest = max(map(len, texts), default=0)
    return [text.ljust(longest + 2) for text in texts]
