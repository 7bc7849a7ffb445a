"""Colours: one calm dark theme for terminals with true colour, the terminal's own sixteen for every other.

In 256 colours a designed dark theme collapses into three greys, and in 16 it is unreadable; the ANSI theme is clean in
both, costs a third fewer bytes, and under NO_COLOR leaves only weight. No state is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.theme import Theme

OWN_THEME, ANSI_THEME = "mpstui", "ansi-dark"

_INK, _DIM, _FAINT, _EDGE = "#c9cfda", "#7d8798", "#4a5263", "#2a303c"
_GROUND, _RAISED, _LIT = "#10131a", "#161a23", "#232b3b"
_BLUE, _TEAL, _AMBER, _GREEN, _RED, _VIOLET = "#7aa9f7", "#5cc8c0", "#e6b566", "#8fce8a", "#f07f88", "#b49df0"

THEME = Theme(
    name=OWN_THEME,
    dark=True,
    primary=_BLUE,
    secondary=_TEAL,
    accent=_BLUE,
    warning=_AMBER,
    error=_RED,
    success=_GREEN,
    foreground=_INK,
    background=_GROUND,
    surface=_RAISED,
    panel=_LIT,
    variables={
        "border": _BLUE,
        "border-blurred": _EDGE,
        "block-cursor-background": _LIT,
        "block-cursor-foreground": _INK,
        "block-cursor-text-style": "none",
        "input-cursor-background": _INK,
        "input-selection-background": f"{_BLUE} 35%",
        "scrollbar": _EDGE,
        "scrollbar-hover": _FAINT,
        "scrollbar-active": _DIM,
        "scrollbar-background": _GROUND,
        "scrollbar-background-hover": _GROUND,
        "scrollbar-background-active": _GROUND,
    },
)

_TRUE_COLOUR = {
    "dim": Style(color=_DIM),
    "faint": Style(color=_FAINT),
    "strong": Style(bold=True),
    "title": Style(color="#eef1f6", bold=True),
    "brand": Style(color=_BLUE, bold=True),
    "key": Style(color=_BLUE),
    "good": Style(color=_GREEN),
    "busy": Style(color=_TEAL),
    "warn": Style(color=_AMBER),
    "bad": Style(color=_RED),
    "quiet": Style(color=_DIM),
    "raw": Style(color="#2f6b70"),
    "train": Style(color=_TEAL),
    "val": Style(color=_AMBER),
    "mark": Style(color=_VIOLET),
    "cursor": Style(color="#dfe5f0"),
    "bar": Style(color=_BLUE),
    "cached": Style(color="#4f6fa8"),
    "track": Style(color=_EDGE),
    "selected": Style(bgcolor=_LIT),
    "heading": Style(color=_DIM),
    "match": Style(color=_GROUND, bgcolor=_AMBER),
    "raised": Style(bgcolor=_RAISED),
}
_TERMINAL_COLOURS = {
    "dim": Style(dim=True),
    "faint": Style(dim=True),
    "strong": Style(bold=True),
    "title": Style(bold=True),
    "brand": Style(color="blue", bold=True),
    "key": Style(bold=True),
    "good": Style(color="green"),
    "busy": Style(color="cyan"),
    "warn": Style(color="yellow"),
    "bad": Style(color="red", bold=True),
    "quiet": Style(dim=True),
    "raw": Style(color="cyan", dim=True),
    "train": Style(color="cyan", bold=True),
    "val": Style(color="yellow"),
    "mark": Style(color="magenta"),
    "cursor": Style(bold=True),
    "bar": Style(color="blue"),
    "cached": Style(color="blue", dim=True),
    "track": Style(dim=True),
    "selected": Style(reverse=True),
    "heading": Style(dim=True),
    "match": Style(reverse=True),
    "raised": Style(),
}
ROLES = frozenset(_TRUE_COLOUR)


def palette(theme_name: str) -> Mapping[str, Style]:
    """The look of every role under a theme."""
    return _TRUE_COLOUR if theme_name == OWN_THEME else _TERMINAL_COLOURS


def theme_for(environ: Mapping[str, str], colours: str) -> str:
    """Which theme suits: ours needs true colour, and gives way to NO_COLOR (https://no-color.org)."""
    return OWN_THEME if colours == "truecolor" and not environ.get("NO_COLOR") else ANSI_THEME
