"""What a terminal can show: how many colours, on which background, with which characters."""

from __future__ import annotations

import codecs
import io
from collections.abc import Mapping

_TRUE_COLOUR_TERMS = ("kitty", "ghostty", "wezterm", "alacritty", "foot", "contour", "iterm", "direct")
"""Names of terminals with true colour, as found in TERM or in LC_TERMINAL (which ssh forwards)."""


def colour_system(environ: Mapping[str, str], choice: str = "auto") -> str:
    """Return ``16``, ``256`` or ``truecolor``: ``choice``, or if that is ``auto``, what the terminal reports.

    Terminals with true colour set COLORTERM. ssh does not forward it, so a remote session goes by the terminal's name.
    Inside tmux or screen that name is theirs; see :func:`mpstui.cli.screen.tmux_features`.
    """
    if choice != "auto":
        return choice
    if environ.get("COLORTERM", "").strip().lower() in {"truecolor", "24bit"}:
        return "truecolor"
    term = environ.get("TERM", "")
    inside = bool(environ.get("TMUX")) or term.startswith(("tmux", "screen"))
    told = f"{term} {environ.get('LC_TERMINAL', '')}".lower()
    if not inside and any(name in told for name in _TRUE_COLOUR_TERMS):
        return "truecolor"
    return "256" if "256color" in term or (inside and not term.startswith("screen")) else "16"


_LIGHT_GROUNDS = frozenset({"7", "15"})
"""White and bright white: the only light ones among COLORFGBG's sixteen colours."""


def ground(environ: Mapping[str, str], choice: str = "auto") -> str:
    """Return ``light`` or ``dark``: ``choice``, or if that is ``auto``, the background in COLORFGBG, else dark.

    Konsole, iTerm2, rxvt and others set COLORFGBG (``0;15``: foreground, background). A terminal could be asked
    (OSC 11), but one that does not answer would hold up the first paint, over SSH for seconds.
    """
    if choice != "auto":
        return choice
    return "light" if environ.get("COLORFGBG", "").rpartition(";")[2].strip() in _LIGHT_GROUNDS else "dark"


_HANDLER = "mpstui.plain"
_ALIKE = {
    **dict.fromkeys("━╸═", "="),
    **dict.fromkeys("─┄╌–—", "-"),
    **dict.fromkeys("│┊┤├▌▐▕▏", "|"),
    **dict.fromkeys("╭╮╰╯┌┐└┘┬┴┼", "+"),
    **dict.fromkeys("●◉◍◆■★", "*"),
    **dict.fromkeys("◌◔◐◕", "o"),
    **dict.fromkeys("✗⊘×", "x"),
    **dict.fromkeys("▁▂▃", "."),
    **dict.fromkeys("▄▅▆", "o"),
    **dict.fromkeys("▇█", "#"),
    **dict.fromkeys("‹«", "<"),
    **dict.fromkeys("›»→", ">"),
    **{"…": ".", "·": "-", "✓": "v", "▲": "!", "‖": "=", "↻": "@", "☾": "(", "▼": "v", "↑": "^", "↓": "v", "←": "<"},
    **{"⏎": "<", "░": ":", "•": "o", "▔": "~", "▾": "v"},
}


def lookalike(character: str) -> str:
    """Return an ASCII character that looks or means nearly the same; a question mark if there is none."""
    if "\u2800" <= character <= "\u28ff":  # braille
        return " " if character == "\u2800" else "*"
    return _ALIKE.get(character, "?")


def write_lookalikes(stream: object) -> None:
    """Make a text stream write look-alikes of characters that its encoding lacks instead of failing."""
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error(_HANDLER, _replaced)
        stream.reconfigure(errors=_HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(lookalike, error.object[error.start : error.end])), error.end
