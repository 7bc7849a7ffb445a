"""Colours: a dark and a light theme, each in true colour and in 256, and the terminal's own sixteen for all others.

The inks for 256 colours are cells of its cube and greys of its ramp, chosen by hand: the nearest matches of the true
colours would be three greys. Under NO_COLOR the sixteen leave only weight; no state is shown by colour alone.

A designed theme paints its own background, so that it is readable whatever the terminal's is; text contrasts with
every background it is written on by 4.5 to 1 or more (WCAG 2.2), which a test checks. The ANSI themes use that of the
terminal: on a light one, yellow and cyan, which most terminals keep bright, are replaced by magenta and blue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import cycle

from rich.ansi import SGR_STYLE_MAP
from rich.color import Color
from rich.style import Style
from textual.theme import Theme

OWN_THEME, OWN_256_THEME, ANSI_THEME = "mpstui", "mpstui-256", "ansi-dark"
OWN_LIGHT_THEME, OWN_256_LIGHT_THEME, ANSI_LIGHT_THEME = "mpstui-light", "mpstui-256-light", "ansi-light"
ANSI_THEMES = frozenset({ANSI_THEME, ANSI_LIGHT_THEME})

_INKS: Mapping[str, dict[str, str]] = {
    OWN_THEME: {
        "ink": "#c9cfda", "dim": "#96a0b2", "faint": "#838ea1", "edge": "#2a303c", "ground": "#10131a",
        "raised": "#161a23", "lit": "#1f2736", "blue": "#7aa9f7",
        "teal": "#5cc8c0", "amber": "#e6b566", "green": "#8fce8a", "red": "#f07f88",
        "violet": "#b49df0", "title": "#eef1f6", "cursor": "#dfe5f0", "cached": "#4f6fa8",
        "trainrange": "#203c42", "valrange": "#3d3526",
    },
    OWN_LIGHT_THEME: {
        "ink": "#24292f", "dim": "#4d5663", "faint": "#5f6977", "edge": "#d3d8df", "ground": "#fbfbfa",
        "raised": "#f1f3f5", "lit": "#e1e9f5", "blue": "#1d5cc0",
        "teal": "#006a64", "amber": "#8a5100", "green": "#226a28", "red": "#b51f30",
        "violet": "#6640bd", "title": "#0b0e12", "cursor": "#16191d", "cached": "#8ba8da",
        "trainrange": "#cfe5e2", "valrange": "#efe1c9",
    },
    OWN_256_THEME: {
        "ink": "#d0d0d0", "dim": "#b2b2b2", "faint": "#9e9e9e", "edge": "#3a3a3a", "ground": "#121212",
        "raised": "#1c1c1c", "lit": "#303030", "blue": "#87afff",
        "teal": "#5fd7d7", "amber": "#d7af5f", "green": "#87d787", "red": "#ff8787",
        "violet": "#af87ff", "title": "#eeeeee", "cursor": "#e4e4e4", "cached": "#5f87af",
        "trainrange": "#262626", "valrange": "#303030",
    },
    OWN_256_LIGHT_THEME: {
        "ink": "#262626", "dim": "#4e4e4e", "faint": "#585858", "edge": "#d0d0d0", "ground": "#ffffff",
        "raised": "#eeeeee", "lit": "#d7d7ff", "blue": "#005faf",
        "teal": "#005f5f", "amber": "#5f5f00", "green": "#005f00", "red": "#af0000",
        "violet": "#5f00d7", "title": "#000000", "cursor": "#121212", "cached": "#87afd7",
        "trainrange": "#d7ffff", "valrange": "#ffffd7",
    },
}  # fmt: skip
_ROLES: dict[str, tuple[str, ...]] = {
    "dim": ("{dim}", ""),
    "ghost": ("{dim}", "dim"),
    "faint": ("{faint}", ""),
    "off": ("{faint}", "dim"),
    "strong": ("bold", "bold"),
    "title": ("bold {title}", "bold"),
    "brand": ("bold {blue}", "bold cyan", "bold blue"),
    "key": ("{blue}", "bold cyan", "bold blue"),
    "good": ("{green}", "green", "blue"),
    "busy": ("{teal}", "cyan", "blue"),
    "warn": ("{amber}", "yellow", "magenta"),
    "bad": ("{red}", "bold bright_red", "bold red"),
    "quiet": ("{dim}", ""),
    "train-range": ("{trainrange} on {trainrange}", "dim cyan", "dim blue"),
    "train-range-over": ("on {trainrange}", ""),
    "val-range": ("{valrange} on {valrange}", "dim yellow", "dim magenta"),
    "val-range-over": ("on {valrange}", ""),
    "train": ("{teal}", "bold cyan", "bold blue"),
    "val": ("{amber}", "yellow", "magenta"),
    "mark": ("{violet}", "bright_magenta", "red"),
    "pinned": ("{blue}", "bold bright_white", "blue"),
    "cursor": ("{cursor}", "bold"),
    "bar": ("{blue}", "bright_blue", "blue"),
    "cached": ("{cached}", "dim blue"),
    "track": ("{edge}", "dim"),
    "selected": ("{ink} on {lit}", "reverse"),
    "heading": ("{dim}", ""),
    "match": ("{ground} on {amber}", "reverse"),
    "raised": ("{ink} on {raised}", ""),
}
"""The look of each role: in a designed theme, in the terminal's own colours, on a light ground if that differs.

Terminals draw *dim* (SGR 2) at between two thirds and two fifths of the ink, which is unreadable: with sixteen colours
it is used only for lines and for keys that do nothing now.
"""
_RUNS = ("train", "val", "mark", "good", "bar", "bad", "title", "quiet")
"""The looks of runs drawn over each other; with sixteen colours they repeat, and labels tell runs of one look apart."""
_MORE_RUNS = {
    OWN_THEME: "ffff5a 00a54b 3cffff b4873c ffb4d2 87ff96 d269c3 a5d2ff 00a5a5 ff87e1 f0e196 87b400",
    OWN_LIGHT_THEME: "2d0078 5a0f00 780069 003c1e a53c96 003c69 00004b 3c003c 87002d 5a3c00 4b2d4b 2d1e00",
    OWN_256_THEME: "ffff5f ffafff 00af87 87af00 87ffd7 ffd787 00afd7 afd7ff d78700 afff87 ff87d7 ffafaf",
    OWN_256_LIGHT_THEME: "00005f 5f005f af0087 5f0000 0000af 0000ff 8700af 87005f 870000 000087 5f0087 0000d7",
}
"""Colours of further runs: far from each other and from all before, and readable on every background."""
RUN_ROLES = tuple(f"run{number}" for number in range(1, 21))
for _name, _colours in _MORE_RUNS.items():
    _INKS[_name].update(zip(RUN_ROLES[len(_RUNS) :], (f"#{ink}" for ink in _colours.split()), strict=True))
_ROLES |= {role: _ROLES[look] for role, look in zip(RUN_ROLES, cycle(_RUNS))}
_ROLES |= {role: (f"{{{role}}}", *_ROLES[role][1:]) for role in RUN_ROLES[len(_RUNS) :]}
ROLES = frozenset(_ROLES)


@lru_cache(4)
def palette(theme_name: str) -> Mapping[str, Style]:
    """Return the look of every role under a theme."""
    inks = _INKS.get(theme_name)
    if inks is not None:
        return {role: Style.parse(looks[0].format(**inks)) for role, looks in _ROLES.items()}
    on_light = theme_name == ANSI_LIGHT_THEME
    return {role: Style.parse(looks[-1] if on_light else looks[1]) for role, looks in _ROLES.items()}


def picture_inks(*, dark: bool) -> dict[str, str]:
    """Return the inks of a designed theme by name, for pictures of charts."""
    return dict(_INKS[OWN_THEME if dark else OWN_LIGHT_THEME])


def pixel_inks(theme_name: str) -> dict[str, tuple[int, int, int]] | None:
    """Return the inks of a theme as RGB; None if the terminal's own colours are used."""
    inks = _INKS.get(theme_name)
    if inks is None:
        return None
    return {name: tuple(Color.parse(ink).get_truecolor()) for name, ink in inks.items()}  # type: ignore[misc]


def ink_of(theme_name: str, role: str) -> tuple[int, int, int]:
    """Return the ink of a role in a designed theme as RGB."""
    colour = palette(theme_name)[role].color
    return tuple((colour or Color.parse("default")).get_truecolor())  # type: ignore[return-value]


def theme_for(environ: Mapping[str, str], colours: str, ground: str = "dark") -> str:
    """Return the theme that suits a terminal: ours need 256 colours, and yield to NO_COLOR (https://no-color.org).

    Args:
        ground: dark or light, see :func:`mpstui.core.terminal.ground`.
    """
    dark, light = {
        "truecolor": (OWN_THEME, OWN_LIGHT_THEME),
        "256": (OWN_256_THEME, OWN_256_LIGHT_THEME),
    }.get("" if environ.get("NO_COLOR") else colours, (ANSI_THEME, ANSI_LIGHT_THEME))
    return light if ground == "light" else dark


def _theme(name: str, inks: Mapping[str, str]) -> Theme:
    return Theme(
        name=name,
        dark=name in (OWN_THEME, OWN_256_THEME),
        primary=inks["blue"],
        secondary=inks["teal"],
        accent=inks["blue"],
        warning=inks["amber"],
        error=inks["red"],
        success=inks["green"],
        foreground=inks["ink"],
        background=inks["ground"],
        surface=inks["raised"],
        panel=inks["lit"],
        variables={
            "border": inks["blue"],
            "border-blurred": inks["edge"],
            "block-cursor-background": inks["lit"],
            "block-cursor-foreground": inks["ink"],
            "block-cursor-text-style": "none",
            "input-cursor-background": inks["ink"],
            "input-selection-background": f"{inks['blue']} 35%",
            "scrollbar": inks["edge"],
            "scrollbar-hover": inks["faint"],
            "scrollbar-active": inks["dim"],
            **dict.fromkeys((f"scrollbar-background{kind}" for kind in ("", "-hover", "-active")), inks["ground"]),
        },
    )


THEMES = tuple(_theme(name, inks) for name, inks in _INKS.items())

_SHOWN_CODES = frozenset(
    {1, 2, 3, 4, 7, 9, 22, 23, 24, 27, 29, 39, 49, *range(30, 38), *range(40, 48), *range(90, 98), *range(100, 108)}
)
"""A program's own colours and weights; codes that make text blink or hide it are left out."""


@lru_cache(512)
def sgr_style(codes: str) -> Style:
    """Return the style that SGR parameters like ``1;31`` or ``38;5;208`` add up to (ECMA-48, ISO 8613-6)."""
    style = Style()
    numbers = iter([int(part) if part.isdigit() else 0 for part in codes.replace(":", ";").split(";")])
    for number in numbers:
        if number in (38, 48):
            colour = _extended(numbers)
            style += Style(color=colour) if number == 38 else Style(bgcolor=colour)
        elif number in _SHOWN_CODES:
            style += Style.parse(SGR_STYLE_MAP[number])
        elif number == 0:
            style = Style()
    return style


def _extended(rest: Iterator[int]) -> Color | None:
    """Return a colour given by its index of 256, or by its red, green and blue."""
    kind = next(rest, None)
    if kind == 5:
        number = next(rest, None)
        return Color.from_ansi(number) if number is not None and number < 256 else None
    return Color.from_rgb(*(min(255, next(rest, 0)) for _ in range(3))) if kind == 2 else None
