"""Folders of RocksDB as it writes them, made by hand: logs, manifests, sorted tables; with keys as Aim has them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.wandb_files import varint

BLOCK = 1 << 15
Pair = tuple[bytes, bytes | None]
DELETED, PUT, RANGE = 0, 1, 15


def key(*words: str | int) -> bytes:
    parts = [b"\xfe" + struct.pack(">q", word) if isinstance(word, int) else word.encode() for word in words]
    return b"".join([part + b"\xfe" for part in parts])


def value(told: Any) -> bytes:
    if told is None:
        return b"\0"
    if isinstance(told, bool):
        return bytes([1, told])
    if isinstance(told, (int, float)):
        return struct.pack("<Bq" if isinstance(told, int) else "<Bd", 2 if isinstance(told, int) else 3, told)
    marks: dict[type, bytes] = {list: b"\x06", dict: b"\x07"}
    return marks.get(type(told)) or b"\x04" + str(told).encode()


def tree(place: Sequence[str | int], told: Any) -> list[Pair]:
    """What Aim writes for a value, or for all that is in a mapping or a list."""
    inside = told.items() if isinstance(told, Mapping) else enumerate(told) if isinstance(told, list) else ()
    below = [pair for name, inner in inside for pair in tree([*place, name], inner)]
    return below if isinstance(told, Mapping) and below else [(key(*place), value(told)), *below]


def text(data: bytes) -> bytes:
    return varint(len(data)) + data


def block_of(pairs: Iterable[tuple[bytes, bytes]], *, every: int = 16) -> bytes:
    """Keys share what they can with the one before, but for one of so many."""
    out, restarts, before = b"", [], b""
    for place, (name, told) in enumerate(pairs):
        shared = 0
        if place % every == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(before), len(name)) and before[shared] == name[shared]:
                shared += 1
        out += varint(shared) + varint(len(name) - shared) + varint(len(told)) + name[shared:] + told
        before = name
    return out + struct.pack(f"<{len(restarts)}I", *restarts) + struct.pack("<I", len(restarts))


def snappy(data: bytes) -> bytes:
    """Compressed as far as one byte repeats: enough of it to be no plain copy."""
    out, place = varint(len(data)), 0
    while place < len(data):
        end = place + 1
        while end < len(data) and end - place < 64 and data[end] == data[place]:
            end += 1
        if end - place > 8:
            out += b"\0" + data[place : place + 1] + bytes([(end - place - 2) << 2 | 2]) + b"\x01\0"
        else:
            end = min(len(data), place + 70)
            out += bytes([60 << 2, end - place - 1]) + data[place:end]
        place = end
    return out


class Folder:
    """A database that is written: into its log, from there into a table, and tables into one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        (path / "CURRENT").write_text("MANIFEST-000001\n")
        self.sequence = 0
        self._number = self._log_number = 2
        self._held: list[tuple[int, int, bytes, bytes]] = []
        self.tables: dict[int, list[tuple[int, int, bytes, bytes]]] = {}
        self._edit(varint(1) + text(b"leveldb.BytewiseComparator"))
        self._log().touch()

    def put(self, pairs: Iterable[Pair], *, ranges: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """One write: ranges that are deleted, then values; None deletes a key."""
        changes = [(RANGE, begin, end) for begin, end in ranges]
        changes += [(PUT if told is not None else DELETED, name, told or b"") for name, told in pairs]
        body = struct.pack("<QI", self.sequence + 1, len(changes))
        for kind, name, told in changes:
            self.sequence += 1
            self._held.append((self.sequence, kind, name, told))
            body += bytes([kind]) + text(name) + (text(told) if kind != DELETED else b"")
        self._append(self._log(), body)

    def flush(self) -> int:
        """The log becomes a table, and another one begins."""
        gone, number = self._log(), self._next()
        self._write_table(number, self._held)
        self._log_number = self._next()
        self._edit(varint(2) + varint(self._log_number) + self._new(number, 0, self._held))
        self._held = []
        self._log().touch()
        gone.unlink()
        return number

    def merge(self) -> int:
        """All tables become one, whose sequence numbers are lost."""
        merged: dict[bytes, tuple[int, int, bytes, bytes]] = {}
        for changes in self.tables.values():
            for _, kind, name, told in changes:
                if kind == RANGE:
                    merged = {one: held for one, held in merged.items() if not name <= one < told}
                elif kind == DELETED:
                    merged.pop(name, None)
                else:
                    merged[name] = 0, kind, name, told
        old, number = list(self.tables), self._next()
        self._write_table(number, list(merged.values()))
        gone = b"".join([varint(6) + varint(0) + varint(one) for one in old])
        self._edit(gone + self._new(number, 1, self.tables[number]))
        for one in old:
            del self.tables[one]
            (self.path / f"{one:06d}.sst").unlink()
        return number

    def _log(self) -> Path:
        return self.path / f"{self._log_number:06d}.log"

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _new(self, number: int, level: int, changes: Sequence[tuple[int, int, bytes, bytes]]) -> bytes:
        sequences = [one[0] for one in changes]
        size = (self.path / f"{number:06d}.sst").stat().st_size
        words = varint(103) + varint(level) + varint(number) + varint(size) + text(b"a") + text(b"z")
        return words + varint(min(sequences)) + varint(max(sequences)) + varint(5) + text(b"\1") + varint(1)

    def _edit(self, body: bytes) -> None:
        self._append(self.path / "MANIFEST-000001", body + varint(3) + varint(self._number))

    def _append(self, path: Path, record: bytes) -> None:
        """Chunks of a log: what does not fit into a block goes on in the next one."""
        with path.open("ab") as file:
            first = True
            while True:
                left = BLOCK - file.tell() % BLOCK
                if left < 7:
                    file.write(bytes(left))
                    continue
                piece, record = record[: left - 7], record[left - 7 :]
                kind = (1 if not record else 2) if first else 4 if not record else 3
                file.write(struct.pack("<IHB", 0, len(piece), kind) + piece)
                first = False
                if not record:
                    return

    def _write_table(self, number: int, changes: list[tuple[int, int, bytes, bytes]]) -> None:
        self.tables[number] = changes
        plain = sorted([one for one in changes if one[1] != RANGE], key=lambda one: (one[2], -one[0]))
        marked = [(name + struct.pack("<Q", sequence << 8 | kind), told) for sequence, kind, name, told in plain]
        ranges = [(n + struct.pack("<Q", s << 8 | RANGE), told) for s, kind, n, told in changes if kind == RANGE]
        data, index = b"", []
        for start in range(0, len(marked), 40):
            data, handle = self._add(data, block_of(marked[start : start + 40]), packs=True)
            index.append((marked[min(start + 39, len(marked) - 1)][0][:-8], handle))
        data, properties = self._add(data, block_of([(b"rocksdb.index.value.is.delta.encoded", b"\1")]))
        data, deleted = self._add(data, block_of(sorted(ranges)))
        names = [(b"rocksdb.properties", properties), *([(b"rocksdb.range_del", deleted)] if ranges else [])]
        data, named = self._add(data, block_of(sorted(names)))
        places = struct.pack(f"<{len(index)}I", *self._places(index)) + struct.pack("<I", len(index))
        body = b"".join([varint(0) + varint(len(name)) + name + handle for name, handle in index])
        data, found = self._add(data, body + places)
        end = (b"\1" + named + found).ljust(41, b"\0") + struct.pack("<IQ", 5, 0x88E241B785F4CFF7)
        (self.path / f"{number:06d}.sst").write_bytes(data + end)

    def _places(self, index: Iterable[tuple[bytes, bytes]]) -> list[int]:
        found, place = [], 0
        for name, handle in index:
            found.append(place)
            place += 1 + len(varint(len(name))) + len(name) + len(handle)
        return found

    def _add(self, data: bytes, body: bytes, *, packs: bool = False) -> tuple[bytes, bytes]:
        body = snappy(body) if packs else body
        handle = varint(len(data)) + varint(len(body))
        return data + body + bytes([int(packs)]) + bytes(4), handle
