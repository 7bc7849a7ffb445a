"""What stands for a character that a locale cannot write: one of ASCII for each, so that columns stay in place."""

from __future__ import annotations

import codecs
import io

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


def alike(character: str) -> str:
    """An ASCII character that looks or means nearly the same, else a question mark."""
    if ord(character) in _BRAILLE:
        return " " if character == "\u2800" else "*"
    return _ALIKE.get(character, "?")


def write_what_can_be(stream: object) -> None:
    """Have a text stream write look-alikes instead of failing on a name that its locale cannot write."""
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error(_HANDLER, _replaced)
        stream.reconfigure(errors=_HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(alike, error.object[error.start : error.end])), error.end
