"""Rows: what comes from outside is made harmless, and everything keeps its width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.ui.rows import Span, bar, clean, clip, cut, fit, row, spread, width_of, wrap
from mpstui.ui.sgr import sgr_style
from mpstui.ui.theme import ANSI_THEME, OWN_THEME, palette, theme_for
from mpstui.ui.widgets.lines import changed_cells


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("two\nlines\tand", "two lines and"),
        ("right\u202eleft", "rightleft"),
        ("[bold]markup[/foo]", "[bold]markup[/foo]"),
    ],
)
def test_foreign_text_is_harmless(text: str, harmless: str) -> None:
    assert clean(text) == harmless


@given(st.text())
def test_cleaned_text_has_no_controls(text: str) -> None:
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in clean(text))


def test_a_megabyte_is_cut_before_it_is_looked_at() -> None:
    assert len(clean("x" * (1 << 20))) == 2000
    assert clean("x" * 30, 10) == "xxxxxxxxx…"


@given(st.text(alphabet="ab 日本語é", max_size=40), st.integers(1, 30))
def test_fit_is_exact(text: str, width: int) -> None:
    assert width_of(fit(text, width)) == width
    assert width_of(fit(text, width, "right")) == width
    assert width_of(cut(text, width)) <= width


@given(st.text(alphabet="ab 日", max_size=80), st.integers(2, 20), st.integers(1, 4))
def test_wrapping_stays_inside(text: str, width: int, most: int) -> None:
    lines = wrap(text, width, most)
    assert len(lines) <= most
    assert all(width_of(line) <= width for line in lines)


def test_wrapping_breaks_at_spaces_and_loses_nothing() -> None:
    assert wrap("one two three", 8, 5) == ["one two", "three"]
    assert wrap("abcdefghij", 4, 5) == ["abcd", "efgh", "ij"]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "──────"), (0.5, "━━━───"), (0.08, "╸─────"), (1.0, "━━━━━━"), (7.0, "━━━━━━"), (None, "┄┄┄┄┄┄")],
)
def test_a_bar_shows_its_share_without_colour(share: float | None, text: str) -> None:
    assert "".join(span.text for span in bar(share, 6)) == text


def test_spread_cuts_the_left_for_the_right() -> None:
    assert spread([Span("a long left side")], [Span("right")], 12).text == "a lon… right"
    assert spread([Span("a")], [], 3).text == "a  "


def test_clip_ends_in_an_ellipsis() -> None:
    assert "".join(span.text for span in clip((Span("abc"), Span("def")), 5)) == "abcd…"


def test_only_the_cells_that_differ_are_painted() -> None:
    before, after = row("loss 0.5312   eta 10s"), row("loss 0.5313   eta 10s")
    assert list(changed_cells(before, after, 40)) == [(10, 11)]
    assert list(changed_cells(before, before, 40)) == []
    far = row("loss 0.5313" + " " * 20 + "eta 9s")
    near = row("loss 0.5312" + " " * 20 + "eta 8s")
    assert len(list(changed_cells(near, far, 60))) == 2
    assert list(changed_cells(row("x"), row("x", base="selected"), 9)) == [(0, 9)]


def test_every_role_has_a_look_in_both_themes() -> None:
    assert palette(OWN_THEME).keys() == palette(ANSI_THEME).keys()


@pytest.mark.parametrize(
    ("environ", "colours", "theme"),
    [({}, "truecolor", OWN_THEME), ({"NO_COLOR": "1"}, "truecolor", ANSI_THEME), ({}, "256", ANSI_THEME)],
)
def test_themes_follow_the_terminal(environ: dict[str, str], colours: str, theme: str) -> None:
    assert theme_for(environ, colours) == theme


def test_a_programs_own_colours_are_kept() -> None:
    assert sgr_style("1;31").bold
    assert str(sgr_style("38;5;208").color) == str(sgr_style("38:5:208").color)
    assert sgr_style("38;2;1;2;3").color is not None
    assert sgr_style("94").color is not None
    assert sgr_style("38;5").color is None
    assert not sgr_style("999;;x")
    assert sgr_style("31;0") == sgr_style("0")
