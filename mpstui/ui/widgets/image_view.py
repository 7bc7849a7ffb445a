"""The images that a run has logged, one at a time: in half blocks, or by words where there are no colours for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.geometry import Region
from textual.strip import Strip

from ...core import present as shown
from ...core.runs.image_view import Seen, Wanted
from ..graphics import Graphics, Picture, Raster
from ..rows import EMPTY, Row, Span, clean, fit, row, width_of
from ..theme import pixel_inks
from .image_cells import fitting, half_blocks, image_raster
from .image_words import Places, caption, measured, places, slider, words_of
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..messages import ImageRead

_MOST_PIXELS, _MOST_PIXELS_REMOTE = 300_000, 60_000
"""Of a picture in pixels, each some six bits on the way to the terminal where it has many colours."""
_LONGEST_WAIT, _LONGEST_WAIT_REMOTE = 1.0, 10.0
"""Seconds that a picture which comes by itself waits at most until the line has had time for the last one."""


class ImageView(LinePanel):
    """Asks for the image that is wanted and shows the one that came."""

    TITLE = "images"

    def __init__(self, ask: Callable[[Wanted], object], step: float | None, *, remote: bool = False) -> None:
        """``ask`` has an image read, which comes as a message; ``step``: where to begin, None: at the newest."""
        super().__init__()
        self._most = _MOST_PIXELS_REMOTE if remote else _MOST_PIXELS
        self._longest_wait = _LONGEST_WAIT_REMOTE if remote else _LONGEST_WAIT
        self.graphics: Graphics | None = None
        """The terminal's way to show pixels."""
        self._covered = False
        self._raster: Raster | None = None
        self._box = 0, 0
        """What the image in view was made for."""
        self.titled = self.current = True
        self.wanted = Wanted(step=step)
        self.seen: Seen | None = None
        self.moved = False
        """Whether somebody has chosen another image than the first one shown."""
        self._ask = ask
        self._asked: Wanted | None = None
        self._later: list[Callable[[], None]] = []
        """Keys that mean the image which is on its way."""
        self._snapshot: RunSnapshot | None = None
        self._cells: list[Strip] = []
        """The image, a strip for each line of the screen."""
        self._at = Region()
        """Where it stands below the title."""

    # -- what it shows

    @property
    def follows(self) -> bool:
        """Whether it shows the newest one, and each that comes."""
        return self.wanted.after is None and self.wanted.step is None

    @property
    def step(self) -> float | None:
        """The step of the image in view; None: it is not known."""
        image = self.seen.image if self.seen is not None else None
        return float(image.step) if image is not None and image.step is not None else None

    @property
    def place(self) -> int:
        """Which of its name is meant, of those that were there when one was read last."""
        seen = self.seen
        if seen is None:
            return 0
        by = self.wanted.by if self.wanted.after == seen.number else 0
        return self._count - 1 if self.follows else max(0, min(self._count - 1, seen.place + by))

    @property
    def _count(self) -> int:
        seen = self.seen
        return dict(seen.names)[seen.image.name] if seen is not None and seen.image is not None else 0

    def show(self, snapshot: RunSnapshot) -> None:
        """Draw what is known now; what was logged since is asked for."""
        before, self._snapshot = self._snapshot, snapshot
        if before is None or before.images != snapshot.images:
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
        """Show an image that was read; keys that were pressed meanwhile count from it."""
        self.seen, wanted, asked = message.seen, self.wanted, message.wanted
        self._box = asked.box
        image = self.seen.image
        if image is not None and (wanted.name, wanted.after, wanted.step) == (asked.name, asked.after, asked.step):
            by = wanted.by - asked.by
            self.wanted = Wanted(image.name) if self.follows else Wanted(image.name, self.seen.number, by)
            self._asked = self._to_ask() if not by else None
        self.redraw()
        while self._later and not self._waits:
            self._later.pop(0)()

    @property
    def _is_of_another_name(self) -> bool:
        """Whether the image that is on its way is."""
        image = self.seen.image if self.seen is not None else None
        return image is not None and self.wanted.name not in ("", image.name)

    @property
    def _waits(self) -> bool:
        """Whether another image is meant than the one in view."""
        return self.seen is not None and (self.place != self.seen.place or self._is_of_another_name)

    def _to_ask(self) -> Wanted:
        """What is wanted, as large as it fits."""
        inks, picture = pixel_inks(self.app.theme), self._places.picture
        if inks is None:
            return self.wanted
        box = picture.width, 2 * picture.height
        if self.graphics is not None and self._in_pixels:
            box = picture.width * self.graphics.cell.width, picture.height * self.graphics.cell.height
            share = min(1.0, (self._most / max(1, box[0] * box[1])) ** 0.5)
            box = int(box[0] * share), int(box[1] * share)
        return self.wanted._replace(box=box, ground=inks["ground"])

    @property
    def _places(self) -> Places:
        return places(*self.rows_size, self.seen.names if self.seen is not None else ())

    def repaint(self) -> None:
        if not self.is_mounted or not self.size:
            return
        wanted = self._to_ask()
        if wanted != self._asked and self._snapshot is not None:
            self._asked = wanted
            self._ask(wanted)
        super().repaint()

    def notify_style_update(self) -> None:
        """Another theme: another ground."""
        self._asked = None
        super().notify_style_update()

    @property
    def _in_pixels(self) -> bool:
        """Whether a picture is shown: never where something may stand before it."""
        return self.graphics is not None and not self._covered and self.app.screen is self.screen

    def make_room(self, lines: int) -> None:
        """So many lines of the window above the footer are covered."""
        if self._covered != (lines > 0):
            self._covered = lines > 0
            self.redraw()

    def redraw(self) -> None:
        """Draw in pixels or in characters, as it is now to be."""
        self._draw()
        self.repaint()

    @property
    def picture(self) -> Picture | None:
        """The picture, and where on the screen it is to stand."""
        if self._raster is None or not self._in_pixels:
            return None
        return Picture(self._at.translate((self.content_region.x, self.content_region.y + 1)), self._raster)

    def _draw(self) -> None:
        """Make cells or a picture of the pixels, in the middle of their place."""
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
        names = self.seen.names if self.seen is not None else ()
        count = sum(of for _, of in names)
        return (Span(f"{shown.whole(count)} image{'s' * (count != 1)}", "dim"),) if names else ()

    def rows(self, width: int, height: int) -> list[Row]:
        seen, snapshot = self.seen, self._snapshot
        if seen is None or snapshot is None or not snapshot.images:
            none = snapshot is not None and not snapshot.images
            return [row((" none was logged: report.image(name, image) does" if none else " reading …", "dim"))]
        if seen.image is None:
            return [row(f" {clean(seen.why_not)}")]
        at = places(width, height, seen.names)
        names = list(self._names(at.names, at.picture.height))
        drawn = bool(self._cells) or self._raster is not None
        words = [] if drawn else words_of(snapshot, seen, seen.image, at.picture.width)
        lines = []
        for y in range(at.picture.height):
            beside = names[y] if y < len(names) else row((" " * at.names, ""))
            edge = (Span("│", "track"),) if at.names else ()
            lines.append(row(*beside.spans, *edge, *(words[y].spans if y < len(words) else ())))
        lines.append(self._slider(width))
        if at.caption:
            lines.append(caption(snapshot, seen, seen.image, width, waits=self._waits))
        if at.metrics:
            lines.append(measured(snapshot, self.step, width) if self.step is not None else EMPTY)
        return lines

    def _slider(self, width: int) -> Row:
        return slider(self.place, self._count, width, follows=self.follows)

    def _names(self, width: int, height: int) -> Iterator[Row]:
        """The list at the left, from where the chosen one is in view."""
        names = self.seen.names if self.seen is not None else ()
        if not width:
            return
        here = self._name_at
        first = max(0, min(here - height // 2, len(names) - height))
        for place, (name, count) in enumerate(names[first : first + height], first):
            role = "selected" if place == here else ""
            text = f"{'▌' if place == here else ' '}{fit(clean(name), width - len(str(count)) - 3)} {count} "
            yield row((fit(text, width), role))

    @property
    def _name_at(self) -> int:
        seen = self.seen
        if seen is None or seen.image is None:
            return 0
        named = [name for name, _ in seen.names]
        return named.index(self.wanted.name if self.wanted.name in named else seen.image.name)

    # -- keys

    def turn(self, by: int) -> None:
        """See another one of this name; the last one is followed by those that come."""
        if self._later or self._is_of_another_name:
            self._later.append(partial(self._turn, by))
        else:
            self._turn(by)

    def _turn(self, by: int) -> None:
        seen = self.seen
        if seen is not None and seen.image is not None:
            to = max(0, min(self._count - 1, self.place + by))
            name = seen.image.name
            self._want(Wanted(name) if to == self._count - 1 else Wanted(name, seen.number, to - seen.place))

    def choose(self, by: int) -> None:
        """See those of another name, at the step that is in view."""
        if self._waits:
            self._later.append(partial(self._choose, by))
        else:
            self._choose(by)

    def _choose(self, by: int) -> None:
        names, here = self.seen.names if self.seen is not None else (), self._name_at
        to = max(0, min(len(names) - 1, here + by))
        if names and to != here:
            self._want(Wanted(names[to][0], step=None if self.follows else self.step or 0.0))

    def to_edge(self, direction: int) -> None:
        """The first or the newest one of this name."""
        self.turn(direction * self._count)

    def _want(self, wanted: Wanted) -> None:
        if wanted != self.wanted:
            self.wanted, self.moved = wanted, True
            self.repaint()

    def on_click(self, event: Click) -> None:
        """A name chooses it, the slider an image."""
        at, y = self._places, event.y - 1
        if at.names and event.x < at.names and 0 <= y < at.picture.height:
            names = self.seen.names if self.seen is not None else ()
            first = max(0, min(self._name_at - at.picture.height // 2, len(names) - at.picture.height))
            self.choose(first + y - self._name_at)
        elif y == at.picture.height and self._count:
            track = self._slider(self.size.width).spans[1:4]
            room = sum(width_of(span.text) for span in track)
            to = round((event.x - 1) / max(1, room - 1) * (self._count - 1))
            self.turn(max(0, min(self._count - 1, to)) - self.place)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.turn(-1)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.turn(1)
