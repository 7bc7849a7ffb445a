"""The base of every panel: it supplies rows, and only those that changed are painted again.

Of these, ``ui/painting.py`` writes only the cells that differ from what the terminal shows.
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
    """A widget to type in: while it has the focus, it gets letters even if they are keys elsewhere."""

    def take(self, character: str) -> None:
        """Insert a character at the cursor, or replace the selection with it."""
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
    """A widget made of rows: subclasses implement :meth:`rows`; call :meth:`repaint` when these may have changed."""

    ALLOW_SELECT = False
    TITLE = ""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._painted: list[Row] = []
        self._palette: dict[str, Style] = {}
        self._is_laid_out = False
        """True if it is about to be drawn whole."""
        self._is_fresh = False
        """True if its rows were made for a size that Textual has not reported to it yet."""
        self.titled = False
        """True if the first row is a rule with the panel's name and status."""
        self.number = 0
        """The number key that selects it; 0 for none."""
        self.current = False
        """True if the scrolling keys scroll it."""
        self.tabs: tuple[tuple[int, str], ...] = ()
        """Panels that share this place, by number and name: the title then lists all of them."""

    @property
    def rows_size(self) -> tuple[int, int]:
        """Width and height passed to :meth:`rows`."""
        width, height = self.size
        return width, height - 1 if self.titled else height

    def status(self) -> tuple[Span, ...]:
        """Return a few words about the panel for its title."""
        return ()

    def take_lines(self, lines: int) -> None:
        """Set its height; with no lines the panel is not displayed."""
        self.display = lines > 0
        self.styles.height = lines

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the panel's content at this size; missing rows are blank, extra ones are not shown."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Call :meth:`rows` and mark the cells that differ from what is on the screen."""
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
        for span in self.status():  # as much as leaves the name a third of the line, if it needs that
            if told + width_of(span.text) > width - 6 - min(own, width // 3):
                break
            status.append(span)
            told += width_of(span.text)
        left = [Span("─ ", "track"), *self._panel_names(width - 4 - (told + 2 if told else 0))]
        right = [Span(" "), *status, Span(" ─", "track")] if status else []
        rule = width - sum(width_of(span.text) for span in (*left, *right))
        return row(*left, Span("─" * max(0, rule), "track"), *right)

    def _panel_names(self, width: int) -> list[Span]:
        """The panel's name, or those of all panels that share its place; in little room, the others' numbers only."""
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
        """A click on a panel's name works like its number key; on the current panel's, it maximizes that."""
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
        """Apply another size: make every cell again before Textual draws. Otherwise a blank frame and another layout
        would come first, which takes 10 of a start's 260 ms, and 5 kB.
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
        """Repaint even if the size is unchanged: the panel was mounted after it got its size, or is back in view."""
        if not self._is_fresh:
            self.repaint()
        self._is_fresh = False

    def notify_style_update(self) -> None:
        """Apply another theme: every colour is looked up again."""
        self._palette = {}
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        shown = self._painted[y] if y < len(self._painted) else EMPTY
        ground = self._style(shown.base)
        segments = [Segment(visible(text), self._style_on(ground, role)) for text, role in shown.spans]
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def _style_on(self, ground: Style, role: str) -> Style:
        """Combine a role with a base role; on a reversed base without its colour, which would become the background."""
        own = self._style(role) if role else Style.null()
        return ground + (own.without_color + _NOT_DIM if ground.reverse else own)

    def _style(self, role: str) -> Style:
        """Return the style of a role: one of the theme, or the SGR codes of a program's own output."""
        found = self._palette.get(role)
        if found is None:
            known, parts = palette(self.app.theme), role.split()
            looks = [sgr_style(part[4:]) if part.startswith("sgr:") else known[part] for part in parts]
            found = self._palette[role] = Style.combine(looks) if looks else self.rich_style
        return found


class PixelPanel(LinePanel):
    """A panel whose curves may be shown in pixels (docs/screen.md, "Charts in pixels").

    Its screen tells it how the terminal shows pixels and what is covered, and reads :attr:`pictures` for each frame.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.graphics: Graphics | None = None
        """How the terminal shows pixels, if it can."""
        self.covered = False
        """True if a toast covers part of it."""
        self._waits = False

    @property
    def in_pixels(self) -> bool:
        """True if its curves are drawn in pixels: never while something may cover them."""
        if self.graphics is None or self.covered or self.app.screen is not self.screen:
            return False
        return pixel_inks(self.app.theme) is not None

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """What to show in pixels, and where on the screen."""
        raise NotImplementedError

    def make_room(self, lines: int) -> None:
        """Note that this many lines of the window above the footer are covered: no picture may be there."""
        covered = lines > 0 and self.region.bottom > self.screen.size.height - 1 - lines
        if covered != self.covered:
            self.covered = covered
            self.repaint()

    def line_is_busy(self) -> bool:
        """True if a picture that no key asked for must wait until the connection has had time for the last one.

        The panel is redrawn as soon as the wait is over.
        """
        wait = self.graphics.next - time.monotonic() if self.graphics is not None else 0.0
        if wait > 0 and not self._waits:
            self._waits = True
            self.set_timer(wait, self._draw_late)
        return wait > 0

    def want_frame(self) -> None:
        """Have a frame written even if no character has changed."""
        self.refresh(Region(0, 0, self.size.width, 1))

    def _draw_late(self) -> None:
        self._waits = False
        self.repaint()


class KeyLine(LinePanel):
    """The footer of a screen. ``usable`` is evaluated at every repaint."""

    def __init__(self, keys: Sequence[Key], usable: Usable = lambda key: True) -> None:
        super().__init__()
        self._keys = keys
        self._usable = usable
        self.labels: dict[str, str] = {}
        self.elsewhere: frozenset[str] = frozenset()
        """Keys that a card above shows as well: they are the first to be dropped if there is no room."""

    def name_keys(self, labels: dict[str, str]) -> None:
        """Set the names that depend on the run, by action."""
        self.labels = labels
        self.repaint()

    def offer(self, keys: Sequence[Key]) -> None:
        self._keys = keys
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        return [footer(self._keys, width, self._usable, self.labels, self.elsewhere)]

    def on_click(self, event: Click) -> None:
        """Press the clicked key."""
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
    """Return as many keys as fit, the most important first. Keys that cannot work now are dim and make room for others,
    as do those that are shown ``elsewhere`` on the screen.
    """
    parts: list[Span] = [Span(" ")]
    for key, label, ready in shown_keys(keys, width, usable, labels or {}, elsewhere):
        parts += [Span(key.shown, "key" if ready else "off"), Span(f" {label}  ", "dim" if ready else "off")]
    return row(*parts, base="raised")


def shown_keys(
    keys: Sequence[Key], width: int, usable: Usable, labels: dict[str, str], elsewhere: Collection[str]
) -> list[tuple[Key, str, bool]]:
    """Return the keys of a footer with their names, and whether they can work now.

    Rare ones, such as those for queued runs, are shown only while they can work.
    """
    asked = [(key, labels.get(key.action, key.label), usable(key)) for key in keys]
    named = [one for one in asked if one[2] or not one[0].rare]
    fitting = _fitting(named, width - 2)
    if len(fitting) < len(named):
        return _fitting([one for one in named if one[2] and one[0].shown not in elsewhere], width - 2)
    return fitting


def _fitting(keys: Sequence[tuple[Key, str, bool]], columns: int) -> list[tuple[Key, str, bool]]:
    """Return the keys that fit, giving precedence to the first ones."""
    found = []
    for one in keys:
        needed = width_of(one[0].shown) + 1 + width_of(one[1]) + 2
        if needed <= columns + 1:
            found.append(one)
            columns -= needed
    return found
