"""The images and texts that a run has logged, one at a time: in half blocks, in pixels, or as text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.geometry import Region
from textual.strip import Strip

from ...core import present as shown
from ...core.runs.gallery import Item
from ...core.runs.logged import Seen, Shelf, Wanted
from ..graphics import Graphics, Picture, Raster
from ..rows import EMPTY, Row, Span, clean, cut, fit, row, width_of
from ..theme import pixel_inks
from .image_cells import fitting, half_blocks, image_raster
from .image_words import Places, caption, measured, places, slider, words_of
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..messages import ImageRead

_LEAST_FOR_COUNTS = 50
"""From this width on, the title shows their number."""
_MOST_PIXELS, _MOST_PIXELS_REMOTE = 300_000, 60_000
"""Most pixels of a picture; each takes up to a byte on the way to the terminal."""
_SIXEL_SHARE = 4
"""A sixel pixel takes up to six bytes and 2.5 µs: a picture of noise took 0.74 s and 1 MB, now 0.28 and 0.4."""
_LONGEST_WAIT, _LONGEST_WAIT_REMOTE = 1.0, 10.0
"""Longest wait, for a picture that no key asked for, until the connection has had time for the last one."""


class ImageView(LinePanel):
    """Requests the wanted image, and shows the one that arrived last."""

    TITLE = "images"

    def __init__(self, ask: Callable[[Wanted], object], step: float | None, *, remote: bool = False) -> None:
        """``ask`` has an image read, which arrives as a message; ``step``: where to start, None: at the newest."""
        super().__init__()
        self._most = _MOST_PIXELS_REMOTE if remote else _MOST_PIXELS
        self._longest_wait = _LONGEST_WAIT_REMOTE if remote else _LONGEST_WAIT
        self.graphics: Graphics | None = None
        """How the terminal shows pixels, if it can."""
        self._covered = False
        self._raster: Raster | None = None
        self._box = 0, 0
        """The size that the image in view was drawn for."""
        self.titled = self.current = True
        self.wanted = Wanted(step=step)
        self._trouble = ""
        self.pattern = ""
        """Only names and texts that match this are shown."""
        self._top = 0
        """The first visible line of a text."""
        self.seen: Seen | None = None
        self.moved = False
        """True if the user has moved on from the image shown first."""
        self._ask = ask
        self._asked: Wanted | None = None
        self._later: list[Callable[[], None]] = []
        """Keys that apply to the image that is on its way."""
        self._snapshot: RunSnapshot | None = None
        self._cells: list[Strip] = []
        """The image, one strip for each line of the screen."""
        self._at = Region()
        """Its place on the screen, below the title."""

    # -- what it shows

    @property
    def follows(self) -> bool:
        """True if it shows the newest image, and each new one as it arrives."""
        return self.wanted.after is None and self.wanted.step is None

    @property
    def step(self) -> float | None:
        """The step of the image in view; None if unknown."""
        item = self._item
        return float(item.step) if item is not None and item.step is not None else None

    @property
    def place(self) -> int:
        """Index of the wanted image among those of its name, as of the last read."""
        seen = self.seen
        if seen is None:
            return 0
        by = self.wanted.by if seen.item is not None and self.wanted.after == seen.item.number else 0
        return self._count - 1 if self.follows else max(0, min(self._count - 1, seen.place + by))

    @property
    def _count(self) -> int:
        item = self._item
        return next((one.size for one in self._shelves if item is not None and _is_on(item, one)), 0)

    @property
    def _item(self) -> Item | None:
        return self.seen.item if self.seen is not None else None

    @property
    def _shelves(self) -> tuple[Shelf, ...]:
        return self.seen.shelves if self.seen is not None else ()

    def show(self, snapshot: RunSnapshot) -> None:
        """Draw what is known now, and request what has been logged since."""
        before, self._snapshot = self._snapshot, snapshot
        if before is None or shown.newest_logged(before) != shown.newest_logged(snapshot):
            wait = min(self.graphics.next - time.monotonic(), self._longest_wait) if self.graphics is not None else 0.0
            if wait > 0:
                self.set_timer(wait, self._ask_again)
            else:
                self._asked = None
        self.repaint()

    def _ask_again(self) -> None:
        self._asked = None
        self.repaint()

    def take(self, message: ImageRead) -> None:
        """Show an image that was read; keys pressed meanwhile are relative to it."""
        self._trouble = clean(message.trouble)
        if message.trouble:  # keep the current image; the next snapshot asks again
            super().repaint()
            self._asked = None
            return
        self.seen, wanted, asked = message.seen, self.wanted, message.wanted
        self._box = asked.box
        item, self._top = self.seen.item, 0
        if item is not None and wanted == asked._replace(by=wanted.by, box=wanted.box, ground=wanted.ground):
            by = wanted.by - asked.by
            named = Wanted(item.name, item.text is not None, pattern=self.pattern)
            self.wanted = named if self.follows else named._replace(after=item.number, by=by)
            self._asked = self._to_ask() if not by else None
        self.redraw()
        while self._later and not self._waits:
            self._later.pop(0)()

    @property
    def _is_of_another_name(self) -> bool:
        """True if the image on its way has another name than the one in view."""
        item, wanted = self._item, self.wanted
        return item is not None and wanted.name != "" and not _is_on(item, Shelf(wanted.name, 0, wanted.is_text))

    @property
    def _waits(self) -> bool:
        """True if another image is wanted than the one in view."""
        return self.seen is not None and (self.place != self.seen.place or self._is_of_another_name)

    def _to_ask(self) -> Wanted:
        """Return the request for the wanted image, as large as fits."""
        inks, picture = pixel_inks(self.app.theme), self._places.picture
        if inks is None:
            return self.wanted
        box = picture.width, 2 * picture.height
        if self.graphics is not None and self._in_pixels:
            box = picture.width * self.graphics.cell.width, picture.height * self.graphics.cell.height
            most = self._most // (_SIXEL_SHARE if self.graphics.kind == "sixel" else 1)
            share = min(1.0, (most / max(1, box[0] * box[1])) ** 0.5)
            box = int(box[0] * share), int(box[1] * share)
        return self.wanted._replace(box=box, ground=inks["ground"])

    @property
    def _places(self) -> Places:
        return places(*self.rows_size, self._shelves)

    def repaint(self) -> None:
        if not self.is_mounted or not self.size:
            return
        wanted = self._to_ask()
        if wanted != self._asked and self._snapshot is not None:
            self._asked = wanted
            self._ask(wanted)
        super().repaint()

    def notify_style_update(self) -> None:
        """Apply a new theme, as its background differs."""
        self._asked = None
        super().notify_style_update()

    @property
    def _in_pixels(self) -> bool:
        """True if it is shown in pixels: never while something may cover it."""
        return self.graphics is not None and not self._covered and self.app.screen is self.screen

    def make_room(self, lines: int) -> None:
        """Note that this many lines of the window above the footer are covered."""
        if self._covered != (lines > 0):
            self._covered = lines > 0
            self.redraw()

    def redraw(self) -> None:
        """Draw in pixels or in characters, whichever applies now."""
        self._draw()
        self.repaint()

    @property
    def picture(self) -> Picture | None:
        """The picture, and its place on the screen."""
        if self._raster is None or not self._in_pixels:
            return None
        return Picture(self._at.translate((self.content_region.x, self.content_region.y + 1)), self._raster)

    def _draw(self) -> None:
        """Turn the pixels into cells or into a picture, centred in the available area."""
        before, area = self._at, self._places.picture
        pixels = self.seen.pixels if self.seen is not None else None
        self._cells, self._at, self._raster = [], Region(), None
        inks = pixel_inks(self.app.theme)
        if pixels is not None and inks is not None and area.width and area.height:
            if self.graphics is not None and self._in_pixels and self._box == self._to_ask().box:
                cell = self.graphics.cell
                by = min(area.width * cell.width // pixels.width, area.height * cell.height // pixels.height)
                self._raster = image_raster(pixels, max(1, by), cell, inks["ground"])
                across, down = len(self._raster.columns) // cell.width, self._raster.height // cell.height
            if self._raster is None or across > area.width or down > area.height:
                self._raster = None
                pixels = fitting(pixels, area.width, 2 * area.height)
                by = max(1, min(area.width // pixels.width, 2 * area.height // pixels.height))
                self._cells = half_blocks(pixels, by, self.rich_style)[: area.height]
                across, down = min(area.width, pixels.width * by), len(self._cells)
            at = area.x + (area.width - across) // 2, area.y + (area.height - down) // 2
            self._at = Region(*at, across, down)
        for region in filter(None, (before, self._at)):
            self.refresh(region.translate((0, 1)))

    def render_line(self, y: int) -> Strip:
        line, place = super().render_line(y), y - 1 - self._at.y
        if not 0 <= place < len(self._cells):
            return line
        left, right, width = self._at.x, self._at.right, self.size.width
        picture = self._cells[place].crop(0, self._at.width)
        return Strip.join([line.crop(0, left), picture, line.crop(min(right, width), width)])

    def status(self) -> tuple[Span, ...]:
        kinds = (
            (sum(one.size for one in self._shelves if one.is_text is of), word)
            for of, word in ((False, "image"), (True, "text"))
        )
        told = " · ".join(f"{shown.whole(count)} {word}{'s' * (count != 1)}" for count, word in kinds if count)
        found = (Span(f"/{clean(self.pattern, 20)}  ", "match"),) if self.pattern else ()
        return (*found, *((Span(told, "dim"),) if self.size.width >= _LEAST_FOR_COUNTS else ()))

    def rows(self, width: int, height: int) -> list[Row]:
        seen, snapshot = self.seen, self._snapshot
        if seen is None or snapshot is None:
            return [row((f" {self._trouble}", "warn") if self._trouble else (" reading …", "dim"))]
        if seen.item is None:
            return [row(f" {clean(seen.why_not)}")]
        at = places(width, height, seen.shelves)
        names = list(self._names(at.names, at.picture.height))
        drawn = bool(self._cells) or self._raster is not None
        words = [] if drawn else words_of(snapshot, seen, seen.item, at.picture.width, self.pattern)
        self._top = max(0, min(self._top, len(words) - at.picture.height))
        words = words[self._top :]
        lines = []
        for y in range(at.picture.height):
            beside = names[y] if y < len(names) else row((" " * at.names, ""))
            edge = (Span("│", "track"),) if at.names else ()
            lines.append(row(*beside.spans, *edge, *(words[y].spans if y < len(words) else ())))
        lines.append(self._slider(width))
        if at.caption:
            lines.append(caption(snapshot, seen, seen.item, width, waits=self._waits))
        if at.metrics and self._trouble:
            lines.append(row((cut(f" {self._trouble}", width), "warn")))
        elif at.metrics:
            lines.append(measured(snapshot, self.step, width) if self.step is not None else EMPTY)
        return lines

    def _slider(self, width: int) -> Row:
        return slider(self.place, self._count, width, follows=self.follows)

    def _names(self, width: int, height: int) -> Iterator[Row]:
        """The list of names at the left, scrolled to show the chosen one."""
        shelves, here = self._shelves, self._shelf_at
        if not width:
            return
        first = max(0, min(here - height // 2, len(shelves) - height))
        for place, shelf in enumerate(shelves[first : first + height], first):
            name = f"{'¶ ' * shelf.is_text}{clean(shelf.name)}"
            text = f"{'▌' if place == here else ' '}{fit(name, width - len(str(shelf.size)) - 3)} {shelf.size} "
            yield row((fit(text, width), "selected" if place == here else ""))

    @property
    def _shelf_at(self) -> int:
        """Index of the chosen name."""
        item, wanted = self._item, Shelf(self.wanted.name, 0, self.wanted.is_text)
        meant = [place for place, one in enumerate(self._shelves) if one._replace(size=0) == wanted]
        found = [place for place, one in enumerate(self._shelves) if item is not None and _is_on(item, one)]
        return next(iter(meant + found), 0)

    # -- keys

    def turn(self, by: int) -> None:
        """Show another image of this name; after the last, new ones are followed."""
        if self._later or self._is_of_another_name:
            self._later.append(partial(self._turn, by))
        else:
            self._turn(by)

    def _turn(self, by: int) -> None:
        seen, item = self.seen, self._item
        if seen is not None and item is not None:
            to = max(0, min(self._count - 1, self.place + by))
            named = Wanted(item.name, item.text is not None)
            self._want(named if to == self._count - 1 else named._replace(after=item.number, by=to - seen.place))

    def choose(self, by: int) -> None:
        """Show another name, at the step that is in view."""
        if self._waits:
            self._later.append(partial(self._choose, by))
        else:
            self._choose(by)

    def _choose(self, by: int) -> None:
        shelves, here = self._shelves, self._shelf_at
        to = max(0, min(len(shelves) - 1, here + by))
        if shelves and to != here:
            step = None if self.follows else self.step or 0.0
            self._want(Wanted(shelves[to].name, shelves[to].is_text, step=step))

    def filter(self, pattern: str) -> None:
        """Show only texts that match, and items whose names match."""
        self.pattern, self._later, wanted = pattern, [], self.wanted
        self._want(Wanted(wanted.name, wanted.is_text, step=None if self.follows else self.step or 0.0))

    def scroll(self, by: int) -> None:
        """Scroll a long text down (or up if negative)."""
        self._top += by
        super().repaint()

    def to_edge(self, direction: int) -> None:
        """Show the first or the newest image of this name."""
        self.turn(direction * self._count)

    def _want(self, wanted: Wanted) -> None:
        wanted = wanted._replace(pattern=self.pattern)
        if wanted != self.wanted:
            self.wanted, self.moved = wanted, True
            self.repaint()

    def on_click(self, event: Click) -> None:
        """Choose the clicked name, or the image at the clicked place of the slider."""
        at, y = self._places, event.y - 1
        if at.names and event.x < at.names and 0 <= y < at.picture.height:
            here = self._shelf_at
            first = max(0, min(here - at.picture.height // 2, len(self._shelves) - at.picture.height))
            self.choose(first + y - here)
        elif y == at.picture.height and self._count:
            track = self._slider(self.size.width).spans[1:4]
            room = sum(width_of(span.text) for span in track)
            to = round((event.x - 1) / max(1, room - 1) * (self._count - 1))
            self.turn(max(0, min(self._count - 1, to)) - self.place)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.turn(-1)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.turn(1)


def _is_on(item: Item, shelf: Shelf) -> bool:
    return (item.name, item.text is not None) == (shelf.name, shelf.is_text)
