"""From a console's bytes to clean text: encodings, control sequences, redraws.

A *frame* is what was drawn before the cursor went back (carriage return, cursor up, backspaces) or down (newline).
`FrameSplitter` is incremental, linear in the bytes, holds at most ``PENDING_LIMIT`` bytes, and gives the same frames
however the bytes are split into chunks. Control sequences (ECMA-48 section 5.4, CSI, and 5.6, OSC, DCS, APC, PM, SOS)
are removed from any text, or kept as colour spans. One that is never closed swallows at most ``ESCAPE_LIMIT``
characters, so that a stray byte cannot eat a log.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
SNIFF_BYTES = 4


def sniff_utf16(start: bytes) -> str | None:
    """Return the UTF-16 encoding that a file's first four bytes show (BOM, or ASCII in 16 bits), or None."""
    if start[:2] in _UTF16:
        return _UTF16[start[:2]]
    if len(start) < SNIFF_BYTES:
        return None
    if start[0] and start[2] and not start[1] and not start[3]:
        return "utf-16-le"
    if start[1] and start[3] and not start[0] and not start[2]:
        return "utf-16-be"
    return None


def utf8_of(line: bytes, encoding: str) -> bytes:
    """Return a line cut out of UTF-16 text after the byte 0x0A as UTF-8, with U+FFFD for what is invalid.

    The second byte of a little-endian newline is left at the start of the next line.
    """
    if encoding == "utf-16-le":
        line = line[1:] + b"\0" if line[:1] == b"\0" else line + b"\0"
        line = line[: len(line) - len(line) % 2]
    return line.decode(encoding, errors="replace").removeprefix("\ufeff").encode(errors="replace")


_JUDGED_CHARACTERS = 4096


def decode_line(line: bytes) -> str:
    """Decode one line: UTF-8, else GB18030 if that gives plausible Chinese, else UTF-8 with U+FFFD for bad bytes.

    This is decided line by line, so that a log whose writers disagree is still readable and the result does not depend
    on how the bytes arrived.
    """
    try:
        return line.decode()
    except UnicodeDecodeError:
        pass
    try:
        text = line.decode("gb18030")
    except UnicodeDecodeError:
        return line.decode(errors="replace")
    # Plausible: nearly all non-ASCII characters are common ideographs or their punctuation.
    foreign = [c for c in text[:_JUDGED_CHARACTERS] if c > "\x7f"]
    common = sum("\u4e00" <= c <= "\u9fff" or "\u3000" <= c <= "\u303f" or "\uff00" <= c <= "\uffef" for c in foreign)
    return text if len(foreign) >= 2 and common >= 0.9 * len(foreign) else line.decode(errors="replace")


ESCAPE_LIMIT = 4096
"""The number of characters after which an unterminated string sequence (OSC, DCS ...) counts as text again."""

_CSI_TAIL = r"[0-?]{0,256}[ -/]{0,16}[@-~]"
_CSI = rf"(?:\x1b\[|\x9b){_CSI_TAIL}"
_STRING_TAIL = rf"[^\x07\x1b\x90\x98\x9b-\x9f\n\r]{{0,{ESCAPE_LIMIT}}}(?:\x07|\x1b\\|\x9c)"
_STRING = rf"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]){_STRING_TAIL}"
_SHORT_TAIL = r"[ -/]{0,8}[0-~]"
_SHORT = rf"\x1b{_SHORT_TAIL}"
_SEQUENCE = re.compile(rf"{_CSI}|{_STRING}|{_SHORT}|\x1b")
_SGR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_STEERING = r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_UNSAFE = re.compile(f"[{_STEERING}]")
_NO_COLOUR = rf"(?!\[[0-9;:]{{0,64}}m)(?:\[{_CSI_TAIL}|[\]PX^_]{_STRING_TAIL}|{_SHORT_TAIL})?"


def _but_colour(kept: str = "") -> re.Pattern[str]:
    """Return a pattern for terminal controls but colours and ``kept``, which matches adjacent ones at once."""
    single = rf"\x00-\x08\x0b\x0c{'' if kept else chr(13)}\x0e-\x1a\x1c-\x1f" + _STEERING.partition(r"\x1f")[2]
    return re.compile(rf"[\x1b{single}](?:(?<=\x1b){_NO_COLOUR}(?:\x1b{_NO_COLOUR})*+|(?<!\x1b)[{single}]*+)")


_BUT_COLOUR, _BUT_COLOUR_AND_RETURNS = _but_colour(), _but_colour("\r")
_SUSPECT = re.compile(rf"[{_STEERING}\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class StyleSpan:
    """Characters ``start`` to ``end`` of the plain text carry the SGR parameters ``codes`` (``"1;31"``)."""

    start: int
    end: int
    codes: str


def strip_controls(text: str) -> str:
    """Return text safe on any terminal: no escape sequences, controls (but tab and newline) or direction overrides.

    Whole escape sequences, single control characters (C0, C1, DEL) and invisible characters (which reorder text, break
    lines or make look-alike names differ) are removed; unpaired surrogates become U+FFFD. Idempotent, linear in the
    length of ``text``.
    """
    if not _SUSPECT.search(text):
        return text
    # Removing a sequence may join the halves of another one: repeat until none is left (bounded by the nesting).
    while "\x1b" in text or "\x9b" in text:
        text = _SEQUENCE.sub("", text) if "\x1b" in text else text.replace("\x9b", "")
    return _SURROGATE.sub("\ufffd", _UNSAFE.sub("", text))


def colour_only(text: str, *, returns: bool = False) -> str:
    """Remove all control sequences from ``text`` but SGR (colour, weight) and, if ``returns``, carriage returns."""
    if not _SUSPECT.search(text):
        return text
    return _SURROGATE.sub("\ufffd", (_BUT_COLOUR_AND_RETURNS if returns else _BUT_COLOUR).sub("", text))


_RAW_TAIL = rf"(?:\[{_CSI_TAIL}|[\]PX^_][^\x07\x1b\n\r]{{0,{ESCAPE_LIMIT}}}+(?:\x07|\x1b\\)|{_SHORT_TAIL})?"
_RAW_SEQUENCES = re.compile(rf"\x1b{_RAW_TAIL}(?:\x1b{_RAW_TAIL})*+".encode())


def without_sequences(raw: bytes) -> bytes:
    """Remove NULs and escape sequences from lines; cursor movements become carriage returns."""
    raw = _RAW_SEQUENCES.sub(b"", _MOVES.sub(b"\r", raw)) if b"\x1b" in raw else raw
    return raw.replace(b"\0", b"")


_MOST_SPANS = 1000


def style_spans(text: str) -> tuple[str, tuple[StyleSpan, ...]]:
    """Return a line's plain text and the spans coloured by SGR sequences: ordered, disjoint, within bounds."""
    plain: list[str] = []
    spans: list[StyleSpan] = []
    length, codes, position = 0, "", 0
    for match in _SGR.finditer(text):
        length = _append(plain, spans, strip_controls(text[position : match.start()]), length, codes)
        # SGR codes accumulate until a 0 (or an empty one) resets them; 128 characters hold every real combination.
        added = match.group(1)
        codes = "" if added in ("", "0", "00") else f"{codes};{added}"[-128:].lstrip(";")
        position = match.end()
        if len(spans) >= _MOST_SPANS:
            codes = ""
            break
    _append(plain, spans, strip_controls(_SGR.sub("", text[position:])), length, codes)
    return "".join(plain), tuple(spans)


def _append(plain: list[str], spans: list[StyleSpan], piece: str, length: int, codes: str) -> int:
    if piece:
        plain.append(piece)
        if codes:
            spans.append(StyleSpan(length, length + len(piece), codes))
    return length + len(piece)


PENDING_LIMIT = 65536
"""The most bytes of a line that are kept; a longer line is not read at all."""

_MOVE = r"\x1b(?:\[(?:[0-9]{0,4}[ABEFH]|[01]?G|[0-9]{0,4};[0-9]{0,4}[Hf]|2[JK]|u)|8)"
"""Moves the cursor up, down, to a position or back to a saved one, or erases the line or the screen."""
_FORWARD = re.compile(rb"\x1b\[[0-9]{0,4}[CG]")
_MOVES = re.compile(rf"{_MOVE}(?:{_MOVE})*+".encode())
_CONTROL_SEQUENCE = re.compile(rb"\x1b\[[0-?]{0,256}+[ -/]{0,16}+[@-~]")
_BLANK_LINES = re.compile(rb"\n\n+")
_HELD_BACK = re.compile(rb"(?:\r+|\x1b(?:\[[0-?]{0,32})?)\Z")
_LONGEST_HELD_BACK = 40


class FrameSplitter:
    """Cuts a byte stream into frames: ``feed`` bytes as they arrive, then ``close`` for what is left.

    Works on whole chunks at once, since the shortest of frames may come by the million.
    """

    def __init__(self) -> None:
        self.too_long = 0
        """How many lines were longer than ``PENDING_LIMIT``; nothing of them is returned."""
        self._line: list[bytes] = []
        """The unfinished line, in pieces as it came."""
        self._length = 0
        self._held = b""
        """Bytes that may begin a cursor movement."""
        self._start = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._sniffed = False

    def feed(self, data: bytes) -> bytes:
        """Return the frames that ``data`` completes, each ended by a newline, without blank ones; UTF-8, without NULs.

        Colours and other control sequences within a frame are removed unless their bytes are damaged.
        """
        data = self._held + self._utf8(data)
        held = _HELD_BACK.search(data, max(0, len(data) - _LONGEST_HELD_BACK))
        data, self._held = (data, b"") if held is None else (data[: held.start()], held.group())
        return self._frames(data)

    def close(self) -> tuple[bytes, bytes]:
        """Return the last frames and the unfinished one, if any."""
        start, self._start, self._sniffed = self._start, b"", True
        rest, self._held = start + self._held, b""
        frames = self._frames(rest)
        last, self._line, self._length = b"".join(self._line), [], 0
        return frames, last

    def _frames(self, data: bytes) -> bytes:
        if b"\x1b" in data:
            data = _CONTROL_SEQUENCE.sub(b"", _FORWARD.sub(b" ", _MOVES.sub(b"\n", data)))
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        data = data.replace(b"\x08", b"\n")
        end = data.rfind(b"\n") + 1
        if end:
            whole, data, first = data[:end], data[end:], data.find(b"\n") + 1
            if self._length + first > PENDING_LIMIT:
                self.too_long += 1
                whole = whole[first:]
            whole, self._line, self._length = b"".join([*self._line, whole]), [], 0
        else:
            whole = b""
        self._length += len(data)
        if self._length <= PENDING_LIMIT:
            self._line.append(data)
        else:
            self._line.clear()
        return _BLANK_LINES.sub(b"\n", whole) if b"\n\n" in whole else whole

    def _utf8(self, data: bytes) -> bytes:
        """Return ``data`` as UTF-8 without NULs, once enough of the file has been seen to know its encoding."""
        if not self._sniffed:
            self._start += data
            if len(self._start) < SNIFF_BYTES:
                return b""
            data, self._start, self._sniffed = self._start, b"", True
            encoding = sniff_utf16(data)
            self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace") if encoding else None
            data = data.removeprefix(codecs.BOM_UTF8)
        if self._decoder is not None:
            data = self._decoder.decode(data).encode(errors="replace")
        return data.replace(b"\0", b"")
