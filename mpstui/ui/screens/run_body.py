"""Which arrangement suits a window, and where the panels of a run stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from ..panels import RunPanel, panels
from ..panels.chart import LossChart
from ..panels.log import LogPane
from ..panels.metrics import MetricTable

PANELS = tuple(panels())
"""The panels by name, in their order."""
_LEFT = frozenset(name for name, panel in panels().items() if panel.at_left)
_SMALLEST_CARD = 3
_LEAST_BODY = 7
"""Lines for the panels below a card, and the footer."""


class Shape(StrEnum):
    """How the panels of a run are laid out."""

    TINY = "tiny"
    """One panel at a time."""
    STACKED = "stacked"
    """The chart above, one other panel below."""
    WIDE = "wide"
    """Chart and log at the left, everything else at the right."""


class RunLayout(NamedTuple):
    """Lines for each part of a run's screen."""

    shape: Shape
    header: int
    progress: int
    card: int
    """Lines of the failure card, where there is one."""
    most_card: int
    """Where its remedy would be cut else: the chart gives way."""


def run_layout(width: int, height: int) -> RunLayout:
    """The arrangement of one run."""
    if height < 20:
        lines = 2 if height >= 12 else 1
        card = max(_SMALLEST_CARD, min(5, height - 6))
        return RunLayout(Shape.TINY, lines, 2 * (lines - 1), card, max(card, height - lines - 5))
    shape = Shape.WIDE if width >= 112 and height >= 30 else Shape.STACKED
    return RunLayout(shape, 2, 2, 7 if height < 30 else 10 if height < 36 else 16, height - 4 - _LEAST_BODY)


def visible_panels(shape: Shape, current: str, zoomed: bool) -> frozenset[str]:
    if zoomed or shape is Shape.TINY:
        return frozenset({current})
    return frozenset(PANELS) if shape is Shape.WIDE else frozenset({"chart", current})


def shared(height: int, wishes: Sequence[tuple[int, int]]) -> list[int]:
    """Lines for panels below each other, each of which wishes for so many at first, and for so many in all.

    Small wishes are met whole, great ones share what is left; what nobody can fill goes to the last.
    """
    given = [0] * len(wishes)
    for wanted in zip(*wishes, strict=True):
        order = sorted(range(len(wishes)), key=lambda place: wanted[place] - given[place])
        for done, place in enumerate(order):
            left = max(0, height - sum(given))
            given[place] += max(0, min(wanted[place] - given[place], left // (len(order) - done)))
    given[-1] += max(0, height - sum(given))
    return given


class RunBody(Horizontal):
    """All panels; what has no place is not displayed."""

    def __init__(self, *, blocks: bool) -> None:
        super().__init__(id="body")
        self.in_view: frozenset[str] = frozenset()
        self._current = "log"
        self._panels = {name: panel.widget() for name, panel in panels().items()}
        for number, (name, panel) in enumerate(self._panels.items(), start=1):
            panel.id, panel.titled, panel.number, panel.TITLE = name, True, number, name
        if blocks:
            self.chart.press("blocks")

    def compose(self) -> ComposeResult:
        yield Vertical(*(panel for name, panel in self._panels.items() if name in _LEFT), id="left")
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
        """The panel that the scrolling keys move: the current one where it can scroll, else the log."""
        panel = self._panels[self._current]
        return panel if panel.scrolls else self.log_pane

    @property
    def shows_machine(self) -> bool:
        """Whether a panel is in view that the machine is sampled for."""
        return any(panels()[name].needs_machine for name in self.in_view)

    def take_places(self, shape: Shape, current: str, zoomed: bool) -> None:
        """Give every panel its place, or none."""
        self._current = current
        self.in_view = visible_panels(shape, current, zoomed)
        self.query_one("#left").display = bool(self.in_view & _LEFT)
        self.query_one("#right").display = bool(self.in_view - _LEFT)
        for name, panel in self._panels.items():
            panel.display = name in self.in_view
            panel.current = name == current
            panel.tabs = self._tabs() if name == current else ()
            panel.repaint()
        self.share_right_column()

    def on_resize(self) -> None:
        self.share_right_column()

    def share_right_column(self) -> None:
        """Give each panel there the lines that it can fill, so that none hides something while others are blank."""
        beside = [panel for name, panel in self._panels.items() if name in self.in_view and name not in _LEFT]
        if len(self.in_view) < len(PANELS):
            lines: list[int | None] = [None] * len(beside)
        else:
            height = self.size.height
            if not height:
                return
            first = shared(height, [panel.wishes(height) for panel in beside])
            lines = list(shared(height, [panel.wishes(count) for panel, count in zip(beside, first, strict=True)]))
        for panel, count in zip(beside, lines, strict=True):
            if panel.lines_given != count:
                panel.lines_given = count
                panel.styles.height = count if count is not None else "1fr"

    def _tabs(self) -> tuple[tuple[int, str], ...]:
        """The panels that take turns in the place of the current one."""
        if len(self.in_view) == len(PANELS):
            return ()
        numbered = enumerate(PANELS, start=1)
        return tuple((number, name) for number, name in numbered if name == self._current or name not in self.in_view)
