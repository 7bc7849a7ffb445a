"""The part of the protobuf wire format that metric files need: reading and writing numbered fields."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the field numbers and values of a protobuf message; raise IndexError if it is cut short."""
    position = 0
    while position < len(data):
        key, position = varint(data, position)
        kind, number = key & 7, key >> 3
        if kind == _VARINT:
            value, position = varint(data, position)
            yield number, value
            continue
        if kind == _BYTES:
            size, position = varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise IndexError
        if position + size > len(data):
            raise IndexError
        yield number, data[position : position + size]
        position += size


def varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at ``position`` and the position after it; raise IndexError if it is cut short or too long."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise IndexError


def whole(number: int, value: int) -> bytes:
    """Encode an integer field; a negative number as its 64-bit two's complement."""
    return _written(number << 3 | _VARINT) + _written(value & (1 << 64) - 1)


def block(number: int, data: bytes) -> bytes:
    """Encode a field that holds a message or bytes."""
    return _written(number << 3 | _BYTES) + _written(len(data)) + data


def text(number: int, words: str) -> bytes:
    """Encode a text field."""
    return block(number, words.encode("utf-8", "replace"))


def double(number: int, value: float) -> bytes:
    """Encode a 64-bit float field."""
    return _written(number << 3 | _FIXED64) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """Encode a 32-bit float field; a value too large for that becomes infinite."""
    try:
        held = struct.pack("<f", value)
    except OverflowError:
        held = struct.pack("<f", math.copysign(math.inf, value))
    return _written(number << 3 | _FIXED32) + held


def _written(value: int) -> bytes:
    """Encode a varint: seven bits per byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
