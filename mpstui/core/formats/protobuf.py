"""The wire format of protobuf messages, as far as metric files need it: numbered fields, read and written."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of a protobuf message; raises IndexError when it is cut."""
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
    """The number at a place, and the place behind it; raises IndexError when it is cut, or longer than any."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise IndexError


def whole(number: int, value: int) -> bytes:
    """A field that holds a whole number; a negative one as the two's complement of 64 bits."""
    return _written(number << 3 | _VARINT) + _written(value & (1 << 64) - 1)


def block(number: int, data: bytes) -> bytes:
    """A field that holds a message, or bytes."""
    return _written(number << 3 | _BYTES) + _written(len(data)) + data


def text(number: int, words: str) -> bytes:
    """A field that holds words."""
    return block(number, words.encode("utf-8", "replace"))


def double(number: int, value: float) -> bytes:
    """A field that holds 64 bits of a number."""
    return _written(number << 3 | _FIXED64) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """A field that holds 32 bits of a number; what is too large for them is infinite there."""
    try:
        held = struct.pack("<f", value)
    except OverflowError:
        held = struct.pack("<f", math.copysign(math.inf, value))
    return _written(number << 3 | _FIXED32) + held


def _written(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
