"""The wire format of protobuf messages, as far as metric files need it: numbered fields and their values."""

from __future__ import annotations

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
