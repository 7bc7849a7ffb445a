"""What a terminal can show: how many colours, on which ground, and look-alikes for characters that its locale lacks."""

from __future__ import annotations

import codecs
import io
from collections.abc import Mapping

_TEXTUAL_NAMES = {"16": "standard", "256": "256", "truecolor": "truecolor"}


def colour_system(environ: Mapping[str, str], choice: str = "auto") -> str:
    """``16``, ``256`` or ``truecolor``: what was asked for, else what the terminal says of itself.

    Terminals that know true colour set COLORTERM; ssh does not forward it, so a remote session gets its terminal's
    sixteen colours or 256 by the ending of TERM.
    """
    if choice != "auto":
        return choice
    if environ.get("COLORTERM", "").strip().lower() in {"truecolor", "24bit"}:
        return "truecolor"
    term = environ.get("TERM", "")
    return "256" if term.endswith(("-256color", "-kitty", "-direct")) else "16"


_LIGHT_GROUNDS = frozenset({"7", "15"})
"""White and bright white, the only light ones of the sixteen that COLORFGBG counts in."""


def ground(environ: Mapping[str, str], choice: str = "auto") -> str:
    """``light`` or ``dark``: what was asked for, else what the terminal says of its background; dark where it does not.

    COLORFGBG (``0;15``: foreground, background) is set by Konsole, iTerm2, rxvt and those that follow them. A terminal
    could be asked (OSC 11), but one that does not answer would hold up the first paint, over SSH for seconds.
    """
    if choice != "auto":
        return choice
    return "light" if environ.get("COLORFGBG", "").rpartition(";")[2].strip() in _LIGHT_GROUNDS else "dark"


def textual_colour_system(colours: str) -> str:
    """The name that Textual reads from TEXTUAL_COLOR_SYSTEM when it is imported."""
    return _TEXTUAL_NAMES[colours]


_HANDLER = "mpstui.plain"
_ALIKE = {
    **dict.fromkeys("━╸═", "="),
    **dict.fromkeys("─┄╌–—", "-"),
    **dict.fromkeys("│┊┤├▌▐▕▏", "|"),
    **dict.fromkeys("╭╮╰╯┌┐└┘┬┴┼", "+"),
    **dict.fromkeys("●◉◍◆■★", "*"),
    **dict.fromkeys("◌◔◐", "o"),
    **dict.fromkeys("✗⊘×", "x"),
    **dict.fromkeys("▁▂▃", "."),
    **dict.fromkeys("▄▅▆", "o"),
    **dict.fromkeys("▇█", "#"),
    **dict.fromkeys("‹«", "<"),
    **dict.fromkeys("›»→", ">"),
    **{"…": ".", "·": "-", "✓": "v", "▲": "!", "‖": "=", "↻": "@", "☾": "(", "▼": "v", "↑": "^", "↓": "v", "←": "<"},
    "⏎": "<",
}
_BRAILLE = range(0x2800, 0x2900)


def lookalike(character: str) -> str:
    """An ASCII character that looks or means nearly the same, else a question mark."""
    if ord(character) in _BRAILLE:
        return " " if character == "\u2800" else "*"
    return _ALIKE.get(character, "?")


def write_lookalikes(stream: object) -> None:
    """Have a text stream write look-alikes instead of failing on a name that its locale cannot write."""
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error(_HANDLER, _replaced)
        stream.reconfigure(errors=_HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(lookalike, error.object[error.start : error.end])), error.end
