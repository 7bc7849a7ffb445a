"""What reaches the terminal: exactly the picture that was asked for, in few bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyte
import pytest
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from mpstui.ui.painting import Paint

CONSOLE = Console(color_system="truecolor")
WIDTH = 40
Line = list[tuple[str, str]]
"""Text and style of its parts."""


class Screen:
    """A terminal emulator behind the paint."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.paint = Paint()
        self.shown = pyte.Screen(WIDTH, len(lines))
        self._stream = pyte.Stream(self.shown)
        self._lines = list(lines)
        strips = [[strip(line)] for line in lines]
        self._feed(LayoutUpdate(strips, Region(0, 0, WIDTH, len(lines))))  # type: ignore[arg-type]

    def _feed(self, update: LayoutUpdate | ChopsUpdate) -> str:
        written = self.paint.told_by(update, CONSOLE)
        self._stream.feed(written.replace("\n", "\r\n"))
        return written

    def draw(self, lines: Sequence[Line]) -> str:
        """Draw the lines that differ, as Textual would; what was written."""
        changed = [y for y, (old, new) in enumerate(zip(self._lines, lines, strict=True)) if old != new]
        self._lines = list(lines)
        spans = [(y, 0, WIDTH) for y in changed]
        return self._feed(ChopsUpdate([{0: strip(line)} for line in lines], spans, [[WIDTH]] * len(lines)))

    @property
    def cells(self) -> list[list[tuple[str, str, str, bool]]]:
        """Character, colours and weight of each cell; the ink of a blank is not seen."""
        return [
            [
                (cell.data, "" if cell.data == " " else cell.fg, cell.bg, cell.bold and cell.data != " ")
                for x in range(WIDTH)
                for cell in (self.shown.buffer[y][x],)
            ]
            for y in range(self.shown.lines)
        ]


def strip(line: Line) -> Strip:
    return Strip([Segment(text, Style.parse(style)) for text, style in line]).adjust_cell_length(WIDTH)


def text(words: str, style: str = "") -> Line:
    return [(words, style)]


LOOKS = ("", "#ff8800", "bold #00ff00 on #102030", "dim", "reverse", "#8800ff on #102030")
WORDS = ("step 12", "0.6931", " ", "   ", "日本", "é", "⠑⠊⠑", "━━╸", "e\u0301", "🚀")


@pytest.mark.parametrize("seed", range(12))
def test_whatever_changes_the_screen_is_the_one_a_full_update_would_show(seed: int) -> None:
    source = random.Random(seed)

    def line() -> Line:
        return [(source.choice(WORDS), source.choice(LOOKS)) for _ in range(source.randrange(9))]

    lines = [line() for _ in range(12)]
    screen = Screen(lines)
    for _ in range(30):
        top, by = source.randrange(6), source.randrange(4)
        if source.random() < 0.5:  # a part of it moves up
            lines = [*lines[:top], *lines[top + by :], *(line() for _ in range(by))]
        lines = [line() if source.random() < 0.2 else one for one in lines]
        screen.draw(lines)
        assert screen.cells == Screen(lines).cells


def test_only_the_cells_that_differ_are_written() -> None:
    screen = Screen([text("loss 0.5312   eta 10s"), text("step 1")])
    assert screen.draw([text("loss 0.5313   eta 10s"), text("step 1")]) == "\x1b[1;11H3"
    assert screen.draw([text("loss 0.5313   eta 10s"), text("step 1")]) == ""
    assert screen.draw([text("loss 0.5314   eta 19s"), text("step 1")]) == "\x1b[1;11H4\x1b[8C9"


def test_a_blank_in_another_ink_is_the_same_blank() -> None:
    screen = Screen([[("loss", "#ff0000"), ("      ", "#00ff00"), ("1", "")]])
    assert screen.draw([[("loss", "#ff0000"), ("      ", "dim"), ("1", "")]]) == ""


def test_colours_are_changed_as_seldom_as_it_pays() -> None:
    before, after = "#111111", "#222222"
    colours = ("#ff0000", "#00ff00")
    screen = Screen([[("x", before) for _ in range(30)] for _ in range(4)])
    written = screen.draw([[("y", colours[place % 2]) for place in range(30)] for _ in range(4)])
    assert written.count("38;2;") == 2
    assert after not in written


def test_a_log_that_grows_scrolls() -> None:
    log = [text(f"12:00:{place:02} epoch 1 loss {place * 7919 % 10_000:04}") for place in range(30)]
    screen = Screen([text("header"), *log[:20], text("footer")])
    written = screen.draw([text("header"), *log[1:21], text("footer")])
    assert "\x1b[2;21r" in written
    assert len(written) < 80
    assert screen.cells == Screen([text("header"), *log[1:21], text("footer")]).cells


def test_beside_a_panel_that_stands_the_cells_are_written_where_that_is_cheaper() -> None:
    log = [f"{place:02} loss {place * 7919 % 10:01}" for place in range(20)]
    beside = [f"  metric {'abcdefghijklmnopq'[place] * 12}" for place in range(10)]
    screen = Screen([text(one + other) for one, other in zip(log[:10], beside, strict=True)])
    written = screen.draw([text(one + other) for one, other in zip(log[1:11], beside, strict=True)])
    assert "r" not in written
    assert len(written) < 200


def test_a_full_update_writes_what_stands_there_already_too() -> None:
    screen = Screen([text("one"), text("two")])
    screen.shown.reset()  # another program has wiped it
    screen._feed(LayoutUpdate([[strip(text("one"))], [strip(text("two"))]], Region(0, 0, WIDTH, 2)))
    assert screen.cells == Screen([text("one"), text("two")]).cells
