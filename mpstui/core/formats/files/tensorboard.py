"""TensorBoard event files, read without TensorBoard: record framing, the few protobuf fields that hold scalars.

Framing: ``u64 length | u32 masked crc32c(length) | data | u32 masked crc32c(data)``, little endian, mask
``((crc >> 15) | (crc << 17)) + 0xa282ead8``. Messages: tensorflow/core/util/event.proto and framework/summary.proto.
A partial last record is normal in a live file and is read again later; checksums are computed only when a length looks
absurd.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from ....wire import storage
from ..points import MetricPoint
from ..protobuf import fields
from ..vocabulary import EVAL_WORDS
from . import Records

_HEADER = struct.Struct("<QI")
_FOOTER = 4
_SUSPICIOUS = 1 << 24
_SKIPPED_ABOVE = 1 << 22
"""Bytes of a record beyond which it holds images or a graph, no scalars."""


class TensorBoard(Records):
    """Scalars of one event file; values of one step form one record."""

    name = "tensorboard"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._offset = 0
        self._step = 0
        self._values: dict[str, object] = {}
        # Keras writes its validation curves under the names of training, in a folder of their own.
        self._evaluation = path.parent.name.lower() in EVAL_WORDS

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """The first record is intact and says which version of events follows, or the name says so."""
        if len(start) < _HEADER.size:
            return "tfevents" in path.name
        length, checksum = _HEADER.unpack_from(start)
        return bool(length < _SUSPICIOUS and masked_crc32c(start[:8]) == checksum)

    @property
    def position(self) -> int:
        """Bytes of whole records that were read."""
        return self._offset

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """The points of whole records since the last call, or of about ``limit`` bytes of them.

        The newest step is held until another begins.
        """
        points: list[MetricPoint] = []
        for data in self._records(limit):
            step, values = _event(data)
            if values and (step != self._step or self._values.keys() & values.keys()):
                points += self._flush()
                self._step = step
            self._values.update(values)
        return points

    def close(self) -> list[MetricPoint]:
        """With the newest step too."""
        return self.poll() + self._flush()

    def _flush(self) -> list[MetricPoint]:
        values, self._values = self._values, {}
        if not values:
            return []
        record: dict[str, object] = {"step": self._step, **values}
        return self.points_of({**record, "phase": "val"} if self._evaluation else record)

    def _records(self, limit: int | None) -> Iterator[bytes]:
        size = self.path.stat().st_size
        stop = size if limit is None else self._offset + limit
        with storage.open_file(self.path) as file:
            while self._offset < stop and self._offset + _HEADER.size + _FOOTER <= size:
                file.seek(self._offset)
                header = file.read(_HEADER.size)
                length, checksum = _HEADER.unpack(header)
                if length > _SUSPICIOUS and masked_crc32c(header[:8]) != checksum:
                    return
                end = self._offset + _HEADER.size + length + _FOOTER
                if end > size:
                    return
                if length <= _SKIPPED_ABOVE:
                    yield file.read(length)
                self._offset = end


def _event(data: bytes) -> tuple[int, dict[str, float]]:
    """Step and scalars of an ``Event``; a damaged one says nothing."""
    step, values = 0, dict[str, float]()
    try:
        for number, value in fields(data):
            if number == 2 and isinstance(value, int):
                step = value - (1 << 64) if value >> 63 else value
            elif number == 5 and isinstance(value, bytes):
                values.update(_scalar(v) for n, v in fields(value) if n == 1 and isinstance(v, bytes) and _scalar(v)[0])
    except (IndexError, struct.error, UnicodeDecodeError):
        return 0, {}
    return step, values


def _scalar(data: bytes) -> tuple[str, float]:
    """Tag and value of a ``Summary.Value``; an empty tag when it is no scalar."""
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
    """The number of a ``TensorProto`` that holds exactly one float or double."""
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
