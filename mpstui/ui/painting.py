"""Write to the terminal only the cells that differ from what it shows, in as few bytes as possible.

Textual knows which regions may have changed and renders them whole. :class:`Paint` remembers every cell written,
compares, and writes only those that differ, with the shortest cursor movements and colour changes between them. Where
the rows of a region have merely moved up, as in a growing log, the terminal is told to scroll (DECSTBM, line feeds) if
that takes fewer bytes. A full update (another screen, another size) is written whole, whatever is remembered: it
repairs what another program may have left on the terminal. docs/screen-internals.md, "Measured", has the figures.

Charts in pixels (``graphics.py``) are written after the cells of their frame, strip by strip; on terminals where text
erases pixels, strips that the frame wrote over are sent again.

This relies on private names of the Textual version that ``pyproject.toml`` pins; a test compares the resulting screen
with Textual's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from .driver import PatientDriver
from .graphics import STRIP_CELLS, Graphics, Picture
from .rows import visible


class Pen(NamedTuple):
    """SGR codes of a style, kept separate so that only what changes is sent."""

    weight: str = ""
    """Bold, underline and the like; empty if none."""
    ink: str = "39"
    ground: str = "49"


_PLAIN = Pen()
_WEIGHTS = (("bold", "1"), ("dim", "2"), ("italic", "3"), ("underline", "4"), ("reverse", "7"), ("strike", "9"))
_SEEN_ON_BLANKS = frozenset("479")
Cell = tuple[str, Pen]
"""A character and its style. The second half of a wide character is empty; a blank's foreground is meaningless."""
Changes = dict[int, list[tuple[int, int]]]
"""For each row, counted from the top, the ranges of cells that differ."""
_UNKNOWN: Cell = ("\0", _PLAIN)
_CHEAPEST_MOVE = 4
"""In bytes."""
_FEWEST_SCROLLED, _FURTHEST = 4, 12
"""Scroll if at least this many rows have moved up, and by at most this far."""


@lru_cache(2048)
def pen_of(style: Style | None, colours: ColorSystem) -> Pen:
    """Return the look of a style in a colour system."""
    if style is None:
        return _PLAIN
    weight = ";".join(code for name, code in _WEIGHTS if getattr(style, name)) if style._attributes else ""
    ink, ground = style.color, style.bgcolor
    return Pen(
        weight,
        _codes(ink, colours, foreground=True) if ink is not None else "39",
        _codes(ground, colours, foreground=False) if ground is not None else "49",
    )


def _codes(colour: Color, colours: ColorSystem, *, foreground: bool) -> str:
    """Return the SGR codes of a colour. A grey of the 256-colour ramp stays exact; Rich is off by one."""
    red, green, blue = colour.triplet or (0, 0, 1)
    if colours is ColorSystem.EIGHT_BIT and red == green == blue and red in range(8, 239, 10):
        return f"{38 if foreground else 48};5;{232 + (red - 8) // 10}"
    return ";".join(colour.downgrade(colours).get_ansi_codes(foreground))


@lru_cache(1024)
def _blank_in(pen: Pen) -> Pen:
    """The look of a blank: without a foreground colour, unless that is visible."""
    return pen if _SEEN_ON_BLANKS & set(pen.weight) else Pen("", "", pen.ground)


@lru_cache(4096)
def _change(old: Pen, new: Pen) -> tuple[str, Pen]:
    """Return the shortest sequence from one look to another, and the resulting look."""
    if not new.ink:
        new = Pen("" if _SEEN_ON_BLANKS & set(old.weight) else old.weight, old.ink, new.ground)
    if old == new:
        return "", new
    if new == _PLAIN:
        return "\x1b[m", new
    codes = [new.ink] * (old.ink != new.ink) + [new.ground] * (old.ground != new.ground)
    if old.weight == new.weight:
        return f"\x1b[{';'.join(codes)}m", new
    if not old.weight:
        return f"\x1b[{';'.join((new.weight, *codes))}m", new
    afresh = [part for part, plain in zip(new, _PLAIN, strict=True) if part != plain]
    return f"\x1b[0;{';'.join(afresh)}m", new


def _move(row: int, column: int, y: int, x: int) -> str:
    """Return the shortest cursor movement from one cell to another; column -1 means unknown."""
    if row != y or not 0 <= column < x:
        return f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H"
    forward = f"\x1b[{x - column}C" if x - column > 1 else "\x1b[C"
    to_column = f"\x1b[{x + 1}G"
    return forward if len(forward) < len(to_column) else to_column


class Paint:
    """What one terminal shows."""

    def __init__(self) -> None:
        self.rows: list[list[Cell]] = []
        self.written = 0
        """Total bytes."""
        self.graphics: Graphics | None = None
        """How the terminal shows pixels, if it can."""
        self.pictures: Sequence[Picture] = ()
        """The pictures that the next frame is to show."""
        self.drawn: Sequence[Picture] = ()
        """The pictures on the screen now."""

    def take_graphics(self, graphics: Graphics | None) -> str:
        """Use this way to show pixels from now on, or none; return the sequences that remove what is on the screen."""
        gone = self.graphics.gone() if self.graphics is not None else ""
        self.graphics, self.pictures, self.drawn = graphics, (), ()
        return gone

    def of(self, update: Any) -> Any:
        """Wrap a compositor's update so that it writes only what differs; anything else is passed through."""
        return _Painted(self, update) if isinstance(update, (ChopsUpdate, LayoutUpdate)) else update

    def told_by(self, update: ChopsUpdate | LayoutUpdate, console: Console) -> str:
        """Return the bytes to write; the terminal is assumed to show the update from then on."""
        colours = console._color_system or ColorSystem.TRUECOLOR
        if isinstance(update, LayoutUpdate):
            self.rows = [_cells(strips, colours) for strips in update.strips]
            every = {y: [(0, len(line))] for y, line in enumerate(self.rows)}
            return _differing(every, dict(enumerate(self.rows))) + self._pixels({}, afresh=True)
        fresh: dict[int, list[Cell]] = {}
        for y, left, right in update.spans:
            if y >= len(self.rows):
                continue
            line = fresh.setdefault(y, self.rows[y].copy())
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                start, stop = max(x, left), min(end, right, len(line))
                if strip is not None and start < stop:
                    line[start:stop] = _cells((strip,), colours)[start - x : stop - x]
        return self._write({y: line for y, line in fresh.items() if line != self.rows[y]})

    def _pixels(self, changed: Changes, *, afresh: bool = False) -> str:
        """Return the sequences that replace the old pictures by the new ones, to follow the text of the same frame.

        Args:
            afresh: every cell was rewritten.
        """
        before, wanted, graphics, told = self.drawn, self.pictures, self.graphics, ""
        self.drawn = wanted
        if graphics is None:
            return ""
        erased = afresh and not graphics.is_behind
        if before and (erased or [one.area for one in before] != [one.area for one in wanted]):
            kept = () if erased or graphics.is_behind else before
            told += graphics.gone() if graphics.is_behind else "".join(self._again(one.area) for one in kept)
            before = ()
        strips, first = "", 0
        for place, picture in enumerate(wanted):
            strips += self._strips(graphics, picture, before[place] if before else None, changed, first)
            first += -(-picture.area.width // STRIP_CELLS)
        if strips:
            graphics.sent(len(strips))
        return told + strips

    def _strips(self, graphics: Graphics, wanted: Picture, before: Picture | None, changed: Changes, first: int) -> str:
        """The strips of a picture that changed or were written over; ``first`` is the number of its first strip."""
        told, (left, top, width, height), palette = "", wanted.area, wanted.raster.palette
        touched = {x for y in wanted.area.line_range for start, end in changed.get(y, ()) for x in range(start, end)}
        if wanted == before and not touched:
            return ""
        stands = before.raster.strips() if before is not None and before.raster.palette is palette else []
        for number, strip in enumerate(wanted.raster.strips()):
            x = left + number * STRIP_CELLS
            part = Region(x, top, min(STRIP_CELLS, left + width - x), height)
            if stands and strip == stands[number] and (graphics.is_behind or touched.isdisjoint(part.column_range)):
                continue
            told += _move(-1, -1, top, x) + graphics.strip(first + number, strip, palette)
            told += "" if graphics.is_behind else self._again(part, marks=True)
        return told

    def _again(self, area: Region, *, marks: bool = False) -> str:
        """Rewrite the text of an area, or only its non-blank cells (``marks``), where pixels must give way to it."""
        fresh = {y: self.rows[y] for y in area.line_range if y < len(self.rows)}
        cells = range(area.x, area.right)
        found = {
            y: [(x, x + 1) for x in cells if line[x : x + 1] and line[x][0] != " "] if marks else [(area.x, area.right)]
            for y, line in fresh.items()
        }
        return _differing(found, fresh)

    def _write(self, fresh: dict[int, list[Cell]]) -> str:
        changed = {y: _stretches(self.rows[y], line) for y, line in sorted(fresh.items())}
        written = _differing(changed, fresh)
        scrolled = self._scrolled(changed, fresh) if len(fresh) >= _FEWEST_SCROLLED else None
        for y, line in fresh.items():
            self.rows[y] = line
        text = written if scrolled is None or len(written) <= len(scrolled) else scrolled
        return text + self._pixels(changed)

    def _scrolled(self, changed: Changes, fresh: dict[int, list[Cell]]) -> str | None:
        """The same changes by scrolling, if the changed rows have moved up; otherwise None."""
        places = [ends for ends in changed.values() if ends]
        left, right = min(ends[0][0] for ends in places), max(ends[-1][1] for ends in places)
        stood = {tuple(self.rows[y][left:right]): y for y in fresh}
        shifts: dict[int, list[int]] = {}
        for y, line in fresh.items():
            before = stood.get(tuple(line[left:right]), y)
            if 0 < before - y <= _FURTHEST:
                shifts.setdefault(before - y, []).append(y)
        by, there = max(shifts.items(), key=lambda item: len(item[1]), default=(0, []))
        if len(there) < _FEWEST_SCROLLED:
            return None
        top, bottom = min(there), max(there) + by
        if any(top < one.area.bottom and bottom >= one.area.y for one in self.drawn):
            return None
        rows = self.rows.copy()
        rows[top : bottom + 1] = [*rows[top + by : bottom + 1], *([_UNKNOWN] * len(rows[top]) for _ in range(by))]
        moved = {y: self.rows[y] for y in range(top, bottom + 1)}
        scrolling = f"\x1b[{top + 1};{bottom + 1}r\x1b[{bottom + 1}H{chr(10) * by}\x1b[r"
        new = moved | fresh
        return scrolling + _differing({y: _stretches(rows[y], line) for y, line in sorted(new.items())}, new)


class _Painted(CompositorUpdate):
    """An update that is compared with what the terminal shows at the time of writing."""

    def __init__(self, paint: Paint, update: ChopsUpdate | LayoutUpdate) -> None:
        self._paint, self._update = paint, update

    def render_segments(self, console: Console) -> str:
        told = self._paint.told_by(self._update, console)
        self._paint.written += len(told.encode())
        return told


def _cells(strips: Iterable[Strip], colours: ColorSystem) -> list[Cell]:
    cells: list[Cell] = []
    for strip in strips:
        for text, style, _ in strip:
            pen = pen_of(style, colours)
            blank = (" ", _blank_in(pen))
            if text.isascii():
                cells += [(character, pen) if character != " " else blank for character in text]
                continue
            for character in text:
                width = cell_len(character)
                if width:
                    cells += [(character, pen) if character != " " else blank, ("", pen)][:width]
                elif cells:  # combines with the preceding character
                    at = -1 if cells[-1][0] else -2
                    cells[at] = (cells[at][0] + character, pen)
    return cells


class _Piece(NamedTuple):
    """Adjacent cells to write that share a look."""

    y: int
    start: int
    end: int
    look: Pen
    text: str
    certain: bool
    """True if every terminal leaves the cursor right behind it."""


def _differing(changed: Changes, fresh: dict[int, list[Cell]]) -> str:
    """Return the bytes that turn the rows shown into the new ones; the pen is plain before and after.

    Goes row by row, or colour by colour if changing colours costs more than moving the cursor.
    """
    pieces = [piece for y, places in changed.items() for ends in places for piece in _pieces(y, *ends, fresh[y])]
    return min(_written(pieces), _written(sorted(pieces, key=lambda piece: piece.look)), key=len)


def _pieces(y: int, start: int, end: int, line: list[Cell]) -> Iterator[_Piece]:
    """Split a stretch by look; a blank joins the preceding piece if it has the same background."""
    begin, look = start, line[start][1]
    for x in range(start + 1, end + 1):
        if x < end and (line[x][1] == look or not _change(look, line[x][1])[0]):
            continue
        text = "".join([character for character, _ in line[begin:x]])
        yield _Piece(y, begin, x, look, text, x < len(line) and all(map(_is_narrow, line[begin:x])))
        if x < end:
            begin, look = x, line[x][1]


def _written(pieces: Iterable[_Piece]) -> str:
    written: list[str] = []
    row, column, pen = -1, -1, _PLAIN
    for y, start, end, look, text, certain in pieces:
        if (row, column) != (y, start):
            written.append(_move(row, column, y, start))
        if look != pen:
            change, pen = _change(pen, look)
            written.append(change)
        written.append(text)
        # Where a terminal may count cells differently, or waits to wrap, only an absolute movement is safe.
        row, column = y, end if certain else -1
    written.append(_change(pen, _PLAIN)[0])
    return "".join(written)


def _is_narrow(cell: Cell) -> bool:
    return len(cell[0]) == 1 and (
        cell[0] < "\u0300" or "\u2500" <= cell[0] <= "\u259f" or "\u2800" <= cell[0] <= "\u28ff"
    )


def _stretches(stands: list[Cell], line: list[Cell]) -> list[tuple[int, int]]:
    """Ranges of cells that differ. Short gaps of equal cells in the same look are rewritten, which is cheaper."""
    if stands == line:
        return []
    found: list[tuple[int, int]] = []
    start = end = -1
    for x, (before, after) in enumerate(zip(stands, line, strict=True)):
        if before == after:
            continue
        if start < 0:
            start = x
        elif x > end and (x - end > _CHEAPEST_MOVE or not _same_look(line[end - 1 : x])):
            found.append((start, end))
            start = x
        end = x + 1
    return [*found, (start, end)]


def _same_look(cells: list[Cell]) -> bool:
    """True if each cell after the first takes a single byte to write."""
    look = cells[0][1]
    return all(
        character.isascii() and (pen == look or (not pen.ink and pen.ground == look.ground))
        for character, pen in cells[1:]
    )


class PaintedApp(App[None]):
    """An app that writes its updates through :class:`Paint`."""

    def __init__(self, *, ansi_color: bool) -> None:
        super().__init__(driver_class=PatientDriver, ansi_color=ansi_color)
        self.paint = Paint()
        # To apply a theme, Textual would parse in a copy, discard it and parse again: some 5 ms of each start.
        self.stylesheet.reparse = self.stylesheet.parse  # type: ignore[method-assign]
        self._disable_tooltips = True  # no widget has one

    def _display(self, screen: Screen[object], renderable: Any) -> None:
        """Textual's hook for terminal output: write only the cells that differ in each update."""
        if self.paint.graphics is not None:
            self.paint.pictures = getattr(screen, "pictures", ())
        super()._display(screen, self.paint.of(renderable))

    def _fatal_error(self) -> None:
        """Textual's own would render every local variable: minutes without response, and the run's variables shown."""
        import traceback

        told = "" if self._exception is None else "".join(traceback.format_exception(self._exception))
        after = "mpstui: the screen has failed, by a mistake of its own. No training is affected: open it again."
        self.bell()
        self._exit_renderables.append("\n".join([*map(visible, told.splitlines()), after]))
        self._close_messages_no_wait()

    def write(self, sequences: str) -> None:
        """Send the terminal something that is not text in cells: a title, a bell."""
        if sequences and self._driver is not None:
            self._driver.write(sequences)
