"""A terminal that shows pixels, for tests: it answers what it is asked, and keeps each picture with its place."""

from __future__ import annotations

import base64
import os
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyte

from ..terminal import Terminal

CELL_WIDTH, CELL_HEIGHT = 8, 16
Colour = tuple[int, int, int]
Rows = list[list[Colour]]

_SHOWN = re.compile(
    rb"\x1b_G(?P<kitty>[^\x1b;]*)(?:;(?P<data>[^\x1b]*))?\x1b\\"
    rb"|\x1b\]1337;File=(?P<iterm>[^:]*):(?P<inline>[^\x07]*)\x07"
    rb"|\x1bP[\d;]*q(?P<sixel>[^\x1b]*)\x1b\\"
    rb"|\x1b\[(?P<line>\d+)(?:;(?P<column>\d+))?H"
    rb"|(?P<asks>\x1b\[16t)|(?P<device>\x1b\[c)"
)
_UNFINISHED = re.compile(rb"\x1b(?:[_P\]][^\x1b\x07]*\x1b?|\[[\d;?]*)?\Z")


class Shown(NamedTuple):
    """One picture: the cell of its upper left corner, from 0, and its pixels."""

    x: int
    y: int
    rows: Rows
    cells: tuple[int, int]


class Screen(pyte.Screen):
    """Notes which cells are written upon."""

    def __init__(self, columns: int, lines: int) -> None:
        self.written: set[tuple[int, int]] = set()
        super().__init__(columns, lines)

    def draw(self, data: str) -> None:
        start, line = self.cursor.x, self.cursor.y
        super().draw(data)
        self.written.update((x, line) for x in range(start, self.cursor.x))


class PixelTerminal(Terminal):
    """``kind``: kitty, iterm, sixel, or none, which knows its cells and can show nothing.

    In kitty text stands before pictures, in the others it takes the place of what it is written upon.
    """

    def __init__(
        self,
        argv: Sequence[str],
        kind: str,
        *,
        columns: int = 100,
        rows: int = 30,
        env: Mapping[str, str] | None = None,
    ) -> None:
        names = {"kitty": {"TERM": "xterm-kitty"}, "iterm": {"TERM_PROGRAM": "iTerm.app"}}.get(kind, {})
        plain = dict.fromkeys(("TMUX", "STY", "SSH_CONNECTION", "TERM_PROGRAM", "LC_TERMINAL", "KITTY_WINDOW_ID"), "")
        self.kind, self.shown = kind, dict[object, Shown]()
        self.told = 0
        """Pictures that were sent, in all."""
        self.asked = 0
        self.answers = True
        self._place, self._pieces, self._head = (0, 0), b"", b""
        self._behind = b""
        super().__init__(
            argv, columns=columns, rows=rows, env={**plain, "COLORTERM": "truecolor", **names, **(env or {})}
        )
        self.screen: Screen = Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)

    def take(self, data: bytes) -> None:
        """Read what the program writes: pictures and questions here, all else on the screen."""
        data = self._behind + data
        begun = _UNFINISHED.search(data)
        self._behind = data[begun.start() :] if begun else b""
        data = data[: begun.start()] if begun else data
        at = 0
        for found in _SHOWN.finditer(data):
            super().take(data[at : found.start()])
            at = found.end()
            if found["line"]:
                self._place = int(found["column"] or 1) - 1, int(found["line"]) - 1
                super().take(found[0])
            elif found["asks"] or found["device"]:
                self._answer(b"\x1b[6;%d;%dt" % (CELL_HEIGHT, CELL_WIDTH) if found["asks"] else self._device())
            elif found["sixel"] is not None:
                self._show(sixel_pixels(found["sixel"].decode()))
            elif found["iterm"] is not None:
                self._show(png_pixels(base64.b64decode(found["inline"])))
            else:
                self._kitty(found["kitty"], found["data"] or b"")
        super().take(data[at:])

    def _device(self) -> bytes:
        self.asked += 1
        return b"\x1b[?62;4;22c" if self.kind == "sixel" else b"\x1b[?62;22c"

    def _answer(self, data: bytes) -> None:
        if self.answers:
            os.write(self.descriptor, data)

    def _show(self, rows: Rows, key: object = None) -> None:
        across, down = -(-len(rows[0]) // CELL_WIDTH), -(-len(rows) // CELL_HEIGHT)
        x, y = self._place
        self.screen.written -= {(x + right, y + below) for right in range(across) for below in range(down)}
        self.shown[key if key is not None else self._place] = Shown(x, y, rows, (across, down))
        self.told += 1

    def _kitty(self, control: bytes, data: bytes) -> None:
        keys = dict(part.split(b"=", 1) for part in control.split(b",") if part)
        if keys.get(b"a") == b"q":
            if self.kind == "kitty":
                self._answer(b"\x1b_Gi=31;OK\x1b\\")
        elif keys.get(b"a") == b"d":
            self.shown.pop(keys[b"i"], None)
        else:
            self._head = control if b"a" in keys else self._head
            self._pieces += data
            if keys.get(b"m") == b"0":
                head = dict(part.split(b"=", 1) for part in self._head.split(b",") if part)
                self._show(png_pixels(base64.b64decode(self._pieces)), head[b"i"])
                self._pieces = b""

    def pixel(self, x: float, y: float) -> Colour | None:
        """The colour at a place in cells, of a picture in view."""
        if self.kind != "kitty" and (int(x), int(y)) in self.screen.written:
            return None
        for one in self.shown.values():
            across, down = int((x - one.x) * CELL_WIDTH), int((y - one.y) * CELL_HEIGHT)
            if 0 <= down < len(one.rows) and 0 <= across < len(one.rows[0]):
                return one.rows[down][across]
        return None

    def near(self, colour: Colour) -> list[tuple[float, float]]:
        """Where a colour is in view, in cells, from the upper left corner; sixels tell it in hundredths."""
        written = set() if self.kind == "kitty" else self.screen.written
        found = []
        for one in self.shown.values():
            there = set[Colour]().union(*one.rows)
            inks = {ink for ink in there if max(abs(a - b) for a, b in zip(ink, colour, strict=True)) <= 2}
            for down, row in enumerate(one.rows):
                if not inks.isdisjoint(row):
                    y = one.y + down / CELL_HEIGHT
                    across = (one.x + place / CELL_WIDTH for place, ink in enumerate(row) if ink in inks)
                    found += [(x, y) for x in across if (int(x), int(y)) not in written]
        return found


def png_pixels(data: bytes) -> Rows:
    """The pixels of a PNG with a palette."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        chunks[kind] = data[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert checksum == zlib.crc32(kind + chunks[kind])
        at += 12 + length
    width, height, depth, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colours) == (8, 3)
    palette = [tuple(chunks[b"PLTE"][place : place + 3]) for place in range(0, len(chunks[b"PLTE"]), 3)]
    raw = zlib.decompress(chunks[b"IDAT"])
    lines = [raw[start : start + width + 1] for start in range(0, len(raw), width + 1)]
    assert len(lines) == height
    assert all(line[0] == 0 for line in lines)
    return [[palette[pixel] for pixel in line[1:]] for line in lines]  # type: ignore[misc]


def sixel_pixels(text: str) -> Rows:
    """The pixels of sixels with raster attributes."""
    size = re.match(r'"1;1;(\d+);(\d+)', text)
    assert size is not None
    width, height = int(size[1]), int(size[2])
    rows: Rows = [[(-1, -1, -1)] * width for _ in range(height)]
    palette: dict[int, Colour] = {}
    x = y = ink = 0
    for token in re.finditer(r"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)(.)|([?-~])|(\$)|(-)", text[size.end() :]):
        if token[1]:
            palette[int(token[1])] = tuple(round(int(token[part]) * 2.55) for part in (2, 3, 4))  # type: ignore[assignment]
        elif token[5]:
            ink = int(token[5])
        elif token[9]:
            x = 0
        elif token[10]:
            x, y = 0, y + 6
        else:
            bits = ord(token[7] or token[8]) - 63
            end = x + int(token[6] or 1)
            for place in range(6):
                if bits >> place & 1:
                    rows[y + place][x:end] = [palette[ink]] * (end - x)
            x = end
    return rows
