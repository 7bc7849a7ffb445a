"""How the panels of a run are arranged in a window of a given size."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.widget import Widget

from ..panels import RunPanel, panels
from ..panels.chart import LossChart
from ..panels.log import LogPane
from ..panels.metrics import MetricTable
from ..rows import Row
from ..widgets.run_header import header, progress

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot

PANELS = tuple(panels())
"""The panels by name, in their order."""
_LEFT = frozenset(name for name, panel in panels().items() if panel.at_left)
_SMALLEST_CARD = 3
_LEAST_BODY = 7
"""Least lines for the panels below a card, and the footer."""
_NOTHING_TO_READ = 2
"""Lines of a log that only says why there is none: the chart gets the rest."""
_LEAST_RIGHT, _MOST_RIGHT = 50, 84
"""Columns of the right part of a wide window, which takes two fifths of it."""


class RunHeader(RunPanel):
    """Two lines: name and state, then the facts or what is going wrong."""

    def rows(self, width: int, height: int) -> list[Row]:
        if self.facts is None:
            return []
        facts = self.facts
        return header(facts.snapshot, width, facts.snapshot.seen, facts.warning, facts.past)


class Progress(RunPanel):
    """Two progress bars with aligned columns, epoch and total; or one line for both (:func:`progress`)."""

    needed = 1
    """Number of lines: a run that once reported its epoch keeps the second one, so that nothing jumps."""

    def grew(self, snapshot: RunSnapshot) -> bool:
        """Return True if it needs more lines than ever before."""
        before, self.needed = self.needed, max(self.needed, len(progress(snapshot, self.app.size.width)))
        return self.needed > before

    def rows(self, width: int, height: int) -> list[Row]:
        return progress(self.facts.snapshot, width, height) if self.facts else []


class Shape(StrEnum):
    """How the panels of a run are laid out."""

    TINY = "tiny"
    """One panel at a time."""
    STACKED = "stacked"
    """The chart above, one other panel below."""
    WIDE = "wide"
    """Chart and log at the left, everything else at the right; if that is little, the log goes below both."""


class RunLayout(NamedTuple):
    """Lines for each part of a run's screen."""

    shape: Shape
    header: int
    progress: int
    card: int
    """Lines of the failure card, if there is one."""
    most_card: int
    """Lines of the card if its remedy would be cut otherwise, at the chart's expense."""


def run_layout(width: int, height: int) -> RunLayout:
    """Return the arrangement for a window size."""
    if height < 20:
        lines = 2 if height >= 12 else 1
        card = max(_SMALLEST_CARD, min(5, height - 6))
        return RunLayout(Shape.TINY, lines, 2 * (lines - 1), card, max(card, height - lines - 5))
    shape = Shape.WIDE if width >= 112 and height >= 30 else Shape.STACKED
    return RunLayout(shape, 2, 2, 7 if height < 30 else 10 if height < 36 else 16, height - 4 - _LEAST_BODY)


def visible_panels(shape: Shape, current: str, zoomed: bool) -> frozenset[str]:
    """Return the panels that are shown together."""
    if zoomed or shape is Shape.TINY:
        return frozenset({current})
    return frozenset(PANELS) if shape is Shape.WIDE else frozenset({"chart", current})


def shared(height: int, wishes: Sequence[tuple[int, int]]) -> list[int]:
    """Divide lines between stacked panels, each with a minimum and a total that it wishes for.

    Small wishes are granted in full, large ones share the rest; lines that no panel can fill go to the last one.
    """
    given = [0] * len(wishes)
    for wanted in zip(*wishes, strict=True):
        order = sorted(range(len(wishes)), key=lambda place: wanted[place] - given[place])
        for done, place in enumerate(order):
            left = max(0, height - sum(given))
            given[place] += max(0, min(wanted[place] - given[place], left // (len(order) - done)))
    given[-1] += max(0, height - sum(given))
    return given


class RunBody(Container):
    """All panels; those without a place are not displayed."""

    def __init__(self, *, blocks: bool) -> None:
        super().__init__(id="body")
        self.in_view: frozenset[str] = frozenset()
        self._current = "log"
        self._height = self._tall = 0
        """Lines of the whole body, and of the right part."""
        self._panels = {name: panel.widget() for name, panel in panels().items()}
        for number, (name, panel) in enumerate(self._panels.items(), start=1):
            panel.id, panel.titled, panel.number, panel.TITLE = name, True, number, name
        if blocks:
            self.chart.press("blocks")

    def compose(self) -> ComposeResult:
        yield from (panel for name, panel in self._panels.items() if name in _LEFT)
        yield Vertical(*(panel for name, panel in self._panels.items() if name not in _LEFT), id="right")

    @property
    def chart(self) -> LossChart:
        found = self._panels["chart"]
        assert isinstance(found, LossChart)
        return found

    @property
    def log_pane(self) -> LogPane:
        found = self._panels["log"]
        assert isinstance(found, LogPane)
        return found

    @property
    def metrics(self) -> MetricTable:
        found = self._panels["metrics"]
        assert isinstance(found, MetricTable)
        return found

    @property
    def scrolling(self) -> RunPanel:
        """The panel that the scrolling keys move: the current one if it scrolls, otherwise the log."""
        panel = self._panels[self._current]
        return panel if panel.scrolls else self.log_pane

    @property
    def shows_machine(self) -> bool:
        """True if a panel in view needs the machine to be sampled."""
        return any(panels()[name].needs_machine for name in self.in_view)

    def take_places(self, shape: Shape, current: str, zoomed: bool) -> None:
        """Give every panel its place, or hide it."""
        self._current = current
        self.in_view = visible_panels(shape, current, zoomed)
        self.query_one("#right").display = bool(self.in_view - _LEFT)
        for name, panel in self._panels.items():
            panel.display = name in self.in_view
            panel.current = name == current
            panel.tabs = self._tabs() if name == current else ()
            panel.repaint()
        self.share_lines()

    def on_resize(self) -> None:
        self.share_lines()

    def share_lines(self) -> None:
        """Give each panel the lines that it can fill, so that none hides content while others are blank.

        If the right panels leave lines over, the log takes the whole width below them and the chart, unless it would
        lose more than a quarter of its lines by that. Nothing moves while the panels show a past moment.
        """
        beside = [panel for name, panel in self._panels.items() if name in self.in_view and name not in _LEFT]
        right, log = self.query_one("#right"), self.log_pane
        silent = log.reading is None and log.facts is not None and not log.facts.snapshot.state.active
        if len(self.in_view) < len(PANELS):
            lines: list[int | None] = [None] * len(beside)
            said = _NOTHING_TO_READ if silent and len(self.in_view) > 1 else None
            sizes: list[tuple[Widget, int | None, int | None]] = [(right, None, None), (log, None, said)]
        else:
            width, height = self.size
            if not height:
                return
            first = shared(height, [panel.wishes(height) for panel in beside])
            wishes = [panel.wishes(count) for panel, count in zip(beside, first, strict=True)]
            columns = max(_LEAST_RIGHT, min(_MOST_RIGHT, width * 2 // 5))
            usual = _NOTHING_TO_READ if silent else height - height * 11 // 20
            if height != self._height or self.chart.facts is None or self.chart.facts.moment is None:
                self._height = height
                filled = sum(whole for _, whole in wishes)
                self._tall = filled if height - filled >= usual * 3 // 4 and not silent else height
            lines = list(shared(self._tall, wishes))
            below = height - self._tall
            sizes = [(right, columns, self._tall)]
            sizes.append((log, width, below) if below else (log, width - columns - 1, usual))
        sizes += [(panel, None, count) for panel, count in zip(beside, lines, strict=True)]
        for widget, across, high in sizes:
            widget.styles.width = across if across is not None else "1fr"
            widget.styles.height = high if high is not None else "1fr"

    def _tabs(self) -> tuple[tuple[int, str], ...]:
        """The panels that share the place of the current one."""
        if len(self.in_view) == len(PANELS):
            return ()
        numbered = enumerate(PANELS, start=1)
        return tuple((number, name) for number, name in numbered if name == self._current or name not in self.in_view)
