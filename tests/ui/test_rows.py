"""Rows: what comes from outside is made harmless, and everything keeps its width."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color, ColorSystem
from textual.theme import Theme

from mpstui.ui.painting import pen_of
from mpstui.ui.rows import Span, bar, clean, clip, cut, fit, spread, width_of, wrap
from mpstui.ui.theme import (
    ANSI_LIGHT_THEME,
    ANSI_THEME,
    OWN_256_LIGHT_THEME,
    OWN_256_THEME,
    OWN_LIGHT_THEME,
    OWN_THEME,
    ROLES,
    RUN_ROLES,
    THEMES,
    palette,
    sgr_style,
    theme_for,
)


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


def test_every_role_has_a_look_in_both_themes() -> None:
    for theme in (*(one.name for one in THEMES), ANSI_THEME, ANSI_LIGHT_THEME):
        assert palette(theme).keys() == ROLES


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours (WCAG 2.2, relative luminance)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


DRAWN = {"track", "cached", "bar", "cursor", "train-range", "val-range", "ghost"}
"""Roles of lines and bars, not of words."""


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_every_word_stands_out_from_every_ground_it_is_written_on(theme: Theme) -> None:
    looks = palette(theme.name)
    ground, raised, lit = theme.background, theme.surface, theme.panel
    for role in ROLES - DRAWN:
        ink, own = looks[role].color, looks[role].bgcolor
        behind = [str(one) for one in (ground, raised, lit)] if own is None else [own.name]
        for one in behind:
            words = ink.name if ink is not None else str(theme.foreground)
            assert contrast(words, one) >= 4.5, (role, one)
    for curve in ("train", "val"):
        ink, tint = looks[curve].color, looks[f"{curve}-range-over"].bgcolor
        assert ink is not None
        assert tint is not None
        assert contrast(ink.name, tint.name) >= 4.5, curve


_XTERM = {
    "black": "#000000", "red": "#cd0000", "green": "#00cd00", "yellow": "#cdcd00", "blue": "#0000ee",
    "magenta": "#cd00cd", "cyan": "#00cdcd", "white": "#e5e5e5", "bright_red": "#ff0000",
    "bright_magenta": "#ff00ff", "bright_white": "#ffffff", "bright_blue": "#5c5cff",
}  # fmt: skip
"""The sixteen as xterm has them, whose reds and blues are among the darkest."""


@pytest.mark.parametrize(("theme", "ground"), [(ANSI_THEME, "#000000"), (ANSI_LIGHT_THEME, "#ffffff")])
def test_words_can_be_read_in_sixteen_colours_and_without_any(theme: str, ground: str) -> None:
    """Dim letters are drawn with as little as two fifths of their ink."""
    for role in ROLES - DRAWN - {"off"}:
        look = palette(theme)[role]
        assert not look.dim, role
        if look.color is not None and not look.reverse:
            least = 4.4 if role.startswith("run") else 4.5  # bright blue: the label of a run is named in the table too
            assert contrast(_XTERM[look.color.name], ground) >= least, role


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_twenty_runs_have_twenty_colours_that_are_told_apart(theme: Theme) -> None:
    looks = palette(theme.name)
    inks = [looks[role].color for role in RUN_ROLES]
    places = [oklab(ink.name) for ink in inks if ink is not None]
    assert len(places) == len(RUN_ROLES) == 20
    nearest = min(math.dist(one, other) for at, one in enumerate(places) for other in places[:at])
    assert nearest > 0.06, "three times what is seen as a difference at all"


def oklab(colour: str) -> tuple[float, float, float]:
    """Where a colour lies among what is seen: equal distances look equally different (Ottosson's Oklab)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    long = math.cbrt(0.4122 * red + 0.5363 * green + 0.0514 * blue)
    middle = math.cbrt(0.2119 * red + 0.6807 * green + 0.1074 * blue)
    short = math.cbrt(0.0883 * red + 0.2817 * green + 0.6300 * blue)
    return (
        0.2105 * long + 0.7936 * middle - 0.0041 * short,
        1.9780 * long - 2.4286 * middle + 0.4506 * short,
        0.0259 * long + 0.7828 * middle - 0.8087 * short,
    )


@pytest.mark.parametrize("name", [OWN_256_THEME, OWN_256_LIGHT_THEME])
def test_the_inks_for_256_colours_are_among_them(name: str) -> None:
    for role, look in palette(name).items():
        pen = pen_of(look, ColorSystem.EIGHT_BIT)
        for colour, codes in ((look.color, pen.ink), (look.bgcolor, pen.ground)):
            if colour is not None:
                shown = Color.from_ansi(int(codes.rpartition(";")[2])).get_truecolor()
                assert shown == colour.get_truecolor(), role


@pytest.mark.parametrize(
    ("environ", "colours", "theme"),
    [
        ({}, "truecolor", OWN_THEME),
        ({"NO_COLOR": "1"}, "truecolor", ANSI_THEME),
        ({}, "256", OWN_256_THEME),
        ({}, "16", ANSI_THEME),
    ],
)
def test_themes_follow_the_terminal(environ: dict[str, str], colours: str, theme: str) -> None:
    assert theme_for(environ, colours) == theme
    light = {OWN_THEME: OWN_LIGHT_THEME, OWN_256_THEME: OWN_256_LIGHT_THEME, ANSI_THEME: ANSI_LIGHT_THEME}[theme]
    assert theme_for(environ, colours, "light") == light


def test_a_programs_own_colours_are_kept() -> None:
    assert sgr_style("1;31").bold
    assert str(sgr_style("38;5;208").color) == str(sgr_style("38:5:208").color)
    assert sgr_style("38;2;1;2;3").color is not None
    assert sgr_style("94").color is not None
    assert sgr_style("38;5").color is None
    assert not sgr_style("999;;x")
    assert sgr_style("31;0") == sgr_style("0")
