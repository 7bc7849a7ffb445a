"""A program's own colours: SGR parameters (ECMA-48 8.3.117, with the 256 and true colours of ISO 8613-6) as a style."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from rich.color import Color
from rich.style import Style

_ATTRIBUTES = {
    1: Style(bold=True),
    2: Style(dim=True),
    3: Style(italic=True),
    4: Style(underline=True),
    7: Style(reverse=True),
    9: Style(strike=True),
    22: Style(bold=False, dim=False),
    23: Style(italic=False),
    24: Style(underline=False),
    27: Style(reverse=False),
    29: Style(strike=False),
    39: Style(color="default"),
    49: Style(bgcolor="default"),
}
_BRIGHT = 8


@lru_cache(512)
def sgr_style(codes: str) -> Style:
    """The style that parameters like ``1;31`` or ``38;5;208`` add up to; unknown ones change nothing."""
    style = Style()
    numbers = iter([int(part) if part.isdigit() else 0 for part in codes.replace(":", ";").split(";")])
    for number in numbers:
        style = Style() if number == 0 else style + _one(number, numbers)
    return style


def _one(number: int, rest: Iterator[int]) -> Style:
    if number in (38, 48):
        colour = _extended(rest)
        if colour is None:
            return Style()
        return Style(color=colour) if number == 38 else Style(bgcolor=colour)
    for first, background, offset in ((30, False, 0), (40, True, 0), (90, False, _BRIGHT), (100, True, _BRIGHT)):
        if first <= number < first + 8:
            colour = Color.from_ansi(number - first + offset)
            return Style(bgcolor=colour) if background else Style(color=colour)
    return _ATTRIBUTES.get(number, Style())


def _extended(rest: Iterator[int]) -> Color | None:
    kind = next(rest, None)
    if kind == 5:
        number = next(rest, None)
        return Color.from_ansi(number) if number is not None and number < 256 else None
    if kind == 2:
        parts = [min(255, next(rest, 0)) for _ in range(3)]
        return Color.from_rgb(*parts)
    return None
