"""The three kinds of files in a RocksDB folder: logs, the manifest (also a log) and sorted tables.

A log consists of 32 KiB blocks of chunks ``u32 checksum | u16 length | u8 kind | data``; a record may span several. A
table ends with a footer of 53 bytes that locates its index, which locates the blocks of sorted, prefix-compressed keys.
The files may be growing: an incomplete record is read later. Checksums are not verified, which would take longer than
everything else; blocks that cannot be parsed are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ....wire import storage
from ..protobuf import varint

DELETED, PUT, RANGE_DELETED = 0, 1, 15
"""Kinds of changes; others (merges, transactions) are not read."""
_BLOCK_BYTES, _CHUNK = 1 << 15, struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_OF_REUSED_LOGS = 4  # added to the kinds of chunks in a recycled log file, whose headers have four more bytes
_MOST_RECORD_BYTES = 1 << 26
_FOOTER_BYTES, _MAGIC, _NEWEST_FORMAT = 53, 0x88E241B785F4CFF7, 5
_PLAIN, _SNAPPY = 0, 1
_PROPERTIES, _RANGES, _SHORT_INDEX = (
    b"rocksdb.properties",
    b"rocksdb.range_del",
    b"rocksdb.index.value.is.delta.encoded",
)
DAMAGE = (ValueError, IndexError, struct.error, MemoryError)
"""What reading a damaged file raises."""


class Change(NamedTuple):
    """A value that was put under a key, or a deletion."""

    sequence: int
    kind: int
    key: bytes
    value: bytes
    """For a deleted range, the first key after it."""


class Log:
    """Reads the records of a log as they are appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        """Everything before this position has been read."""
        self._pieces: list[bytes] = []

    def read(self) -> Iterator[bytes]:
        """Yield complete records; raises OSError."""
        with storage.open_file(self.path) as file:
            while True:
                file.seek(self.offset)
                before, data = self.offset, file.read(64 * _BLOCK_BYTES)
                yield from self._records(data)
                if self.offset == before:
                    return

    def _records(self, data: bytes) -> Iterator[bytes]:
        base, position, size = self.offset, 0, len(data)
        while True:
            left = _BLOCK_BYTES - (base + position) % _BLOCK_BYTES
            if left < _CHUNK.size:
                if position + left > size:
                    return
                position += left
                continue
            if position + _CHUNK.size > size:
                return
            _, length, kind = _CHUNK.unpack_from(data, position)
            start = position + _CHUNK.size + (4 if kind > _OF_REUSED_LOGS else 0)
            sound = _FULL <= kind <= _LAST + _OF_REUSED_LOGS and start + length <= position + left
            if not sound or start + length > size:
                if position + left >= size:
                    return  # the rest of the block may still be being written
                self._pieces, position = [], position + left
                continue
            position = start + length
            self.offset = base + position
            if (record := self._joined((kind - 1) % _OF_REUSED_LOGS + 1, data[start:position])) is not None:
                yield record

    def _joined(self, kind: int, piece: bytes) -> bytes | None:
        if kind in (_FULL, _FIRST):
            self._pieces = []
        elif not self._pieces:
            return None  # its beginning was skipped
        self._pieces.append(piece)
        if kind in (_FULL, _LAST):
            record, self._pieces = b"".join(self._pieces), []
            return record
        if sum(map(len, self._pieces)) > _MOST_RECORD_BYTES:
            self._pieces = []
        return None


def changes_of(record: bytes) -> tuple[int, int, list[Change]]:
    """Return the first sequence number in a log record, the number of changes, and those that can be read."""
    first, count = struct.unpack_from("<QI", record)
    position, found, number = 12, list[Change](), first
    families = {4: DELETED, 5: PUT, 14: RANGE_DELETED}
    while position < len(record):
        kind, position = record[position], position + 1
        if kind in families:
            family, position = varint(record, position)
            kind = families[kind] if family == 0 else -1
        if kind not in (DELETED, PUT, RANGE_DELETED):
            break
        key, position = _slice(record, position)
        value = b""
        if kind != DELETED:
            value, position = _slice(record, position)
        found.append(Change(number, kind, key, value))
        number += 1
    return first, count, found


class Table:
    """Reads one sorted, immutable table; every method may raise OSError and the exceptions of :data:`DAMAGE`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def blocks(self, begin: bytes) -> list[tuple[int, int]]:
        """Return offset and size of the blocks that may have keys starting with ``begin``."""
        short = self._properties.get(_SHORT_INDEX, b"\0") != b"\0"
        data, found, width = self._block(*self._parts[1]), list[tuple[int, int]](), len(begin)
        for key, handle in _index(data) if short else ((key, _handle(value)) for key, value in entries(data)):
            if key[:width] >= begin:
                found.append(handle)
                if key[:width] > begin:
                    break
        return found

    def changes(self, offset: int, size: int) -> Iterator[Change]:
        """Yield the changes in a block."""
        for key, value in entries(self._block(offset, size)):
            mark = int.from_bytes(key[-8:], "little")
            yield Change(mark >> 8, mark & 0xFF, key[:-8], value)

    def ranges(self) -> list[Change]:
        """Return the deleted ranges."""
        handle = self._named.get(_RANGES)
        return [] if handle is None else list(self.changes(*_handle(handle)))

    @cached_property
    def _parts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Offset and size of the block that names further blocks, and of the index."""
        with storage.open_file(self.path) as file:
            file.seek(max(0, file.seek(0, 2) - _FOOTER_BYTES))
            end = file.read(_FOOTER_BYTES)
        version, magic = struct.unpack("<IQ", end[-12:])
        if magic != _MAGIC or not 1 <= version <= _NEWEST_FORMAT:
            raise ValueError(f"{self.path.name} is no table that is read here")
        return _handle(end, 1), _handle(end, _behind(end, 1, 2))

    @cached_property
    def _named(self) -> dict[bytes, bytes]:
        return dict(entries(self._block(*self._parts[0])))

    @cached_property
    def _properties(self) -> dict[bytes, bytes]:
        handle = self._named.get(_PROPERTIES)
        return {} if handle is None else dict(entries(self._block(*_handle(handle))))

    def _block(self, offset: int, size: int) -> bytes:
        if size > _MOST_RECORD_BYTES:
            raise ValueError("a block that long is none")
        with storage.open_file(self.path) as file:
            file.seek(offset)
            data = file.read(size + 1)
        if len(data) <= size or data[size] not in (_PLAIN, _SNAPPY):
            raise ValueError("a block that is cut, or compressed in another way")
        return data[:size] if data[size] == _PLAIN else snappy(data[:size])


def entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block; each key is stored as the length shared with the last one, and the rest."""
    key, position, end = b"", 0, _end(block)
    while position < end:
        shared, own, length = block[position : position + 3]
        position += 3
        if shared > 127 or own > 127 or length > 127:
            shared, position = varint(block, position - 3)
            own, position = varint(block, position)
            length, position = varint(block, position)
        middle = position + own
        key = key[:shared] + block[position:middle]
        position = middle + length
        yield key, block[middle:position]


def _index(block: bytes) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """Yield the entries of an index with delta-encoded values: a handle, or its size relative to the previous one."""
    key, position, end, handle = b"", 0, _end(block), (0, 0)
    while position < end:
        shared, position = varint(block, position)
        own, position = varint(block, position)
        key, position = key[:shared] + block[position : position + own], position + own
        if shared:
            more, position = varint(block, position)
            handle = handle[0] + handle[1] + 5, handle[1] + ((more >> 1) ^ -(more & 1))
        else:
            handle, position = _handle(block, position), _behind(block, position, 2)
        yield key, handle


def _end(block: bytes) -> int:
    """Return where the entries of a block end and its restart points begin (positions of keys stored in full)."""
    restarts: int = struct.unpack_from("<I", block, len(block) - 4)[0] & 0x7FFFFFFF
    end = len(block) - 4 - 4 * restarts
    if end < 0:
        raise ValueError("a block that is none")
    return end


def _handle(data: bytes, position: int = 0) -> tuple[int, int]:
    offset, position = varint(data, position)
    return offset, varint(data, position)[0]


def _behind(data: bytes, position: int, numbers: int) -> int:
    for _ in range(numbers):
        _, position = varint(data, position)
    return position


def _slice(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = varint(data, position)
    if position + length > len(data):
        raise IndexError
    return data[position : position + length], position + length


def snappy(data: bytes) -> bytes:
    """Decompress Snappy data: literals, and copies of earlier output."""
    size, position = varint(data, 0)
    if size > _MOST_RECORD_BYTES:
        raise ValueError("a block that long is none")
    found, end = bytearray(), len(data)
    while position < end:
        tag = data[position]
        kind, position = tag & 3, position + 1
        if not kind:
            length = tag >> 2
            if length >= 60:
                width = length - 59
                length, position = int.from_bytes(data[position : position + width], "little"), position + width
            found += data[position : position + length + 1]
            position += length + 1
            continue
        if kind == 1:
            length, back = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[position]
            position += 1
        else:
            width = 2 * (kind - 1)
            length, back = (tag >> 2) + 1, int.from_bytes(data[position : position + width], "little")
            position += width
        start = len(found) - back
        if start < 0 or not back or len(found) > size:
            raise ValueError("no compressed block")
        if back >= length:
            found += found[start : start + length]
        else:
            found += (bytes(found[start:]) * (length // back + 1))[:length]
    if len(found) != size:
        raise ValueError("a compressed block that is cut")
    return bytes(found)
