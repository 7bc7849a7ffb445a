"""The images that a run has logged, one at a time: in half blocks, or by words where there are no colours for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.geometry import Region
from textual.strip import Strip

from ...core import present as shown
from ...core.runs.image_view import Seen, Wanted
from ...core.series.overview import measured_at, metrics_of
from ..rows import EMPTY, Row, Span, clean, clip, cut, fit, row, spread, width_of, wrap
from ..theme import pixel_inks
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.png import Paletted
    from ..messages import ImageRead

_LEAST_BESIDE, _MOST_NAME = 60, 28
"""Columns from which on the names stand beside the image, and how long one is there."""
_LEAST_FOR_CAPTION, _LEAST_FOR_METRICS = 5, 9
"""Lines."""
_LEAST_FOR_WORDS = 56


class Places(NamedTuple):
    """Where things are, in cells."""

    names: int
    """Columns of the list of names at the left; 0: there is none."""
    picture: Region
    caption: bool
    metrics: bool


def places(width: int, height: int, names: tuple[tuple[str, int], ...]) -> Places:
    """What has room: first the image and the slider."""
    longest = max((width_of(clean(name)) + len(str(count)) + 4 for name, count in names), default=0)
    beside = min(longest, _MOST_NAME) if len(names) > 1 and width >= _LEAST_BESIDE else 0
    caption, metrics = height >= _LEAST_FOR_CAPTION, height >= _LEAST_FOR_METRICS
    left = beside + bool(beside)
    return Places(beside, Region(left, 0, width - left, max(0, height - 1 - caption - metrics)), caption, metrics)


class ImageView(LinePanel):
    """Asks for the image that is wanted and shows the one that came."""

    TITLE = "images"

    def __init__(self, ask: Callable[[Wanted], object], step: float | None) -> None:
        """``ask`` has an image read, which comes as a message; ``step``: where to begin, None: at the newest."""
        super().__init__()
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
            self._asked = None
        self.repaint()

    def take(self, message: ImageRead) -> None:
        """Show an image that was read; keys that were pressed meanwhile count from it."""
        self.seen, wanted, asked = message.seen, self.wanted, message.wanted
        image = self.seen.image
        if image is not None and (wanted.name, wanted.after, wanted.step) == (asked.name, asked.after, asked.step):
            by = wanted.by - asked.by
            self.wanted = Wanted(image.name) if self.follows else Wanted(image.name, self.seen.number, by)
            self._asked = self._to_ask() if not by else None
        self._draw()
        self.repaint()
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
        return self.wanted._replace(box=(picture.width, 2 * picture.height), ground=inks["ground"])

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

    def _draw(self) -> None:
        """Make cells of the pixels, in the middle of their place."""
        before, area = self._at, self._places.picture
        pixels = self.seen.pixels if self.seen is not None else None
        self._cells, self._at = [], Region()
        if pixels is not None and area.width and area.height:
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
        words = [] if self._cells else self._words(seen, at.picture.width)[: at.picture.height]
        lines = []
        for y in range(at.picture.height):
            beside = names[y] if y < len(names) else row((" " * at.names, ""))
            edge = (Span("│", "track"),) if at.names else ()
            lines.append(row(*beside.spans, *edge, *(words[y].spans if y < len(words) else ())))
        lines.append(self._slider(width))
        lines += [self._caption(seen, width)] if at.caption else []
        return [*lines, *([self._metrics(width)] if at.metrics else [])]

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

    def _words(self, seen: Seen, width: int) -> list[Row]:
        """What is said of an image that is not drawn."""
        image, snapshot = seen.image, self._snapshot
        assert image is not None
        assert snapshot is not None
        size = f"{seen.size[0]:,} x {seen.size[1]:,} pixels, " if seen.kind else ""
        about = f"{size}{seen.kind.upper() or 'unreadable'}, {shown.size(image.bytes)}"
        path = clean(str(snapshot.dir / "images" / image.file))
        why = wrap(f"not drawn: {clean(seen.why_not)}", width - 2, 4) if seen.why_not else []
        told = [(clean(image.name), "title"), *((line, "warn") for line in why), (about, "")]
        paths = [path[at : at + max(1, width - 2)] for at in range(0, len(path), max(1, width - 2))]
        return [
            EMPTY,
            *(row(" ", (cut(text, width - 1), role)) for text, role in (*told, *((p, "dim") for p in paths))),
        ]

    def _slider(self, width: int) -> Row:
        """Where the image stands among those of its name."""
        place, count = self.place, self._count
        told = f" {place + 1:,} of {count:,}"
        follows = " · newest" if self.follows and width >= _LEAST_FOR_WORDS else ""
        room = max(1, width - 2 - len(told) - len(follows))
        at = round(place / (count - 1) * (room - 1)) if count > 1 else 0
        track = (Span("━" * at, "bar"), Span("●", "key"), Span("─" * (room - 1 - at), "track"))
        return row(*clip((Span(" "), *track, Span(told), Span(follows, "good")), width))

    def _caption(self, seen: Seen, width: int) -> Row:
        image, snapshot = seen.image, self._snapshot
        assert image is not None
        assert snapshot is not None
        step = f"step {shown.whole(image.step)}" if image.step is not None else "step unknown"
        attempt = f" · attempt {image.attempt}" if snapshot.attempts > 1 else ""
        when = f" · {step} · {shown.moment_of_day(image.time, snapshot.seen or image.time)}{attempt}"
        size = f"{seen.size[0]:,} x {seen.size[1]:,} {seen.kind.upper()} " if seen.kind else ""
        room = width - 1 - width_of(when)
        name = cut(clean(image.name), max(4, room))
        left = (Span(" "), Span(name, "strong"), Span(when + " …" * self._waits, "dim"))
        taken = sum(width_of(span.text) for span in left)
        return spread(left, (Span(size, "dim"),) if taken + width_of(size) < width else (), width)

    def _metrics(self, width: int) -> Row:
        """What was measured last by its step."""
        if self._snapshot is None or self.step is None:
            return EMPTY
        told: list[Span] = [Span(" ")]
        for metric in metrics_of(self._snapshot):
            found = measured_at(metric, self.step)
            if found is not None:
                told += [Span(f"{clean(metric.name, 40)} ", "dim"), Span(f"{shown.number(found[0])}   ")]
        return row(*clip(tuple(told), width))

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


def half_blocks(pixels: Paletted, by: int, ground: Style) -> list[Strip]:
    """Two pixels one above the other in each cell, each pixel ``by`` times as large."""
    colours = [Color.from_rgb(*colour) for colour in pixels.palette]
    looks: dict[tuple[int, int], Segment] = {}
    lines = [line for line in pixels.lines for _ in range(by)]
    strips = []
    for top, bottom in zip(lines[::2], [*lines[1::2], None], strict=False):
        segments: list[Segment] = []
        for x in range(len(top)):
            pair = top[x], bottom[x] if bottom is not None else -1
            look = looks.get(pair)
            if look is None:
                under = colours[pair[1]] if bottom is not None else ground.bgcolor
                cell = " " if pair[0] == pair[1] else "▀"
                look = looks[pair] = Segment(cell * by, Style(color=colours[pair[0]], bgcolor=under))
            segments.append(look)
        strips.append(Strip(segments, len(top) * by))
    return strips
