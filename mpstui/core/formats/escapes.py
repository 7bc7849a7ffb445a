"""Control sequences of terminals: removed from any text, or kept as colour spans on demand.

Grammar of the sequences: ECMA-48 section 5.4 (CSI) and 5.6 (OSC, DCS, APC, PM, SOS). A sequence that is never closed
swallows at most ``ESCAPE_LIMIT`` characters, so that one stray byte cannot eat a log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ESCAPE_LIMIT = 4096
"""Characters after which an unterminated string sequence (OSC, DCS ...) is taken for text again."""

_CSI = r"(?:\x1b\[|\x9b)[0-?]{0,256}[ -/]{0,16}[@-~]"
_STRING = (
    rf"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9b-\x9f\n\r]{{0,{ESCAPE_LIMIT}}}(?:\x07|\x1b\\|\x9c)"
)
_SHORT = r"\x1b[ -/]{0,8}[0-~]"
_SEQUENCE = re.compile(rf"{_CSI}|{_STRING}|{_SHORT}|\x1b")
_SGR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_SUSPECT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class StyleSpan:
    """Characters ``start`` to ``end`` of the plain text carry the SGR parameters ``codes`` (``"1;31"``)."""

    start: int
    end: int
    codes: str


def strip_controls(text: str) -> str:
    """Text that is safe on any terminal: no escape sequence, no control but tab and newline, no direction override.

    Escape sequences vanish whole, control characters (C0, C1, DEL) and the invisible characters that reorder or break
    lines vanish singly, unpaired surrogates become U+FFFD. Idempotent, linear in the length of ``text``.
    """
    if not _SUSPECT.search(text):
        return text
    # Removing a sequence may join the halves of another: repeat until nothing is left (bounded by the nesting).
    while "\x1b" in text or "\x9b" in text:
        text = _SEQUENCE.sub("", text) if "\x1b" in text else text.replace("\x9b", "")
    return _SURROGATE.sub("\ufffd", _UNSAFE.sub("", text))


def colour_only(text: str) -> str:
    """``text`` without any control sequence but SGR (colour and weight)."""
    if not _SUSPECT.search(text):
        return text
    kept: list[str] = []
    position = 0
    for match in _SGR.finditer(text):
        kept += [strip_controls(text[position : match.start()]), match.group()]
        position = match.end()
    kept.append(strip_controls(text[position:]))
    return "".join(kept)


def style_spans(text: str) -> tuple[str, tuple[StyleSpan, ...]]:
    """The plain text of a line and the spans of it that SGR sequences colour, in order and without overlap."""
    plain: list[str] = []
    spans: list[StyleSpan] = []
    length, codes, position = 0, "", 0
    for match in _SGR.finditer(text):
        length = _append(plain, spans, strip_controls(text[position : match.start()]), length, codes)
        codes = _combine(codes, match.group(1))
        position = match.end()
    _append(plain, spans, strip_controls(text[position:]), length, codes)
    return "".join(plain), tuple(spans)


def _append(plain: list[str], spans: list[StyleSpan], piece: str, length: int, codes: str) -> int:
    if piece:
        plain.append(piece)
        if codes:
            spans.append(StyleSpan(length, length + len(piece), codes))
    return length + len(piece)


def _combine(before: str, codes: str) -> str:
    """SGR accumulates until a 0 (or nothing) resets it; 128 characters hold every real combination."""
    if codes in ("", "0", "00"):
        return ""
    joined = f"{before};{codes}" if before else codes
    return joined[-128:].lstrip(";")
