"""Colours: a dark theme and a light one for terminals with true colour, the terminal's own sixteen for every other.

In 256 colours a designed theme collapses into three greys, and in 16 it is unreadable; the ANSI themes are clean in
both, cost a third fewer bytes, and under NO_COLOR leave only weight. No state is told by colour alone.

A designed theme paints its own ground, so that it can be read whatever the terminal's is. The ANSI themes stand on the
terminal's ground: on a light one yellow and cyan, which most terminals keep bright, give way to magenta and blue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.style import Style
from textual.theme import Theme

OWN_THEME, ANSI_THEME = "mpstui", "ansi-dark"
OWN_LIGHT_THEME, ANSI_LIGHT_THEME = "mpstui-light", "ansi-light"
ANSI_THEMES = frozenset({ANSI_THEME, ANSI_LIGHT_THEME})


class _Inks(NamedTuple):
    """The colours of a designed theme, each named by what it is for a dark ground."""

    ink: str
    dim: str
    faint: str
    edge: str
    ground: str
    raised: str
    lit: str
    blue: str
    teal: str
    amber: str
    green: str
    red: str
    violet: str
    title: str
    raw: str
    cursor: str
    cached: str


_DARK = _Inks(
    ink="#c9cfda", dim="#7d8798", faint="#4a5263", edge="#2a303c", ground="#10131a", raised="#161a23", lit="#232b3b",
    blue="#7aa9f7", teal="#5cc8c0", amber="#e6b566", green="#8fce8a", red="#f07f88", violet="#b49df0",
    title="#eef1f6", raw="#2f6b70", cursor="#dfe5f0", cached="#4f6fa8",
)  # fmt: skip
_LIGHT = _Inks(
    ink="#24292f", dim="#5b6472", faint="#a2aab5", edge="#d3d8df", ground="#fbfbfa", raised="#f1f3f5", lit="#dce5f3",
    blue="#1d5cc0", teal="#00706a", amber="#955800", green="#28752d", red="#bd2436", violet="#6640bd",
    title="#0b0e12", raw="#93c4c0", cursor="#16191d", cached="#8ba8da",
)  # fmt: skip


def _theme(name: str, inks: _Inks, *, dark: bool) -> Theme:
    return Theme(
        name=name,
        dark=dark,
        primary=inks.blue,
        secondary=inks.teal,
        accent=inks.blue,
        warning=inks.amber,
        error=inks.red,
        success=inks.green,
        foreground=inks.ink,
        background=inks.ground,
        surface=inks.raised,
        panel=inks.lit,
        variables={
            "border": inks.blue,
            "border-blurred": inks.edge,
            "block-cursor-background": inks.lit,
            "block-cursor-foreground": inks.ink,
            "block-cursor-text-style": "none",
            "input-cursor-background": inks.ink,
            "input-selection-background": f"{inks.blue} 35%",
            "scrollbar": inks.edge,
            "scrollbar-hover": inks.faint,
            "scrollbar-active": inks.dim,
            "scrollbar-background": inks.ground,
            "scrollbar-background-hover": inks.ground,
            "scrollbar-background-active": inks.ground,
        },
    )


def _true_colours(inks: _Inks) -> Mapping[str, Style]:
    return {
        "dim": Style(color=inks.dim),
        "faint": Style(color=inks.faint),
        "strong": Style(bold=True),
        "title": Style(color=inks.title, bold=True),
        "brand": Style(color=inks.blue, bold=True),
        "key": Style(color=inks.blue),
        "good": Style(color=inks.green),
        "busy": Style(color=inks.teal),
        "warn": Style(color=inks.amber),
        "bad": Style(color=inks.red),
        "quiet": Style(color=inks.dim),
        "raw": Style(color=inks.raw),
        "train": Style(color=inks.teal),
        "val": Style(color=inks.amber),
        "mark": Style(color=inks.violet),
        "cursor": Style(color=inks.cursor),
        "bar": Style(color=inks.blue),
        "cached": Style(color=inks.cached),
        "track": Style(color=inks.edge),
        "selected": Style(color=inks.ink, bgcolor=inks.lit),
        "heading": Style(color=inks.dim),
        "match": Style(color=inks.ground, bgcolor=inks.amber),
        "raised": Style(color=inks.ink, bgcolor=inks.raised),
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
_ON_LIGHT = {
    "busy": Style(color="blue"),
    "warn": Style(color="magenta"),
    "raw": Style(color="blue", dim=True),
    "train": Style(color="blue", bold=True),
    "val": Style(color="magenta"),
    "mark": Style(color="red"),
}
"""What differs where the terminal's ground is light."""
_LOOKS: Mapping[str, Mapping[str, Style]] = {
    OWN_THEME: _true_colours(_DARK),
    OWN_LIGHT_THEME: _true_colours(_LIGHT),
    ANSI_THEME: _TERMINAL_COLOURS,
    ANSI_LIGHT_THEME: _TERMINAL_COLOURS | _ON_LIGHT,
}
THEMES = (_theme(OWN_THEME, _DARK, dark=True), _theme(OWN_LIGHT_THEME, _LIGHT, dark=False))
ROLES = frozenset(_TERMINAL_COLOURS)


def palette(theme_name: str) -> Mapping[str, Style]:
    """The look of every role under a theme."""
    return _LOOKS.get(theme_name, _TERMINAL_COLOURS)


def theme_for(environ: Mapping[str, str], colours: str, ground: str = "dark") -> str:
    """Which theme suits: ours need true colour, and give way to NO_COLOR (https://no-color.org).

    Args:
        ground: dark or light, see :func:`mpstui.core.present.terminal.ground`.
    """
    designed = colours == "truecolor" and not environ.get("NO_COLOR")
    if ground == "light":
        return OWN_LIGHT_THEME if designed else ANSI_LIGHT_THEME
    return OWN_THEME if designed else ANSI_THEME
