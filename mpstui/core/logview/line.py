"""One line of a log as a terminal shows it: its last redraw, without control sequences, with colours and level."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..formats.console import StyleSpan, colour_only, decode_line, style_spans

Level = Literal["error", "warning", "info"]
LONGEST_SHOWN = 4096
"""Characters of a line that are shown; the rest is only counted and searched."""
LONGEST_FRAME_BYTES = 1 << 16
MOST_REDRAWS = 64
_NEAR_BYTES = 1 << 12
"""Bytes at the end of a line to search first: they usually contain ``MOST_REDRAWS`` redraws if the line does."""

_ERROR = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL)\b|^\s*(?:\[rank\d+\]:\s*)?(?:Traceback \(most recent call last\)|"
    r"(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt)(?::|$))|^\s*[Ee]rror:|\b[Ff]atal(?: Python)? error\b|"
    r"[Aa]ssertion .{0,200}failed|failed assertion|Segmentation fault|Bus error|^Abort(?:ed| trap)|\bKilled(?::| ?9|$)|"
    r"terminate called|core dumped|out of memory|No space left on device"
)
_FRAME_OF_TRACEBACK = re.compile(r'^\s*(?:\[rank\d+\]:\s*)?File ".{1,500}", line \d+')
_WARNING = re.compile(r"\bWARN(?:ING)?\b|\b\w*Warning:|\b[Ww]arning:")
_INFO = re.compile(r"\b(?:INFO|DEBUG|NOTICE)\b")
_LETTERS = re.compile(r"[A-Za-z]")
_DRAWN_OVER = re.compile(rb"\r|\x08+|\x1b\[[0-9;]{0,9}[AFGHf]")
_BLANK = re.compile(rb"(?:\s|\x1b\[[0-9;?]{0,16}[A-Za-z])*")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line whose text is safe to print on any terminal."""

    number: int | None
    """From 1; None until the lines before it are counted."""
    offset: int
    """Byte offset of its beginning in the file."""
    end: int
    """Byte offset of the next line."""
    text: str
    spans: tuple[StyleSpan, ...] = ()
    level: Level | None = None
    hidden_characters: int = 0
    """Number of characters that are not shown; bytes, for the part that was not even read."""


def make_line(raw: bytes, offset: int, end: int, *, missing: int = 0) -> LogLine:
    """Make a line, not yet numbered, from its bytes.

    Args:
        missing: number of bytes of the line that ``raw`` leaves out.
    """
    marked = visible(raw)
    text, spans = style_spans(marked) if "\x1b" in marked else (marked, ())
    hidden = max(0, len(text) - LONGEST_SHOWN) + missing
    if hidden:
        text = f"{text[:LONGEST_SHOWN]} … {hidden:,} more characters"
        spans = tuple(StyleSpan(s.start, min(s.end, LONGEST_SHOWN), s.codes) for s in spans if s.start < LONGEST_SHOWN)
    return LogLine(None, offset, end, text, spans, level_of(text), hidden)


def visible(raw: bytes) -> str:
    """Return the text that a terminal would end up showing: the last redraw that is not blank.

    Colour (SGR) sequences are kept; all other control sequences are removed.
    """
    raw = raw.replace(b"\0", b"").rstrip(b"\r\n")
    if raw.isascii() and (text := raw.decode()).isprintable():
        return text[:LONGEST_FRAME_BYTES]
    if b"\r" in raw or b"\x08" in raw or b"\x1b" in raw:
        raw = last_frame(raw)
    return colour_only(decode_line(raw[:LONGEST_FRAME_BYTES]))


def last_frame(raw: bytes) -> bytes:
    """Return the last redraw of a line that is not blank."""
    for first in (max(0, len(raw) - _NEAR_BYTES), 0):
        borders, ends = [first], []
        for match in _DRAWN_OVER.finditer(raw, first):
            ends.append(match.start())
            borders.append(match.end())
        if len(ends) > MOST_REDRAWS or not first:
            break  # the first redraw found may be cut off at its beginning, but will not be tried
    ends.append(len(raw))
    for start, end in list(zip(borders, ends, strict=True))[: -MOST_REDRAWS - 1 : -1]:
        if not _BLANK.fullmatch(raw, start, end):
            return raw[start:end]
    return raw[borders[-1] :]


def level_of(text: str) -> Level | None:
    """Return the level that the words of a line suggest; a traceback and its frames are errors."""
    if not _LETTERS.search(text):
        return None
    if _ERROR.search(text) or _FRAME_OF_TRACEBACK.match(text):
        return "error"
    if _WARNING.search(text):
        return "warning"
    return "info" if _INFO.search(text) else None


def begins_error(text: str) -> bool:
    """True if "next error" stops at this line; it does not stop at each frame of a traceback."""
    return _ERROR.search(text) is not None
