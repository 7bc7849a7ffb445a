"""What a terminal is said to show; and a look-alike of one cell for every glyph."""

from __future__ import annotations

import io

import pytest

from mpstui.core.present import BADGES
from mpstui.core.terminal import colour_system, ground, lookalike, write_lookalikes


def test_every_state_has_a_look_alike_of_one_character() -> None:
    glyphs = {badge.glyph for badge in BADGES.values()}
    assert all(lookalike(glyph).isascii() and len(lookalike(glyph)) == 1 for glyph in glyphs)
    assert "?" not in {lookalike(glyph) for glyph in glyphs if glyph != "?" and not glyph.isascii()}


def test_a_stream_of_few_characters_keeps_its_columns() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    write_lookalikes(stream)
    stream.write("\u2717 failed \u2501\u2578\u2500 \u28ff\u2800 \u00e9")
    stream.flush()
    assert written.getvalue() == b"x failed ==- *  ?"


def test_what_can_be_written_is_not_touched() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="utf-8")
    write_lookalikes(stream)
    stream.write("\u2717")
    stream.flush()
    assert written.getvalue().decode() == "\u2717"


@pytest.mark.parametrize(
    ("environ", "choice", "colours"),
    [
        ({"COLORTERM": "truecolor", "TERM": "xterm"}, "auto", "truecolor"),
        ({"TERM": "xterm-256color"}, "auto", "256"),
        ({"TERM": "xterm-ghostty"}, "auto", "truecolor"),
        ({"TERM": "xterm-kitty", "SSH_CONNECTION": "1 2 3 4"}, "auto", "truecolor"),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "auto", "truecolor"),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/x", "LC_TERMINAL": "iTerm2"}, "auto", "256"),
        ({"TERM": "screen", "LC_TERMINAL": "iTerm2"}, "auto", "16"),
        ({"TERM": "xterm"}, "auto", "16"),
        ({"COLORTERM": "truecolor"}, "16", "16"),
        ({}, "auto", "16"),
    ],
)
def test_a_terminal_has_the_colours_it_says(environ: dict[str, str], choice: str, colours: str) -> None:
    assert colour_system(environ, choice) == colours


@pytest.mark.parametrize(
    ("told", "choice", "found"),
    [
        (None, "auto", "dark"),
        ("15;0", "auto", "dark"),
        ("0;15", "auto", "light"),
        ("0;default;15", "auto", "light"),
        ("0;7", "auto", "light"),
        ("nonsense", "auto", "dark"),
        ("0;15", "dark", "dark"),
        ("15;0", "light", "light"),
    ],
)
def test_the_ground_of_the_terminal(told: str | None, choice: str, found: str) -> None:
    assert ground({} if told is None else {"COLORFGBG": told}, choice) == found
