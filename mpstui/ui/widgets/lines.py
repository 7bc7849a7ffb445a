"""The base of every panel: rows in, and only the cells that changed are painted again.

Textual repaints whole widgets; over SSH that costs thirty times the bytes of what really changed. A panel here keeps
the rows it has painted, compares, and marks the cells that differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ..rows import EMPTY, Row, Span, cut, row, width_of
from ..sgr import sgr_style
from ..theme import palette

_GAP = 8
"""Cells that are cheaper to paint again than to jump over (a cursor movement and a colour)."""


class LinePanel(Widget):
    """A widget made of rows: subclasses give :meth:`rows`; who changes what they depend on calls :meth:`repaint`."""

    ALLOW_SELECT = False
    TITLE = ""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._painted: list[Row] = []
        self._palette: dict[str, Style] = {}
        self.titled = False
        """Whether the first row is a rule with the panel's name and status."""
        self.number = 0
        """The key that leads here, 0 for none."""
        self.current = False
        """Whether scrolling keys go here."""
        self.tabs: tuple[tuple[int, str], ...] = ()
        """Panels that share this place, by number and name: the title then names all of them."""

    @property
    def room(self) -> tuple[int, int]:
        """Width and height that :meth:`rows` gets."""
        width, height = self.size
        return width, height - 1 if self.titled else height

    def status(self) -> tuple[Span, ...]:
        """A few words about the panel for its title."""
        return ()

    def rows(self, width: int, height: int) -> list[Row]:
        """What the panel shows at this size; missing rows are blank, surplus ones are not seen."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Ask for :meth:`rows` and mark the cells that differ from what is on the screen."""
        if not self.is_mounted or not self.size:
            return
        width, height = self.size
        heading = [self._title_row(width)] if self.titled else []
        fresh = (heading + self.rows(*self.room))[:height]
        fresh += [EMPTY] * (height - len(fresh))
        old, self._painted = self._painted, fresh
        if len(old) != height:
            self.refresh()
            return
        regions = [
            Region(start + self.gutter.left, y + self.gutter.top, end - start, 1)
            for y, (before, after) in enumerate(zip(old, fresh, strict=True))
            if before != after
            for start, end in changed_cells(before, after, width)
        ]
        if regions:
            self.refresh(*regions)

    def _title_row(self, width: int) -> Row:
        left = [Span("─ ", "track"), *self._panel_names(width - 4)]
        taken = sum(width_of(span.text) for span in left)
        status = _as_many_as_fit(self.status(), width - taken - 4)
        right = [Span(" "), *status, Span(" ─", "track")] if status else []
        rule = width - taken - sum(width_of(span.text) for span in right)
        return row(*left, Span("─" * max(0, rule), "track"), *right)

    def _panel_names(self, width: int) -> list[Span]:
        """The panel's own name, or those of all that share its place; where it is tight, the others' numbers alone."""
        if not self.tabs:
            name = f"{self.number} {self.TITLE}" if self.number else self.TITLE
            return [Span(cut(name, width), "key" if self.current else "dim"), Span(" ")]
        full = sum(width_of(name) + 4 for _, name in self.tabs) <= width
        names: list[Span] = []
        for number, name in self.tabs:
            here = number == self.number
            shown = f"{number} {name}" if full or here else str(number)
            names += [Span(shown, "key strong" if here else "dim"), Span("  " if full else " ")]
        return names

    def on_resize(self, event: Resize) -> None:
        """A new size is a new picture."""
        self._painted = []
        self.repaint()

    def notify_style_update(self) -> None:
        """Another theme: every colour is looked up anew."""
        self._palette = {}
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """One painted row as styled cells."""
        shown = self._painted[y] if y < len(self._painted) else EMPTY
        ground = self._style(shown.base)
        segments = [Segment(text, ground + self._style(role) if role else ground) for text, role in shown.spans]
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def _style(self, role: str) -> Style:
        found = self._palette.get(role)
        if found is None:
            found = self.rich_style if not role else self._role_style(role)
            self._palette[role] = found
        return found

    def _role_style(self, role: str) -> Style:
        known = palette(self.app.theme)
        return Style.combine([sgr_style(part[4:]) if part.startswith("sgr:") else known[part] for part in role.split()])


def _as_many_as_fit(spans: tuple[Span, ...], width: int) -> list[Span]:
    kept: list[Span] = []
    for span in spans:
        width -= width_of(span.text)
        if width < 0:
            break
        kept.append(span)
    return kept


def changed_cells(before: Row, after: Row, width: int) -> Iterator[tuple[int, int]]:
    """Ranges of cells ``[start, end)`` that differ; ranges a few cells apart are joined."""
    if before.base != after.base:
        yield 0, width
        return
    old, new = _cells(before, width), _cells(after, width)
    start = end = -1
    for x in range(width):
        if old[x] == new[x]:
            continue
        if start >= 0 and x - end > _GAP:
            yield start, end
            start = x
        elif start < 0:
            start = x
        end = x + 1
    if start >= 0:
        yield start, end


def _cells(shown: Row, width: int) -> list[tuple[str, str]]:
    """Character and role of every cell. The second half of a wide character is a cell of its own kind: no range of
    differing cells then begins or ends inside one."""
    cells: list[tuple[str, str]] = []
    for text, role in shown.spans:
        if text.isascii() or width_of(text) == len(text):
            cells += [(character, role) for character in text]
        else:
            for character in text:
                cells += [(character, role), (character, f"{role} second half")][: width_of(character)]
        if len(cells) >= width:
            break
    cells += [(" ", "")] * (width - len(cells))
    return cells[:width]
