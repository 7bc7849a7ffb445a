"""A RocksDB folder that another program writes: which of its files are live, and what is new since the last look.

Every write goes into a log first, is flushed from there, sorted, into a table, and tables are later compacted into one.
The manifest says which tables are live and what each was made from, so nothing is read twice: neither a table whose log
was read before, nor one compacted from tables that were. Nothing is locked, and nothing is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ....wire import storage
from ..protobuf import varint
from ._rocksdb_files import DAMAGE, PUT, RANGE_DELETED, Change, Log, Table, changes_of

MOST_FILES = 20_000
_MANIFEST = re.compile(rb"(MANIFEST-\d{1,20})\n?")
_NUMBERED = re.compile(r"(\d{1,20})\.(log|sst|ldb)")
_LOG_NUMBER = 2
_NUMBERS = frozenset((3, 4, 9, 10, 200, 203, 300))
_TEXTS = frozenset((1, 201))
_SEPARATOR = 0xFE
"""Byte with which Aim ends each part of a key."""
_COMPACT_CURSOR, _DELETED_FILE, _NEW_FILE, _END_OF_FILE, _MAY_BE_IGNORED = 5, 6, 103, 1, 1 << 13


class StartOver(Exception):
    """A table vanished, or was compacted from others that were partly read: everything has to be read again."""


class _Made(NamedTuple):
    """What the manifest says about a table."""

    number: int
    level: int
    oldest: int
    """The lowest sequence number in it, as ``newest`` is the highest; compaction may lose them."""
    newest: int
    of: frozenset[int]
    """The tables it was compacted from."""
    is_merged: bool
    """True if it was compacted from tables, known or not; False if it was flushed from a log."""


class RocksFolder:
    """Reads one database."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes_read = 0
        self.damaged = 0
        """Number of damaged blocks that were skipped."""
        self._accepted: set[int] = set()
        """Compacted tables that may be read: nothing of what they were made from was returned."""
        self._manifest: Log | None = None
        self._made: dict[int, _Made] = {}
        """All tables the manifest has ever listed, by number."""
        self._alive: set[int] = set()
        self._read: set[int] = set()
        self._logs: dict[int, Log] = {}
        self._oldest_log = 0
        """Number of the oldest live log; the content of older ones is in tables."""
        self._newest = 0
        """The highest sequence number read so far."""
        self._threshold = 0
        self._table: Table | None = None
        self._reading = 0
        self._blocks: Iterator[tuple[int, int]] = iter(())

    def files(self) -> list[Path]:
        """Return the files that change when something is written."""
        found = list[Path]()
        with suppress(OSError):
            names = _names(self.path)
            found = [self.path / name for name in names if _NUMBERED.fullmatch(name) or name.startswith("MANIFEST-")]
        return sorted(found)[-MOST_FILES:]

    def everything(self, begin: bytes) -> dict[bytes, bytes]:
        """Return all keys that start with ``begin``, with their current values. Raises OSError."""
        self._look()
        found = _Newest(begin)
        for made in self._in_order(self._alive):
            table = self._opened(made.number)
            try:
                found.take(table.ranges())
                for place in table.blocks(begin):
                    found.take(table.changes(*place))
            except DAMAGE:
                self.damaged += 1
        for number in self._log_numbers():
            for record in Log(self._log_path(number)).read():
                with suppress(*DAMAGE):
                    found.take(changes_of(record)[2])
        return found.alive()

    def news(self, begin: bytes, limit: int) -> Iterator[list[Change]]:
        """Yield values put under keys that start with ``begin`` since the last call, from about ``limit`` bytes.

        Those of a table come in the order of their keys; an empty list follows each table.

        Raises:
            StartOver: everything has to be read again, with a new `RocksFolder`. OSError.
        """
        start = self.bytes_read
        while self.bytes_read - start < limit:
            if self._table is None and not self._begin_table(begin):
                yield from self._from_logs(begin)
                return
            place = next(self._blocks, None)
            if self._table is None or place is None:
                self._read.add(self._reading)
                self._newest = max(self._newest, self._made[self._reading].newest)
                self._table = None
                yield []
                continue
            self.bytes_read += place[1]
            try:
                found = list(self._table.changes(*place))
            except FileNotFoundError:
                raise StartOver from None
            except DAMAGE:
                self.damaged += 1
                continue
            yield [
                one
                for one in found
                if one.kind == PUT and one.sequence >= self._threshold and one.key.startswith(begin)
            ]

    @property
    def is_within_table(self) -> bool:
        """True if a table is partly read, so that more can be read at once."""
        return self._table is not None

    def _begin_table(self, begin: bytes) -> bool:
        """Open the next table with unread content; False if there is none."""
        self._look()
        if not (self._newest or self._read):  # both, since a table read may have lost its sequence numbers
            self._accepted |= self._alive  # the tables live at one moment hold nothing twice
        for made in self._in_order(self._alive - self._read):
            if self._is_known(made):
                self._read.add(made.number)
                continue
            if made.is_merged and made.number not in self._accepted:
                if not made.of or any(map(self._is_begun, made.of)):
                    raise StartOver
                self._accepted |= {one for one in self._alive if self._made[one].of == made.of}
            self._threshold = 0 if made.is_merged else self._newest + 1
            self._table, self._reading = self._opened(made.number), made.number
            try:
                self._blocks = iter(self._table.blocks(begin))
            except FileNotFoundError:
                raise StartOver from None
            except DAMAGE:
                self.damaged += 1
                self._blocks = iter(())
            return True
        return False

    def _in_order(self, numbers: set[int]) -> list[_Made]:
        """Return tables sorted by the age of their values, the oldest first."""
        return sorted((self._made[number] for number in numbers), key=lambda one: (-one.level, one.number))

    def _is_known(self, made: _Made) -> bool:
        """True if everything in a table was returned already."""
        if made.is_merged:
            return bool(made.of) and all(map(self._is_read, made.of))
        return made.newest <= self._newest

    def _is_read(self, number: int) -> bool:
        made = self._made.get(number)
        return number in self._read or (made is not None and self._is_known(made))

    def _is_begun(self, number: int) -> bool:
        """True if anything in a table may have been returned already."""
        made = self._made.get(number)
        return number in self._read or made is None or made.oldest <= self._newest

    def _from_logs(self, begin: bytes) -> Iterator[list[Change]]:
        """Yield what is in no table yet. A log that vanished before it was read is a table by now, to be read first."""
        for number in self._log_numbers():
            log = self._logs.setdefault(number, Log(self._log_path(number)))
            mark, before = storage.stamp(log.path), log.offset
            if mark is None or mark[2] <= before:
                continue
            try:
                for record in log.read():
                    with suppress(*DAMAGE):
                        first, count, found = changes_of(record)
                        if first > self._newest + 1 and self._has_more_tables():
                            self._logs.pop(number, None)  # read it again after that table
                            return
                        yield [
                            one
                            for one in found
                            if one.kind == PUT and one.sequence > self._newest and one.key.startswith(begin)
                        ]
                        self._newest = max(self._newest, first + count - 1)
            except FileNotFoundError:
                return
            self.bytes_read += log.offset - before

    def _has_more_tables(self) -> bool:
        self._look()
        return any(not self._is_known(self._made[one]) for one in self._alive - self._read)

    def _opened(self, number: int) -> Table:
        return Table(self.path / f"{number:06d}.sst")

    def _log_path(self, number: int) -> Path:
        return self.path / f"{number:06d}.log"

    def _log_numbers(self) -> list[int]:
        found = map(_NUMBERED.fullmatch, _names(self.path))
        logs = (int(match[1]) for match in found if match is not None and match[2] == "log")
        numbers = sorted(number for number in logs if number >= self._oldest_log)
        for gone in self._logs.keys() - set(numbers):
            del self._logs[gone]
        return numbers

    def _look(self) -> None:
        """Take in what is new in the manifest."""
        current = _MANIFEST.fullmatch(storage.read_bytes(self.path / "CURRENT", 100))
        if current is None:
            raise OSError(f"{self.path / 'CURRENT'} names no manifest")
        path = self.path / current[1].decode()
        if self._manifest is None or self._manifest.path != path:
            self._manifest, self._alive = Log(path), set()
        for edit in self._manifest.read():
            try:
                made, gone, log = _edit(edit)
            except DAMAGE:
                self.damaged += 1
                continue
            for one in made:
                known = self._made.get(one.number)  # moved to another level, or repeated in a new manifest
                self._made[one.number] = one if known is None else known._replace(level=one.level)
            self._oldest_log = max(self._oldest_log, log)
            self._alive = (self._alive - gone) | {one.number for one in made}


def _names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _edit(record: bytes) -> tuple[list[_Made], set[int], int]:
    """Return the tables that a manifest edit adds, those it removes, and the oldest live log (0 if not given)."""
    position, new, gone, log = 0, list[tuple[int, int, int, int]](), set[int](), 0
    while position < len(record):
        tag, position = varint(record, position)
        if tag == _LOG_NUMBER:
            log, position = varint(record, position)
        elif tag in _NUMBERS:
            _, position = varint(record, position)
        elif tag in _TEXTS or tag & _MAY_BE_IGNORED:
            position = _behind_text(record, position)
        elif tag == _COMPACT_CURSOR:
            _, position = varint(record, position)
            position = _behind_text(record, position)
        elif tag == _DELETED_FILE:
            (_, number), position = _numbers(record, position, 2)
            gone.add(number)
        elif tag == _NEW_FILE:
            (level, number, _), position = _numbers(record, position, 3)
            position = _behind_text(record, _behind_text(record, position))
            (oldest, newest), position = _numbers(record, position, 2)
            while (more := varint(record, position))[0] != _END_OF_FILE:
                position = _behind_text(record, more[1])
            position = more[1]
            new.append((number, level, oldest, newest))
        else:
            raise ValueError(f"an edit of kind {tag}")
    of = frozenset(gone - {one[0] for one in new})  # a table both removed and added only changes its level
    return [_Made(*one, of, bool(of) or one[1] > 0) for one in new], gone, log


def _numbers(record: bytes, position: int, count: int) -> tuple[list[int], int]:
    found = []
    for _ in range(count):
        number, position = varint(record, position)
        found.append(number)
    return found, position


def _behind_text(record: bytes, position: int) -> int:
    length, position = varint(record, position)
    return position + length


class _Newest:
    """Collects the newest value of each key, from changes in any order."""

    def __init__(self, begin: bytes) -> None:
        self._begin = begin
        self._found: dict[bytes, tuple[int, bytes | None]] = {}
        self._below: dict[bytes, int] = {}
        """Deleted ranges of all keys with one prefix, by prefix; Aim makes thousands of them."""
        self._ranges: list[Change] = []

    def take(self, changes: Iterable[Change]) -> None:
        for one in changes:
            if one.kind == RANGE_DELETED and one.value == one.key + b"\xff":
                self._below[one.key] = max(one.sequence, self._below.get(one.key, 0))
            elif one.kind == RANGE_DELETED:
                self._ranges.append(one)
            elif one.key.startswith(self._begin) and self._found.get(one.key, (0,))[0] <= one.sequence:
                self._found[one.key] = one.sequence, one.value if one.kind == PUT else None

    def alive(self) -> dict[bytes, bytes]:
        """Return the values that were not deleted since."""
        return {
            key: value
            for key, (sequence, value) in self._found.items()
            if value is not None and not self._is_deleted(key, sequence)
        }

    def _is_deleted(self, key: bytes, sequence: int) -> bool:
        words = (key[:end] for end in range(1, len(key) + 1) if key[end - 1] == _SEPARATOR)
        if any(self._below.get(word, 0) > sequence for word in words):
            return True
        return any(one.sequence > sequence and one.key <= key < one.value for one in self._ranges)
