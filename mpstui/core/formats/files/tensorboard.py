"""TensorBoard event files, read without TensorBoard: the record framing and the few protobuf fields for scalars.

Framing: ``u64 length | u32 masked crc32c(length) | data | u32 masked crc32c(data)``, little endian, mask
``((crc >> 15) | (crc << 17)) + 0xa282ead8``. Messages: tensorflow/core/util/event.proto and framework/summary.proto.
A partial last record is normal in a live file and is read again later; checksums are only computed if a length looks
absurd. Records of a single scalar, which is what SummaryWriter makes, are matched by one regular expression, which only
takes consecutive complete records; all others are read field by field.
"""

from __future__ import annotations

import os
import re
import struct
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from ....wire import storage
from ..event_values import LARGEST_RECORD, Beside
from ..media import Media
from ..points import UNTOLD, MetricPoint, ParsedLog, Point, Priority
from ..protobuf import fields, varint
from ..rows import Rows, is_epoch, one_by_one
from ..vocabulary import EVAL_WORDS
from . import CHUNK

_HEADER = struct.Struct("<QI")
_FOOTER = 4
_SUSPICIOUS = 1 << 24
_END_BYTES, _ZEROS = 1 << 16, bytes(5)
# The frame's length and checksum; time, step, one value with its tag and number; the checksum.
_SCALAR = re.compile(
    rb"(?s)([\x10-\xff])\0{7}.{4}\x09(.{8})(?:\x10([\x80-\xff]{0,9}[\x00-\x7f]))?"
    rb"\x2a[\x00-\x7f]\x0a[\x00-\x7f]\x0a[\x01-\x7f]([ -~]{1,100})\x15(.{4}).{4}"
)
# One of several plain values in a record: its length, the tag's length, the tag, the number.
_VALUE = re.compile(rb"(?s)\x0a([\x00-\x7f])\x0a([\x01-\x7f])([ -~]{1,100})\x15(.{4})")
_BESIDE_TAG = 9
"""Bytes of a `_VALUE` besides its tag."""
Scalar = tuple[float, int, str, float]
"""Time, step, tag and value."""


class TensorBoard:
    """Reads the scalars of one event file, each tag with the steps at which it was written."""

    name: ClassVar[str] = "tensorboard"
    priority: ClassVar[Priority] = Priority.EXACT
    suffixes: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, path: Path, rows: Rows | None = None, beside: Beside | None = None, *, aside: bool = False
    ) -> None:
        """``rows`` and ``beside`` are shared with further files of the run; ``aside``: its steps are not the run's."""
        self.path = path
        self._aside = aside
        self._beside = beside or Beside()
        self._offset = 0
        # Keras writes validation curves under the same names as training, in a folder of their own.
        evaluation = path.parent.name.lower() in EVAL_WORDS
        self._rows = Rows(self.name, evaluation=evaluation) if rows is None else rows

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """True if the first record has a plausible length and checksum; of a file still too short, the name decides."""
        if len(start) < _HEADER.size:
            return "tfevents" in path.name
        length, checksum = _HEADER.unpack_from(start)
        return bool(length < _SUSPICIOUS and masked_crc32c(start[:8]) == checksum)

    @property
    def position(self) -> int:
        """Bytes of complete records that were read."""
        return self._offset

    @property
    def media(self) -> Media:
        """The images and texts of the file."""
        return self._beside.media

    @property
    def settings(self) -> Mapping[str, str]:
        """The arguments of the run (hparams)."""
        return self._beside.settings

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """Return the points of complete records since the last call, or of about ``limit`` bytes of them."""
        found, before = list(one_by_one(self.take(limit or CHUNK))), -1
        while limit is None and self._offset != before:
            before = self._offset
            found += one_by_one(self.take(CHUNK))
        return found

    def take(self, limit: int) -> Sequence[Point]:
        found: list[Scalar] = []
        data = self._read(limit)
        position, size, least = 0, len(data), _HEADER.size + _FOOTER
        while position + least <= size:
            position = self._scalars(data, position, found)
            if position + least > size:
                break
            length, checksum = _HEADER.unpack_from(data, position)
            end = position + least + length
            if end > size or (length > _SUSPICIOUS and masked_crc32c(data[position : position + 8]) != checksum):
                break
            found += self._event(data[position + _HEADER.size : end - _FOOTER], self._offset + position + _HEADER.size)
            position = end
        self._offset += position
        return self._placed(found)

    def glance(self) -> Sequence[Point]:
        """Return the points at the end of a long file that has not been read yet."""
        with storage.open_file(self.path) as file:
            start = file.seek(0, os.SEEK_END) - _END_BYTES
            if start <= 0 or self._offset:
                return ()
            file.seek(start)
            begun = _first_record(file.read())
        if begun is None:
            return ()
        end = TensorBoard(self.path)
        end._offset = start + begun
        return end.take(_END_BYTES)

    def _read(self, limit: int) -> bytes:
        """Return the next bytes, a record longer than ``limit`` in full; one above `LARGEST_RECORD` is skipped."""
        with storage.open_file(self.path) as file:
            file.seek(self._offset)
            data = file.read(max(limit, _HEADER.size))
            if len(data) < _HEADER.size:
                return b""
            length, checksum = _HEADER.unpack_from(data)
            end = _HEADER.size + length + _FOOTER
            if end <= len(data) or (length > _SUSPICIOUS and masked_crc32c(data[:8]) != checksum):
                return data
            if length <= LARGEST_RECORD:
                return data + file.read(end - len(data))
            self._offset += end if self._offset + end <= file.seek(0, os.SEEK_END) else 0
            return b""

    def close(self) -> list[MetricPoint]:
        """Return the new points: nothing is held back."""
        return self.poll()

    def summary(self) -> ParsedLog:
        """Return what the file says so far."""
        return self._rows.summary(UNTOLD, None)

    def _scalars(self, data: bytes, position: int, found: list[Scalar]) -> int:
        """Take consecutive single-scalar records and return the position after them."""
        matches = []
        match, begun = _SCALAR.match(data, position), position
        while match is not None and match.end() - position == match[1][0] + _HEADER.size + _FOOTER:
            matches.append(match.groups())
            position = match.end()
            match = _SCALAR.match(data, position)
        if position == begun:
            return position
        _, times, steps, tags, values = zip(*matches, strict=True)
        known = {one: _signed(varint(one, 0)[0]) if one is not None else 0 for one in set(steps)}
        names = {tag: tag.decode("ascii") for tag in set(tags)}
        count = len(times)
        found += zip(
            struct.unpack(f"<{count}d", b"".join(times)),
            [known[one] for one in steps],
            [names[one] for one in tags],
            struct.unpack(f"<{count}f", b"".join(values)),
            strict=True,
        )
        return position

    def _event(self, data: bytes, at: int) -> list[Scalar]:
        """Return the scalars of an ``Event`` at position ``at`` of the file; none if it is damaged."""
        moment, step, values, plain = 0.0, 0, list[bytes](), list[tuple[str, float]]()
        try:
            for number, value in fields(data):
                if number == 1 and isinstance(value, bytes) and len(value) == 8:
                    moment = struct.unpack("<d", value)[0]
                elif number == 2 and isinstance(value, int):
                    step = _signed(value)
                elif number == 5 and isinstance(value, bytes) and (read := _plain_scalars(value)):
                    plain += read
                elif number == 5 and isinstance(value, bytes):
                    values += [one for kind, one in fields(value) if kind == 1 and isinstance(one, bytes)]
            others = [_scalar(one) for one in values]
            for one, (tag, _) in zip(values, others, strict=True):
                if not tag:
                    self._beside.take(data, one, self.path, at, step, moment)
        except (IndexError, struct.error, UnicodeDecodeError):
            return []
        return [(moment, step, tag, scalar) for tag, scalar in (*plain, *others) if tag]

    def _placed(self, found: Sequence[Scalar]) -> list[Point]:
        """Return the points of scalars; tags written at the same steps are placed together."""
        by_tag: dict[str, list[Scalar]] = {}
        for one in found:
            by_tag.setdefault(one[2], []).append(one)
        self._rows.learn(list(by_tag))
        together: dict[bytes, tuple[array[float], array[float], dict[str, array[float]]]] = {}
        for tag, scalars in by_tag.items():
            times, steps, _, values = zip(*scalars, strict=True)
            at = array("d", steps)
            _, _, columns = together.setdefault(at.tobytes(), (at, array("d", times), {}))
            columns[tag] = array("d", values)
        rows, aside = self._rows, self._aside
        order = sorted(
            together.values(), key=lambda one: (not any(map(is_epoch, one[2])), not rows.leads(one[2]), one[0][-1])
        )
        return [point for steps, times, columns in order for point in rows.columns(columns, steps, times, aside=aside)]


def _first_record(data: bytes) -> int | None:
    """Return where the first record begins, found by the zero bytes of its length and the checksum after them."""
    zeros = data.find(_ZEROS)
    while zeros >= 0:
        begun = zeros - 8 + len(_ZEROS)
        if begun >= 0 and begun + _HEADER.size <= len(data):
            length, checksum = _HEADER.unpack_from(data, begun)
            if length and masked_crc32c(data[begun : begun + 8]) == checksum:
                return begun
        zeros = data.find(_ZEROS, zeros + 1)
    return None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _plain_scalars(summary: bytes) -> list[tuple[str, float]]:
    """Return tags and values of a ``Summary`` of plain scalars alone (in a third of the time); empty for any other."""
    found = _VALUE.findall(summary) if _VALUE.match(summary) else []  # avoids searching an image
    if not found or sum(len(tag) + _BESIDE_TAG for _, _, tag, _ in found) != len(summary):
        return []
    if any(size[0] != len(tag) + _BESIDE_TAG - 2 or of_tag[0] != len(tag) for size, of_tag, tag, _ in found):
        return []
    values = struct.unpack(f"<{len(found)}f", b"".join([value for *_, value in found]))
    return [(tag.decode("ascii"), value) for (_, _, tag, _), value in zip(found, values, strict=True)]


def _scalar(data: bytes) -> tuple[str, float]:
    """Return tag and value of a ``Summary.Value``; the tag is empty if it is not a scalar."""
    tag, found = "", None
    for number, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            tag = value.decode()
        elif number == 2 and isinstance(value, bytes):
            found = struct.unpack("<f", value)[0]
        elif number == 8 and isinstance(value, bytes):
            found = _tensor(value)
    return (tag, float(found)) if found is not None else ("", 0.0)


def _tensor(data: bytes) -> float | None:
    """Return the number of a ``TensorProto`` that holds exactly one float or double."""
    kinds = {5: "<f", 6: "<d"}
    dtype, content = 0, b""
    for number, value in fields(data):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in kinds and isinstance(value, bytes) and len(value) == struct.calcsize(kinds[number]):
            return float(struct.unpack(kinds[number], value)[0])
    form = {1: "<f", 2: "<d"}.get(dtype)
    return float(struct.unpack(form, content)[0]) if form and len(content) == struct.calcsize(form) else None


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_CRC = _crc_table()


def masked_crc32c(data: bytes) -> int:
    """CRC-32C (polynomial 0x82F63B78, reflected), masked as TFRecord files store it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


FILE = TensorBoard
