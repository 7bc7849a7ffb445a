"""Bytes of a console to clean text: encodings, control sequences, redraws.

A *frame* is what was drawn before the cursor went back (carriage return, cursor up, backspaces) or down (newline).
`FrameSplitter` is incremental, linear in the bytes, holds at most ``PENDING_LIMIT`` bytes, and gives the same answer
however the bytes are cut into chunks. Control sequences (ECMA-48 section 5.4, CSI, and 5.6, OSC, DCS, APC, PM, SOS)
are removed from any text, or kept as colour spans; one that is never closed swallows at most ``ESCAPE_LIMIT``
characters, so that one stray byte cannot eat a log.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
SNIFF_BYTES = 4


def sniff_utf16(start: bytes) -> str | None:
    """The UTF-16 flavour that a file's first four bytes show (byte order mark, or ASCII in 16 bits), else None."""
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
    """A line that was cut out of UTF-16 text behind the byte 0x0A, as UTF-8; what is none becomes U+FFFD.

    Of a little-endian newline the second byte begins the line after it.
    """
    if encoding == "utf-16-le":
        line = line[1:] + b"\0" if line[:1] == b"\0" else line + b"\0"
        line = line[: len(line) - len(line) % 2]
    return line.decode(encoding, errors="replace").removeprefix("\ufeff").encode(errors="replace")


def decode_line(line: bytes) -> str:
    """One line as text: UTF-8, else GB18030 when that gives plausible Chinese, else UTF-8 with U+FFFD for bad bytes.

    Decided line by line, so that a log whose writers disagree is still readable and the answer never depends on how the
    bytes arrived.
    """
    try:
        return line.decode()
    except UnicodeDecodeError:
        pass
    try:
        text = line.decode("gb18030")
    except UnicodeDecodeError:
        return line.decode(errors="replace")
    # Plausible: nearly all that is not ASCII are ideographs of the common block, or their punctuation.
    foreign = [c for c in text if c > "\x7f"]
    common = sum("\u4e00" <= c <= "\u9fff" or "\u3000" <= c <= "\u303f" or "\uff00" <= c <= "\uffef" for c in foreign)
    return text if len(foreign) >= 2 and common >= 0.9 * len(foreign) else line.decode(errors="replace")


ESCAPE_LIMIT = 4096
"""Characters after which an unterminated string sequence (OSC, DCS ...) is taken for text again."""

_CSI = r"(?:\x1b\[|\x9b)[0-?]{0,256}[ -/]{0,16}[@-~]"
_STRING = (
    rf"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9b-\x9f\n\r]{{0,{ESCAPE_LIMIT}}}(?:\x07|\x1b\\|\x9c)"
)
_SHORT = r"\x1b[ -/]{0,8}[0-~]"
_SEQUENCE = re.compile(rf"{_CSI}|{_STRING}|{_SHORT}|\x1b")
_SGR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_STEERING = r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_UNSAFE = re.compile(f"[{_STEERING}]")
_SUSPECT = re.compile(rf"[{_STEERING}\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class StyleSpan:
    """Characters ``start`` to ``end`` of the plain text carry the SGR parameters ``codes`` (``"1;31"``)."""

    start: int
    end: int
    codes: str


def strip_controls(text: str) -> str:
    """Text that is safe on any terminal: no escape sequence, no control but tab and newline, no direction override.

    Escape sequences vanish whole, control characters (C0, C1, DEL) and the invisible characters that reorder and break
    lines or make names differ that look alike vanish singly, unpaired surrogates become U+FFFD. Idempotent, linear in
    the length of ``text``.
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
        # SGR accumulates until a 0 (or nothing) resets it; 128 characters hold every real combination.
        added = match.group(1)
        codes = "" if added in ("", "0", "00") else f"{codes};{added}"[-128:].lstrip(";")
        position = match.end()
    _append(plain, spans, strip_controls(text[position:]), length, codes)
    return "".join(plain), tuple(spans)


def _append(plain: list[str], spans: list[StyleSpan], piece: str, length: int, codes: str) -> int:
    if piece:
        plain.append(piece)
        if codes:
            spans.append(StyleSpan(length, length + len(piece), codes))
    return length + len(piece)


PENDING_LIMIT = 65536
"""Bytes of an unfinished line that are kept; a longer one is cut there and goes on as another line."""

_BREAK = re.compile(rb"\r{0,8}\n|\r|\x1b\[[0-9]{0,4}[AFH]|\x1b\[[01]?G|\x1b\[[0-9]{0,4};[0-9]{0,4}[Hf]|\x08+")
_COLOUR = re.compile(rb"\x1b\[[0-9;:]{0,32}m")
_NEEDS_FOLDING = (b"\x1b", b"\x08", b"\0")
_HELD_BACK = re.compile(rb"(?:\r+|\x1b(?:\[[0-9;]{0,9})?|\x08+)\Z")


@dataclass(frozen=True, slots=True)
class ConsoleFrame:
    """Text drawn between two movements of the cursor, control sequences included."""

    text: str
    ends_line: bool
    """False for a redraw: the next frame is drawn over this one."""
    cut: bool = False
    """True when the frame, or the one before it on the same line, hit ``PENDING_LIMIT``."""


class FrameSplitter:
    """Cuts a byte stream into frames. ``feed`` as bytes arrive, ``close`` for what is left."""

    def __init__(self) -> None:
        self._pending = b""
        self._scanned = 0
        self._start = b""
        self._cut = False
        self._decoder: codecs.IncrementalDecoder | None = None
        self._sniffed = False

    def feed(self, data: bytes) -> list[ConsoleFrame]:
        """The frames that ``data`` completes."""
        data = self._utf8(data)
        return list(self._split(data)) if data else []

    def close(self) -> list[ConsoleFrame]:
        """The unfinished frame, if any; it does not end its line."""
        start, self._start, self._sniffed = self._start, b"", True
        frames = list(self._split(start)) if start else []
        rest, self._pending, self._scanned = self._pending, b"", 0
        if rest:
            frames.append(ConsoleFrame(decode_line(rest), ends_line=False, cut=self._cut))
        return frames

    def take_whole_lines(self, data: bytes) -> tuple[bytes, bytes] | None:
        """The complete frames that ``data`` brings, one a line, and what is left to feed; None if it is not that easy.

        It is what lets a reader work on megabytes at once. Nothing has changed when the answer is None.
        """
        if not self._sniffed and not self._start and len(data) >= SNIFF_BYTES:
            self._sniffed = sniff_utf16(data[:SNIFF_BYTES]) is None and not data.startswith(codecs.BOM_UTF8)
        if not self._sniffed or self._decoder is not None or self._cut:
            return None
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        whole = self._pending + data[:end]
        if b"\x1b" in whole:
            whole = _COLOUR.sub(b"", whole)
        if not end or any(control in whole for control in _NEEDS_FOLDING):
            return None
        self._pending, self._scanned = b"", 0
        if b"\r" in whole:
            whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return whole, data[end:]

    def _utf8(self, data: bytes) -> bytes:
        """``data`` as UTF-8 without NULs, once enough of the file was seen to know its encoding."""
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

    def _split(self, data: bytes) -> Iterator[ConsoleFrame]:
        buffer = self._pending + data
        # What is held back may grow into another break: it is looked at again, with what follows it.
        held = _HELD_BACK.search(buffer, max(0, len(buffer) - 16))
        limit = held.start() if held else len(buffer)
        position, search_from = 0, self._scanned
        while True:
            match = _BREAK.search(buffer, search_from, limit)
            stop = match.start() if match else limit
            while stop - position > PENDING_LIMIT:
                cut_at = _character_boundary(buffer, position + PENDING_LIMIT, position)
                yield ConsoleFrame(decode_line(buffer[position:cut_at]), ends_line=True, cut=True)
                position, self._cut = cut_at, True
            if match is None:
                break
            yield ConsoleFrame(decode_line(buffer[position:stop]), match.group().endswith(b"\n"), self._cut)
            position, self._cut = match.end(), False
            search_from = position
        self._pending = buffer[position:]
        self._scanned = max(0, limit - position)


def _character_boundary(buffer: bytes, position: int, lowest: int) -> int:
    """The nearest boundary of a UTF-8 character at or before ``position``."""
    for back in range(min(4, position - lowest)):
        if buffer[position - back] & 0xC0 != 0x80:
            return position - back
    return position
