"""Pieces on a line: a letter for the kind, a length, and that many bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

HEAD = struct.Struct(">cI")
_PART = 1 << 16


def piece(kind: bytes, data: bytes = b"") -> bytes:
    """A piece as it is sent."""
    return HEAD.pack(kind, len(data)) + data


class Pieces:
    """Reads the pieces that arrive at one end."""

    def __init__(self, read: Callable[[int], bytes | None]) -> None:
        self._read = read
        self._unread = b""

    def next(self) -> tuple[bytes, bytes] | None:
        """Wait for a piece; None at the end of the line, and if nothing can be read in time."""
        while (found := self._whole()) is None:
            part = self._read(_PART)
            if not part:
                return None
            self._unread += part
        return found

    def _whole(self) -> tuple[bytes, bytes] | None:
        if len(self._unread) < HEAD.size:
            return None
        kind, length = HEAD.unpack_from(self._unread)
        if len(self._unread) < HEAD.size + length:
            return None
        data, self._unread = self._unread[HEAD.size :][:length], self._unread[HEAD.size + length :]
        return kind, data
