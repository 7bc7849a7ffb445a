"""Messages on a line: JSON, each preceded by its length, through one zlib stream that lasts as long as the line."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from threading import Lock

from .forms import Tree

MOST_BYTES = 1 << 26
"""The most bytes of one message: a longer one cannot be ours."""
_MOST_SHIFT = 35
"""The most bits of a length, seven per byte: an endless series of empty bytes is not a length."""
_READ_BYTES = 1 << 16
_FLUSHED = b"\x00\x00\xff\xff"
"""Every flush ends with these bytes, so they are not sent."""


class Garbled(ValueError):
    """What was received is not one of our messages."""


class Frames:
    """One side of a line. Any thread may send; one receives."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
        """Send and receive by two functions.

        Args:
            read: returns what was received, at most this many bytes and at least one; nothing when the line has ended.
            write: sends everything it is given; raises OSError or OperationError if the line is broken.
        """
        self._read, self._write = read, write
        self._sending = Lock()
        self._packer, self._unpacker = zlib.compressobj(9, zlib.DEFLATED, -15), zlib.decompressobj(-15)
        self._unread = b""
        self.sent = self.received = 0
        """Bytes, compressed."""

    def send(self, message: Tree) -> int:
        """Send a message; return the number of bytes it took.

        Raises:
            OSError, OperationError: the line is broken.
        """
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        with self._sending:
            data = self._packer.compress(text.encode("utf-8", "surrogatepass"))
            data = (data + self._packer.flush(zlib.Z_SYNC_FLUSH)).removesuffix(_FLUSHED)
            data = _length(len(data)) + data
            self._write(data)
            self.sent += len(data)
        return len(data)

    def receive(self) -> Tree | None:
        """The next message; None when the line has ended.

        Raises:
            Garbled: something other than a message came.
        """
        size = shift = 0
        while True:
            if not self._fill(1):
                return None
            byte, self._unread = self._unread[0], self._unread[1:]
            size |= (byte & 0x7F) << shift
            shift += 7
            if size > MOST_BYTES or shift > _MOST_SHIFT:
                raise Garbled("a message that is longer than any of ours")
            if byte < 0x80:
                break
        if not self._fill(size):
            return None
        data, self._unread = self._unread[:size], self._unread[size:]
        try:
            text = self._unpacker.decompress(data + _FLUSHED, MOST_BYTES)
            return json.loads(text.decode("utf-8", "surrogatepass"))
        except (zlib.error, ValueError, RecursionError) as error:
            raise Garbled(f"a message that cannot be read: {error}") from error

    def _fill(self, size: int) -> bool:
        while len(self._unread) < size:
            data = self._read(_READ_BYTES)
            if not data:
                return False
            self.received += len(data)
            self._unread += data
        return True


def _length(size: int) -> bytes:
    """Seven bits per byte, the lowest first."""
    out = bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*out, size])
