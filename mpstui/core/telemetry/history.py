"""Telemetry of one run over time, bounded in a file.

The file holds one JSON object a line, ``{"time": .., "gpu_percent": .., ...}``, with unknown quantities left out. Each
point is one write to a descriptor opened for appending, so that two monitors can follow one run. A torn last line is
passed over. Where the file outgrows its bound, its older part is thinned: a long run keeps its whole course, ever more
coarsely.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT_MAX_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """Quantities by name at ``time`` (Unix seconds); what is not in ``values`` was unknown."""

    time: float
    values: Mapping[str, float]


class HistoryFile:
    """Points of one run in one file. Telemetry is expendable: a full disk loses points and breaks nothing."""

    def __init__(self, path: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self.reason = ""

    def append(self, point: HistoryPoint) -> bool:
        """Add ``point``; False, with ``reason`` set, if the disk did not take it."""
        try:
            size = self._write(_encode(point))
            if size > self._max_bytes:
                self._thin()
        except OSError as error:
            self.reason = f"{self._path} cannot be written: {error.strerror}"
            return False
        self.reason = ""
        return True

    def read(self) -> list[HistoryPoint]:
        """All points in order of time; lines that are torn or foreign are passed over, a missing file is empty."""
        try:
            text = self._path.read_text("utf-8", "replace")
        except OSError:
            return []
        return sorted(_decode_lines(text), key=lambda point: point.time)

    def _write(self, line: bytes) -> int:
        # Opened anew each time: another monitor may have replaced the file when it thinned it.
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            os.write(descriptor, line)
            return size + len(line)
        finally:
            os.close(descriptor)

    def _thin(self) -> None:
        with self._path.open("rb") as current:
            try:
                fcntl.flock(current, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # another monitor is at it
            self._replace(_encode(point) for point in coarsened(self.read()))

    def _replace(self, lines: Iterable[bytes]) -> None:
        descriptor, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
        try:
            with os.fdopen(descriptor, "wb") as new:
                new.writelines(lines)
            Path(name).replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise


def coarsened(points: Sequence[HistoryPoint]) -> list[HistoryPoint]:
    """About half of ``points``: the newest quarter whole, and of the rest the first in each of equal spans of time.

    Done again and again this keeps the whole course at an even resolution; thinning by number instead would empty the
    oldest part.
    """
    quarter = len(points) // 4
    older, newest = points[: len(points) - quarter], points[len(points) - quarter :]
    if quarter == 0 or older[-1].time <= older[0].time:
        return list(points[-2 * quarter or None :])
    span = (older[-1].time - older[0].time) / quarter
    first_of: dict[int, HistoryPoint] = {}
    for point in older:
        first_of.setdefault(int((point.time - older[0].time) / span), point)
    return [*first_of.values(), *newest]


def _encode(point: HistoryPoint) -> bytes:
    finite = {name: value for name, value in point.values.items() if math.isfinite(value)}
    return json.dumps({"time": round(point.time, 3), **finite}, separators=(",", ":")).encode() + b"\n"


def _decode_lines(text: str) -> Iterator[HistoryPoint]:
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and _is_number(record.get("time")):
            values = {name: value for name, value in record.items() if name != "time" and _is_number(value)}
            yield HistoryPoint(record["time"], values)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
