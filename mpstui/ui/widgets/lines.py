"""The base of every panel: rows go in, and only those that changed are painted again.

Of these, ``ui/painting.py`` writes the cells that differ from what the terminal shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from ..bindings import Key
from ..graphics import Graphics, Picture
from ..rows import EMPTY, Row, Span, cut, row, visible, width_of
from ..theme import palette, pixel_inks, sgr_style

Usable = Callable[[Key], bool]
_NOT_DIM = Style(dim=False)


class LetterTaker:
    """A widget to type in: while it has the focus, letters go to it, whatever keys they are elsewhere."""

    def take(self, character: str) -> None:
        """Put a character in place of the selection, or at the cursor."""
        raise NotImplementedError


class WheelScrolled:
    """A widget that the mouse wheel scrolls."""

    wheel_rows = 3

    def scroll_rows(self, by: int) -> None:
        """Move the view, or the selection, down (or up)."""
        raise NotImplementedError

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.scroll_rows(self.wheel_rows)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.scroll_rows(-self.wheel_rows)


class LinePanel(Widget):
    """A widget made of rows: subclasses give :meth:`rows`; call :meth:`repaint` whenever these may have changed."""

    ALLOW_SELECT = False
    TITLE = ""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._painted: list[Row] = []
        self._palette: dict[str, Style] = {}
        self._is_laid_out = False
        """Whether it is about to be drawn whole."""
        self._is_fresh = False
        """Whether its rows were made for a size that Textual has not told it of yet."""
        self.titled = False
        """Whether the first row is a rule with the panel's name and status."""
        self.number = 0
        """The number key that leads here; 0: none does."""
        self.current = False
        """Whether the scrolling keys scroll it."""
        self.tabs: tuple[tuple[int, str], ...] = ()
        """Panels that take turns in this place, by number and name: the title then names all of them."""

    @property
    def rows_size(self) -> tuple[int, int]:
        """Width and height that :meth:`rows` gets."""
        width, height = self.size
        return width, height - 1 if self.titled else height

    def status(self) -> tuple[Span, ...]:
        """A few words about the panel for its title."""
        return ()

    def take_lines(self, lines: int) -> None:
        """Set its height; with no lines the panel is not displayed."""
        self.display = lines > 0
        self.styles.height = lines

    def rows(self, width: int, height: int) -> list[Row]:
        """What the panel shows at this size; missing rows are blank, extra ones are not seen."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Ask for :meth:`rows` and mark the cells that differ from what is on the screen."""
        if not self.is_mounted or not self.size:
            return
        width, height = self.size
        heading = [self._title_row(width)] if self.titled else []
        fresh = (heading + self.rows(*self.rows_size))[:height]
        fresh += [EMPTY] * (height - len(fresh))
        old, self._painted = self._painted, fresh
        if len(old) != height:
            if not self._is_laid_out:
                self.refresh()
            return
        changed = (y for y, (before, after) in enumerate(zip(old, fresh, strict=True)) if before != after)
        regions = [Region(0, y, width, 1) for y in changed]
        if regions:
            self.refresh(*regions)

    def _title_row(self, width: int) -> Row:
        status, told = list[Span](), 0
        own = sum(len(str(number)) + 1 for number, _ in self.tabs) + width_of(self.TITLE) + 2
        for span in self.status():  # as much as leaves the name a third of the line, where it needs that
            if told + width_of(span.text) > width - 6 - min(own, width // 3):
                break
            status.append(span)
            told += width_of(span.text)
        left = [Span("─ ", "track"), *self._panel_names(width - 4 - (told + 2 if told else 0))]
        right = [Span(" "), *status, Span(" ─", "track")] if status else []
        rule = width - sum(width_of(span.text) for span in (*left, *right))
        return row(*left, Span("─" * max(0, rule), "track"), *right)

    def _panel_names(self, width: int) -> list[Span]:
        """The panel's name, or those of all panels that share its place; in little room only the others' numbers."""
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

    def on_click(self, event: Click) -> None:
        """A panel's name in a title does what its number does; that of the current one gives it the whole screen."""
        if not self.titled or event.y or not self.number:
            return
        number, x = 0, 0
        for span in self._title_row(self.size.width).spans:
            first, x = x, x + width_of(span.text)
            if first <= event.x < x:
                head = span.text.split()[:1]
                number = int(head[0]) if head and head[0].isdigit() else 0
        if number:
            self.app.simulate_key("z" if number == self.number and self.current else str(number))

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        """Take another size: every cell is made again before Textual draws. Otherwise a blank frame and another layout
        would come first: 10 of a start's 260 ms, and 5 kB.
        """
        before = self._size
        changed = super()._size_updated(size, virtual_size, container_size, layout=False)
        if self._size != before:
            self._painted = []
            self._is_laid_out = True
            try:
                self.repaint()
            finally:
                self._is_laid_out = False
            self._is_fresh = bool(self._painted)
        return changed

    def on_resize(self, event: Resize) -> None:
        """Repaint if the size is not new: the panel was mounted after it got its size, or comes back into view."""
        if not self._is_fresh:
            self.repaint()
        self._is_fresh = False

    def notify_style_update(self) -> None:
        """Take another theme: every colour is looked up again."""
        self._palette = {}
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        shown = self._painted[y] if y < len(self._painted) else EMPTY
        ground = self._style(shown.base)
        segments = [Segment(visible(text), self._style_on(ground, role)) for text, role in shown.spans]
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def _style_on(self, ground: Style, role: str) -> Style:
        """A role on a base role; on one drawn in reverse without its colour, which would become the background."""
        own = self._style(role) if role else Style.null()
        return ground + (own.without_color + _NOT_DIM if ground.reverse else own)

    def _style(self, role: str) -> Style:
        """The look of a role: one of the theme, or the SGR codes of a program's own output."""
        found = self._palette.get(role)
        if found is None:
            known, parts = palette(self.app.theme), role.split()
            looks = [sgr_style(part[4:]) if part.startswith("sgr:") else known[part] for part in parts]
            found = self._palette[role] = Style.combine(looks) if looks else self.rich_style
        return found


class PixelPanel(LinePanel):
    """A panel whose curves may be shown in pixels (docs/screen.md, "Charts in pixels").

    Its screen says which pixels the terminal has, what is covered, and asks for :attr:`pictures` with each frame.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.graphics: Graphics | None = None
        """The terminal's way to show pixels."""
        self.covered = False
        """Whether a toast covers a part of it."""
        self._waits = False

    @property
    def in_pixels(self) -> bool:
        """Whether its curves are drawn in pixels: never while something may cover them."""
        if self.graphics is None or self.covered or self.app.screen is not self.screen:
            return False
        return pixel_inks(self.app.theme) is not None

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """What is to be shown in pixels, and where on the screen."""
        raise NotImplementedError

    def make_room(self, lines: int) -> None:
        """So many lines of the window above the footer are covered, where no picture may be."""
        covered = lines > 0 and self.region.bottom > self.screen.size.height - 1 - lines
        if covered != self.covered:
            self.covered = covered
            self.repaint()

    def line_is_busy(self) -> bool:
        """Whether a picture that no key asked for must wait until the connection has had time for the last one.

        The panel is drawn again as soon as it may.
        """
        wait = self.graphics.next - time.monotonic() if self.graphics is not None else 0.0
        if wait > 0 and not self._waits:
            self._waits = True
            self.set_timer(wait, self._draw_late)
        return wait > 0

    def want_frame(self) -> None:
        """Have a frame written, even if no character has changed."""
        self.refresh(Region(0, 0, self.size.width, 1))

    def _draw_late(self) -> None:
        self._waits = False
        self.repaint()


class KeyLine(LinePanel):
    """The footer of a screen. ``usable`` is asked again at every repaint."""

    def __init__(self, keys: Sequence[Key], usable: Usable = lambda key: True) -> None:
        super().__init__()
        self._keys = keys
        self._usable = usable
        self.labels: dict[str, str] = {}
        self.elsewhere: frozenset[str] = frozenset()
        """Keys that a card above shows as well: they are the first to give way if there is no room."""

    def name_keys(self, labels: dict[str, str]) -> None:
        """Names that depend on the run, by action."""
        self.labels = labels
        self.repaint()

    def offer(self, keys: Sequence[Key]) -> None:
        self._keys = keys
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        return [footer(self._keys, width, self._usable, self.labels, self.elsewhere)]

    def on_click(self, event: Click) -> None:
        """A click on a key presses it."""
        end = 1
        for key, label, _ in shown_keys(self._keys, self.size.width, self._usable, self.labels, self.elsewhere):
            end += width_of(key.shown) + width_of(label) + 3
            if event.x < end:
                self.app.simulate_key(key.keys.partition(",")[0])
                return


def footer(
    keys: Sequence[Key],
    width: int,
    usable: Usable,
    labels: dict[str, str] | None = None,
    elsewhere: Collection[str] = (),
) -> Row:
    """As many keys as fit, the most important first. Those that cannot work now are dim and give way to others, as do
    those that are shown ``elsewhere`` on the screen.
    """
    parts: list[Span] = [Span(" ")]
    for key, label, ready in shown_keys(keys, width, usable, labels or {}, elsewhere):
        parts += [Span(key.shown, "key" if ready else "off"), Span(f" {label}  ", "dim" if ready else "off")]
    return row(*parts, base="raised")


def shown_keys(
    keys: Sequence[Key], width: int, usable: Usable, labels: dict[str, str], elsewhere: Collection[str]
) -> list[tuple[Key, str, bool]]:
    """The keys of a footer with their names, and whether they can work now.

    Rare ones, such as those for runs that wait in a queue, are shown only while they can work.
    """
    asked = [(key, labels.get(key.action, key.label), usable(key)) for key in keys]
    named = [one for one in asked if one[2] or not one[0].rare]
    fitting = _fitting(named, width - 2)
    if len(fitting) < len(named):
        return _fitting([one for one in named if one[2] and one[0].shown not in elsewhere], width - 2)
    return fitting


def _fitting(keys: Sequence[tuple[Key, str, bool]], columns: int) -> list[tuple[Key, str, bool]]:
    """Those of the keys that fit, the first ones first."""
    found = []
    for one in keys:
        needed = width_of(one[0].shown) + 1 + width_of(one[1]) + 2
        if needed <= columns + 1:
            found.append(one)
            columns -= needed
    return found
