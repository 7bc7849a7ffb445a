"""Bytes of a log to text: UTF-8 first, GBK and UTF-16 where the evidence is clear, never an error."""

from __future__ import annotations

import codecs

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
        return _guess(line)


def _guess(line: bytes) -> str:
    try:
        text = line.decode("gb18030")
    except UnicodeDecodeError:
        text = ""
    return text if text and _plausible_chinese(text) else line.decode(errors="replace")


def _plausible_chinese(text: str) -> bool:
    """Whether what is not ASCII are ideographs of the common block or their punctuation, two or more of them."""
    foreign = [c for c in text if c > "\x7f"]
    common = sum("\u4e00" <= c <= "\u9fff" or "\u3000" <= c <= "\u303f" or "\uff00" <= c <= "\uffef" for c in foreign)
    return len(foreign) >= 2 and common >= 0.9 * len(foreign)
