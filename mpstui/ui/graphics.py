"""Pixels in a terminal: whether it can show any (asked, not guessed), and how a chart's picture gets there.

kitty's graphics protocol (kitty, Ghostty, WezTerm), inline images (iTerm2) and sixel (foot, xterm, mlterm, Windows
Terminal). A picture is cut into strips of a few cells' width, and only strips whose pixels changed are sent again.
docs/screen.md, "Charts in pixels", has the rules.
"""

from __future__ import annotations

import base64
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from textual._xterm_parser import XTermParser
from textual.geometry import Region

from .driver import PatientDriver

STRIP_CELLS = 8
QUESTION = "\x1b[16t\x1b[c"
"""Asks for the cell size and the terminal's capabilities. Every terminal answers the latter, and answers it last."""
KITTY_QUESTION = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
ANSWER_SECONDS_REMOTE = 0.15
"""Over SSH, pixels are shown only if the answer arrives within this time after the first frame."""
_BYTES_A_SECOND, _BYTES_A_SECOND_REMOTE = 700, 450
"""Average bytes per second that pictures may take while no key is pressed."""
_LARGEST_CELL = 64
_SHADES = 4
"""Shades between two colours along the edge of a line."""
_MOST_COLOURS = 250
_LONGEST_KEY = 2
"""The beginning of an answer that is no longer than this may also be a key."""
_KEY_SECONDS, _REST_SECONDS = 0.1, 3.0
_KITTY_PIECE, _KITTY_IDS = 4096, 0x6D7000
_MULTIPLEXERS = ("tmux", "screen", "linux", "dumb")
_ANSWERS = re.compile(
    r"\x1b_G(?P<kitty>[^\x1b]*)\x1b\\|\x1b\[\?(?P<can>[\d;]*)c|\x1b\[6;(?P<height>\d+);(?P<width>\d+)t"
)
_BEGUN = re.compile(r"\x1b(?:_(?:G[^\x1b]*\x1b?)?|\[(?:\?[\d;]*|6[;\d]*)?)?\Z")
"""The beginning of an answer at the end of the input."""
Colour = tuple[int, int, int]


class Cell(NamedTuple):
    """The size of one cell in pixels."""

    width: int
    height: int


class Raster:
    """Pixels in columns, each an index into the palette; colour 0 is the background."""

    def __init__(self, columns: int, lines: int, cell: Cell, ground: Colour, like: Raster | None = None) -> None:
        """``like``: the previous raster, whose palette is shared so that the two can be compared."""
        self.cell = cell
        self.height = lines * cell.height
        self.columns = [bytearray(self.height) for _ in range(columns * cell.width)]
        self.palette: list[Colour] = [ground]
        self._known: dict[Colour, int] = {ground: 0}
        self._blends: dict[tuple[int, int, int], int] = {}
        if like is not None and like.palette[0] == ground:
            self.palette, self._known, self._blends = like.palette, like._known, like._blends

    def ink(self, colour: Colour) -> int:
        """Return the index of a colour; that of the background if there are too many."""
        if colour not in self._known and len(self.palette) < _MOST_COLOURS:
            self._known[colour] = len(self.palette)
            self.palette.append(colour)
        return self._known.get(colour, 0)

    def stroke(self, x: int, top: float, bottom: float, ink: int) -> None:
        """Draw a vertical stroke with soft ends; positions are pixels from the top."""
        if not 0 <= x < len(self.columns):
            return
        column, top, bottom = self.columns[x], max(0.0, top), min(self.height - 1e-6, bottom)
        if top >= bottom:
            return
        first, last = int(top), int(bottom)
        whole = range(first + 1, last)
        column[whole.start : max(whole.stop, whole.start)] = bytes([ink]) * len(whole)
        ends = {first: min(first + 1, bottom) - top}
        ends[last] = ends.get(last, 0.0) if first == last else bottom - last
        for y, share in ends.items():
            column[y] = self._blend(ink, column[y], round(share * _SHADES))

    def leave_out(self, cells: Iterable[tuple[int, int]]) -> None:
        """Clear these cells, given by column and line: they hold text, and no line may run through it."""
        wide, high = self.cell
        for column, line in cells:
            for pixels in self.columns[column * wide : (column + 1) * wide]:
                pixels[line * high : (line + 1) * high] = bytes(high)

    def _blend(self, ink: int, under: int, shade: int) -> int:
        key = ink, under, shade
        found = self._blends.get(key)
        if found is None:
            pairs = zip(self.palette[ink], self.palette[under], strict=True)
            mixed = [round((one * shade + other * (_SHADES - shade)) / _SHADES) for one, other in pairs]
            found = self.ink((mixed[0], mixed[1], mixed[2]))
            if not found and tuple(mixed) != self.palette[0]:  # palette full: the nearer of the two
                found = ink if 2 * shade >= _SHADES else under
            self._blends[key] = found
        return found

    def strips(self) -> list[list[bytearray]]:
        """Return its columns in groups a few cells wide."""
        wide = STRIP_CELLS * self.cell.width
        return [self.columns[start : start + wide] for start in range(0, len(self.columns), wide)]


class Picture(NamedTuple):
    """A raster and its place on the screen, in cells."""

    area: Region
    raster: Raster


def _reduced(columns: Sequence[bytearray], palette: Sequence[Colour]) -> tuple[list[bytes], list[Colour]]:
    """Return the same pixels with only the colours in use."""
    used = sorted(set().union(*columns))
    table = bytearray(256)
    for number, before in enumerate(used):
        table[before] = number
    return [bytes(column).translate(table) for column in columns], [palette[number] for number in used]


def png(columns: Sequence[bytearray], palette: Sequence[Colour]) -> bytes:
    """Encode columns of pixels as a PNG with a palette."""
    pixels, colours = _reduced(columns, palette)
    width, height = len(pixels), len(pixels[0])
    lines = bytearray((width + 1) * height)
    for x, column in enumerate(pixels, 1):
        lines[x :: width + 1] = column
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(channel for colour in colours for channel in colour)),
        (b"IDAT", zlib.compress(bytes(lines), 6)),
        (b"IEND", b""),
    )
    written = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts:
        written += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return written


def sixel(columns: Sequence[bytearray], palette: Sequence[Colour]) -> str:
    """Encode pixel columns as sixels. A rest below six rows is dropped: nothing may reach below the last line."""
    pixels, colours = _reduced(columns, palette)
    height = len(pixels[0]) // 6 * 6
    parts = [f'\x1bP9;1q"1;1;{len(pixels)};{height}']
    for number, colour in enumerate(colours):
        red, green, blue = (round(channel / 2.55) for channel in colour)
        parts.append(f"#{number};2;{red};{green};{blue}")
    for top in range(0, height, 6):
        runs = [(one, len(list(same))) for one, same in groupby(column[top : top + 6] for column in pixels)]
        drawn = [(_bits(piece), length) for piece, length in runs]
        for number in sorted(set().union(*(bits for bits, _ in drawn))):
            parts.append(f"#{number}")
            for bits, same in groupby(drawn, key=lambda run: run[0].get(number, 0)):
                count = sum(length for _, length in same)
                parts.append(f"!{count}{chr(63 + bits)}" if count > 3 else chr(63 + bits) * count)
            parts.append("$")
        parts[-1] = "-"
    return "".join([*parts[:-1], "\x1b\\"])


@lru_cache(4096)
def _bits(piece: bytes) -> dict[int, int]:
    """Return, by colour, in which of six rows it occurs."""
    return {number: sum(1 << place for place, pixel in enumerate(piece) if pixel == number) for number in set(piece)}


class Graphics:
    """How one terminal shows pixels, and the sequences for that; each strip is shown at the cursor."""

    def __init__(self, kind: str, cell: Cell, *, remote: bool = False) -> None:
        """``kind``: kitty, iterm or sixel."""
        self.kind, self.cell = kind, cell
        self._rate = _BYTES_A_SECOND_REMOTE if remote else _BYTES_A_SECOND
        self.next = 0.0
        """Until this monotonic time, only a key may change the picture."""
        self.is_behind = kind == "kitty"
        """True if text covers a picture without erasing it, so that it must be removed."""
        self._ids: dict[int, int] = {}
        """Image ids of kitty's protocol, by strip."""

    def strip(self, number: int, columns: Sequence[bytearray], palette: Sequence[Colour]) -> str:
        """Return the sequences that show a strip in place of what was there."""
        if self.kind == "sixel":
            return sixel(columns, palette)
        across, down = len(columns) // self.cell.width, len(columns[0]) // self.cell.height
        data = base64.standard_b64encode(png(columns, palette)).decode()
        if self.kind == "iterm":
            size = f"size={len(data) * 3 // 4};width={across};height={down};preserveAspectRatio=0"
            return f"\x1b]1337;File=inline=1;{size};doNotMoveCursor=1:{data}\a"
        before = self._ids.get(number)
        self._ids[number] = image = _KITTY_IDS + 2 * number + (before is not None and before % 2 == 0)
        pieces = [data[at : at + _KITTY_PIECE] for at in range(0, len(data), _KITTY_PIECE)]
        head = f"a=T,f=100,i={image},c={across},r={down},z=-1,C=1,q=2,"
        sent = [
            f"\x1b_G{'' if place else head}m={int(place < len(pieces) - 1)};{piece}\x1b\\"
            for place, piece in enumerate(pieces)
        ]
        return "".join(sent) + (f"\x1b_Ga=d,d=I,i={before},q=2\x1b\\" if before is not None else "")

    def sent(self, size: int) -> None:
        """Note that this many bytes of a picture were written."""
        self.next = max(self.next, time.monotonic()) + size / self._rate

    def gone(self) -> str:
        """Return the sequences that remove all strips, if text does not erase them."""
        ids, self._ids = self._ids, {}
        return "".join(f"\x1b_Ga=d,d=I,i={image},q=2\x1b\\" for image in ids.values())


class Answers:
    """The terminal's answers about itself, collected from what arrives among the keys."""

    def __init__(self, heard: Callable[[Graphics | None], object], environ: Mapping[str, str]) -> None:
        """``heard`` is called from the reader's thread with the way to show pixels; None if there is none."""
        self._heard, self._environ = heard, environ
        self._remote = bool(environ.get("SSH_CONNECTION"))
        told = " ".join(environ.get(name, "") for name in ("TERM", "TERM_PROGRAM", "LC_TERMINAL")).lower()
        self._may_be_kitty = any(name in told for name in ("kitty", "ghostty", "wezterm"))
        self._is_iterm = "iterm" in told
        self._asked: float | None = None
        self._kitty, self._cell = False, Cell(0, 0)
        self._held, self._held_at = "", 0.0

    def question(self) -> str:
        """Return what to write after a frame. APC is sent only to terminals that know it: others may print it."""
        self._asked, self._kitty, self._cell = time.monotonic(), False, Cell(0, 0)
        return (KITTY_QUESTION if self._may_be_kitty else "") + QUESTION

    def without(self, data: str) -> str:
        """Return what was typed, without answers. The beginning of an answer is held back until the rest arrives."""
        data, self._held = self._held + data, ""
        for found in _ANSWERS.finditer(data):
            self._take(found)
        data = _ANSWERS.sub("", data)
        begun = _BEGUN.search(data)
        # While no answer is awaited, a key may begin like one: nothing that may be a key is held back.
        awaited = self._asked is not None and time.monotonic() - self._asked < _REST_SECONDS
        if begun is not None and (awaited or len(begun[0]) > _LONGEST_KEY):
            self._held, self._held_at = begun[0], time.monotonic()
            data = data[: begun.start()]
        return data

    def late(self) -> str:
        """Return what was held back and did not become an answer, if it may have been typed."""
        typed = len(self._held) <= _LONGEST_KEY
        if not self._held or time.monotonic() - self._held_at < (_KEY_SECONDS if typed else _REST_SECONDS):
            return ""
        held, self._held = self._held, ""
        return held if typed else ""

    def _take(self, found: re.Match[str]) -> None:
        if found["kitty"] is not None:
            self._kitty = self._kitty or found["kitty"] == "i=31;OK"
        elif found["width"] is not None:
            self._cell = Cell(int(found["width"]), int(found["height"]))
        elif self._asked is not None:
            waited, self._asked = time.monotonic() - self._asked, None
            fast = not self._remote or waited <= ANSWER_SECONDS_REMOTE
            known = 1 < self._cell.width <= _LARGEST_CELL and 1 < self._cell.height <= 2 * _LARGEST_CELL
            sixels = "4" in found["can"].split(";")[1:]
            kind = "kitty" if self._kitty else "iterm" if self._is_iterm else "sixel" if sixels else ""
            self._heard(Graphics(kind, self._cell, remote=self._remote) if kind and known and fast else None)


def may_ask(environ: Mapping[str, str]) -> bool:
    """True if the terminal may be asked: one inside another (tmux, screen) would only answer for itself."""
    inside = environ.get("TMUX") or environ.get("STY") or environ.get("TERM", "dumb").startswith(_MULTIPLEXERS)
    return not inside and not environ.get("NO_COLOR")


def listen(answers: Answers) -> None:
    """Filter answers from the terminal's input before it is parsed into keys."""

    class Listening(XTermParser):
        def feed(self, data: str) -> Iterable[Any]:
            typed = answers.without(data) if data else answers.late()
            return super().feed(typed) if typed or not data else ()

        def tick(self) -> Iterable[Any]:
            held = answers.late()
            return (*(super().feed(held) if held else ()), *super().tick())

    PatientDriver.parser = Listening
