"""Weights & Biases' transaction log (``run-ID.wandb``), read without wandb: framing, protobuf records, values as JSON.

A header of 7 bytes, then blocks of 32 KiB as in LevelDB's log, made of chunks ``u32 crc32 | u16 length | u8 kind |
data``. The checksum is of kind and data, and a record that crosses a block is split into several chunks. The end of a
block is padded if it is too short for a chunk's header. A live file may end anywhere: a partial chunk is read later.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import ClassVar

from ....wire import storage
from ...model.snapshot import State
from ..media import Media
from ..points import MetricPoint, ParsedLog, Point, Priority, Standing
from ..protobuf import fields, varint
from ..rows import Row, Rows, one_by_one
from ..told import SYSTEM, RunTold, flattened
from . import CHUNK
from ._wandb_media import may_hold_media, take_media
from ._wandb_steps import Steps

SIGNATURE = b":W&B\xe1\xbe"
HEADER_BYTES, BLOCK_BYTES = 7, 1 << 15
CHUNK_HEADER = struct.Struct("<IHB")


class Piece(IntEnum):
    """The part of a record that a chunk holds."""

    FULL = 1
    FIRST = 2
    MIDDLE = 3
    LAST = 4


class Record(IntEnum):
    """The field that a record sets, which is its kind."""

    HISTORY = 2
    SUMMARY = 3
    CONFIG = 5
    STATS = 7
    METRIC = 12
    OUTPUT_RAW = 13
    RUN = 17
    EXIT = 18
    HEADER = 21
    ENVIRONMENT = 26


class Item(IntEnum):
    """The fields of a named value; the same in history, configuration and statistics."""

    KEY = 1
    NESTED_KEY = 2
    BOOLEAN = 4
    INTEGER = 5
    NUMBER = 6
    VALUE_JSON = 16


_TOLD = (Record.RUN, Record.CONFIG, Record.EXIT, Record.ENVIRONMENT, Record.METRIC)
_MOST_RECORD_BYTES = 1 << 26
_END_BYTES = 4 * BLOCK_BYTES
_UNIX_FROM = 1e8
_ENVELOPE = re.compile(rb"(?s)\x08[\x80-\xff]{0,9}[\x00-\x7f]([\x12\x1a])[\x80-\xff]{0,4}[\x00-\x7f]")
_OF_HISTORY = b"\x12"
# A number whose name is a single part of plain ASCII; anything else is read field by field.
_PLAIN = re.compile(
    rb"\n[\x80-\xff]?[\x00-\x7f][\n\x12][\x01-\x7f]([ -~]{1,127})"
    rb"\x82\x01[\x00-\x7f](-?[0-9][0-9.eE+-]{0,40}|NaN|-?Infinity)"
)
_STEP = re.compile(rb"(?s)\x12(?:\x00|[\x02-\x0b]\x08[\x80-\xff]{0,9}[\x00-\x7f]).{0,200}\Z|\Z")


class TransactionLog:
    """Reads the records of one file as they are appended."""

    def __init__(self, path: Path, start: int = HEADER_BYTES) -> None:
        self.offset = start
        """Everything before this position has been read."""
        self.damaged = 0
        """Blocks that were abandoned at a damaged chunk."""
        self._path = path
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._whole = False
        """True while a record has begun and no piece of it is missing."""

    def read(self, limit: int | None = None) -> Iterator[bytes]:
        """Yield complete records, of about ``limit`` bytes; raises OSError."""
        with storage.open_file(self._path) as file:
            stop = None if limit is None else self.offset + limit
            while stop is None or self.offset < stop:
                file.seek(self.offset)
                before, data = self.offset, file.read(CHUNK if limit is None else max(limit, 2 * BLOCK_BYTES))
                yield from self._records(data)
                if self.offset == before:
                    return

    def _records(self, data: bytes) -> Iterator[bytes]:
        position, base, size = 0, self.offset, len(data)
        check, unpack, header = zlib.crc32, CHUNK_HEADER.unpack_from, CHUNK_HEADER.size
        full, last = int(Piece.FULL), int(Piece.LAST)
        while True:
            left = BLOCK_BYTES - (base + position) % BLOCK_BYTES
            if left < header:
                if position + left > size:
                    break
                position += left
                continue
            if position + header > size:
                break
            checksum, length, kind = unpack(data, position)
            end = position + header + length
            sound = full <= kind <= last and header + length <= left
            if not sound or (end <= size and check(data[position + 6 : end]) != checksum):
                if position + left >= size:  # the rest of the block may still be being written
                    break
                self._whole, self._pieces, self._held_bytes = False, [], 0
                self.damaged += 1
                position += left
                continue
            if end > size:
                break
            if kind == full:
                yield data[position + header : end]
            elif (record := self._joined(kind, data[position + header : end])) is not None:
                yield record
            position = end
        self.offset = base + position

    def _joined(self, kind: int, piece: bytes) -> bytes | None:
        if kind == Piece.FIRST:
            self._whole, self._pieces, self._held_bytes = True, [], 0
        self._held_bytes += len(piece)
        if not self._whole or self._held_bytes > _MOST_RECORD_BYTES:
            self._whole, self._pieces = False, []
            return None
        self._pieces.append(piece)
        if kind != Piece.LAST:
            return None
        record, self._pieces, self._whole = b"".join(self._pieces), [], False
        return record


class _Names(dict[bytes, str]):
    """Names as text, each decoded once; wandb's internal names all become empty."""

    def __missing__(self, name: bytes) -> str:
        text = name.decode("ascii")
        self[name] = "" if text.startswith("_") and text not in ("_step", "_timestamp") else text
        return self[name]


class WandbFile:
    """Reads one run of Weights & Biases: its history, the readings of the machine, and what is said of the run."""

    name: ClassVar[str] = "wandb"
    priority: ClassVar[Priority] = Priority.EXACT
    suffixes: ClassVar[tuple[str, ...]] = (".wandb",)

    def __init__(self, path: Path, rows: Rows | None = None, media: Media | None = None) -> None:
        """``rows`` and ``media`` are shared with further files of the run."""
        self.path = path
        self.told = RunTold()
        self.media = media or Media()
        self._log = TransactionLog(path)
        self._rows = rows or Rows(self.name)
        self._names = _Names()
        self._steps = Steps()

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """True if the file begins with the signature of seven bytes."""
        return start.startswith(SIGNATURE)

    @property
    def position(self) -> int:
        return self._log.offset

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """Return the points logged since the last call, one by one."""
        return list(one_by_one(self._read(self._log, limit)))

    def take(self, limit: int) -> Sequence[Point]:
        return self._read(self._log, limit)

    def glance(self) -> Sequence[Point]:
        """Read both ends of a long file that is still unread: facts of the run, its newest values, how it ended."""
        size = self.path.stat().st_size
        if size <= 2 * _END_BYTES or self.position > HEADER_BYTES:
            return ()
        self._read(TransactionLog(self.path), BLOCK_BYTES, Rows(self.name))
        start = (size - _END_BYTES) // BLOCK_BYTES * BLOCK_BYTES
        points = self._read(TransactionLog(self.path, start), None, Rows(self.name))
        self._steps.rewind()
        self.media = Media()
        return points

    def close(self) -> list[MetricPoint]:
        """Return the new points: nothing is held back, since an incomplete record was never finished."""
        return self.poll()

    @property
    def damaged(self) -> int:
        """Number of damaged blocks that were skipped."""
        return self._log.damaged

    def summary(self) -> ParsedLog:
        damaged = self.damaged
        part = f"{damaged} damaged block{'s' * (damaged > 1)} passed over" if damaged else None
        return self._rows.summary(Standing(done=self.told.state is State.FINISHED), part)

    def _read(self, log: TransactionLog, limit: int | None, rows: Rows | None = None) -> list[Point]:
        found: list[Row] = []
        for record in log.read(limit):
            try:
                if (head := _ENVELOPE.match(record)) is not None:
                    if head[1] == _OF_HISTORY:
                        found += self._row(record[head.end() :])
                    continue
                kind, payload = _kind_of(record)
                if kind == Record.STATS:
                    found.append(self._stats(payload))
                elif kind in _TOLD:
                    self._tell(kind, payload)
            except (IndexError, ValueError, struct.error):
                continue  # only this malformed record is lost
        return (rows or self._rows).place(found)

    def _row(self, payload: bytes) -> Sequence[Row]:
        pieces = _PLAIN.split(payload)
        if not any(pieces[:-1:3]) and _STEP.match(pieces[-1]):
            names = self._names
            values: dict[str, float | bytes] = dict(
                zip([names[one] for one in pieces[1::3]], pieces[2::3], strict=True)
            )
            values.pop("", None)
        else:
            values = {
                name: one for name, one in _items(payload, 1) if name[:1] != "_" or name in ("_step", "_timestamp")
            }
        step, moment = float(values.pop("_step", math.nan)), float(values.pop("_timestamp", math.nan))
        placed = self._steps.rows(values, step, moment)
        if may_hold_media(payload):
            take_media(self.media, payload, self.path.parent / "files", self._steps.newest, moment)
        return placed

    def _stats(self, payload: bytes) -> Row:
        stamp = next((value for number, value in fields(payload) if number == 2 and isinstance(value, bytes)), b"")
        values = {SYSTEM + name: value for name, value in _items(payload, 3)}
        return Row(values, self._steps.newest, _moment(stamp) or math.nan)

    def _tell(self, kind: int, payload: bytes) -> None:
        """Take in what a record says about the run as a whole."""
        found = _messages(payload)
        told = self.told
        if kind == Record.RUN:
            config = {**told.config} | {k: v for item in found.get(4, ()) for k, v in _config(item).items()}
            self.told = told._replace(
                config=config,
                id=_word(found, 1) or told.id,
                project=_word(found, 3) or told.project,
                group=_word(found, 6) or told.group,
                name=_word(found, 8) or told.name,
                note=_word(found, 9) or told.note,
                tags=tuple(map(_plain, found.get(10, ()))) or told.tags,
                host=_word(found, 13) or told.host,
                started=next(map(_moment, found.get(17, ())), told.started),
            )
        elif kind == Record.CONFIG:
            self.told = told._replace(config={**told.config, **_config(payload)})
        elif kind == Record.ENVIRONMENT:
            program, args = _word(found, 6), tuple(map(_plain, found.get(5, ())))
            self.told = told._replace(
                argv=(program, *args) if program else told.argv, host=_word(found, 12) or told.host
            )
        elif kind == Record.EXIT:
            numbers = {number: value for number, value in fields(payload) if isinstance(value, int)}
            code = _signed(numbers.get(1, 0))
            state = State.FINISHED if code == 0 else State.FAILED
            self.told = told._replace(exit_code=code, state=state, runtime=float(numbers.get(2, 0)) or None)
        else:
            self._steps.define(_word(found, 1) or _word(found, 2), _word(found, 4))


def _plain(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _messages(payload: bytes) -> dict[int, list[bytes]]:
    """Return the fields of a message that hold bytes, by number."""
    found: dict[int, list[bytes]] = {}
    for number, value in fields(payload):
        if isinstance(value, bytes):
            found.setdefault(number, []).append(value)
    return found


def _word(found: Mapping[int, Sequence[bytes]], number: int) -> str:
    return _plain(found[number][0]) if found.get(number) else ""


def _kind_of(record: bytes) -> tuple[int, bytes]:
    """Return the kind of a record and its content; raises IndexError if it has none."""
    position, size = 0, len(record)
    while position < size:
        key, position = varint(record, position)
        if key & 7 == 0:
            _, position = varint(record, position)
            continue
        if key & 7 != 2:
            raise IndexError
        length, position = varint(record, position)
        if position + length > size:
            raise IndexError
        if key >> 3 not in (16, 19, 200):
            return key >> 3, record[position : position + length]
        position += length
    raise IndexError


def _items(payload: bytes, field: int) -> Iterator[tuple[str, float]]:
    """Yield the named numbers of a message, without texts and without descriptions of histograms, tables and images."""
    found: dict[tuple[str, ...], float] = {}
    described: set[tuple[str, ...]] = set()
    for number, item in fields(payload):
        if number != field or not isinstance(item, bytes):
            continue
        names: list[str] = []
        value: float | None = None
        for kind, part in fields(item):
            if kind in (Item.KEY, Item.NESTED_KEY) and isinstance(part, bytes):
                names.append(_plain(part))
            elif kind == Item.VALUE_JSON and isinstance(part, bytes):
                value = _json_number(part)
            elif kind == Item.INTEGER and isinstance(part, int):
                value = float(_signed(part))
            elif kind == Item.NUMBER and isinstance(part, bytes) and len(part) == 8:
                value = struct.unpack("<d", part)[0]
        if names and value is not None:
            found[tuple(names)] = value
        elif names[1:] and names[-1] == "_type":
            described.add(tuple(names[:-1]))
    for name, one in found.items():
        if not described or not any(name[:depth] in described for depth in range(1, len(name))):
            yield ".".join(part for part in name if part), one


def _json_number(text: bytes) -> float | None:
    if len(text) > 64 or text[:1] not in b'-0123456789NI"' or not text:
        return None
    try:
        return float(text.strip(b'"')) if text[:1] != b'"' or text[1:2] in b"-NI" else None
    except ValueError:
        return None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _moment(stamp: bytes) -> float | None:
    """Return the Unix seconds of a timestamp; None if it holds none."""
    numbers = {number: value for number, value in fields(stamp) if isinstance(value, int)}
    seconds = numbers.get(1, 0) + numbers.get(2, 0) / 1e9
    return seconds if seconds > _UNIX_FROM else None


def _config(payload: bytes) -> dict[str, str]:
    """Return the settings of a configuration, nested ones under their dotted path; wandb's own are left out."""
    found: dict[str, str] = {}
    for number, item in fields(payload):
        if number != 1 or not isinstance(item, bytes):
            continue
        parts = _messages(item)
        name = ".".join(_plain(one) for one in [*parts.get(Item.KEY, ()), *parts.get(Item.NESTED_KEY, ())] if one)
        if name and not name.startswith("_wandb"):
            for text in parts.get(Item.VALUE_JSON, ())[:1]:
                try:
                    found |= flattened(name, json.loads(text))
                except (ValueError, RecursionError):
                    continue
    return found


FILE = WandbFile
