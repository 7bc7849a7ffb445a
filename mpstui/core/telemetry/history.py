"""Telemetry of one run over time: bounded in a file, and bounded in memory for drawing.

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
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_MAX_BYTES = 4 * 2**20
_FEWEST_BUCKETS = 8


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


@dataclass(frozen=True, slots=True)
class Bucket:
    """Neighbouring points of a series taken together: the time of the first, the extremes, the mean and how many."""

    time: float
    low: float
    high: float
    mean: float
    count: int

    def merged(self, later: Bucket) -> Bucket:
        """This bucket and the next one as one."""
        count = self.count + later.count
        mean = (self.mean * self.count + later.mean * later.count) / count
        return Bucket(self.time, min(self.low, later.low), max(self.high, later.high), mean, count)


@dataclass(slots=True)
class DecimatedSeries:
    """A series of any length in at most ``capacity`` buckets; when full, neighbours merge and no extreme is lost."""

    capacity: int = 1024
    _buckets: list[Bucket] = field(default_factory=list)
    _per_bucket: int = 1

    def __post_init__(self) -> None:
        self.capacity = max(_FEWEST_BUCKETS, self.capacity)

    def append(self, time: float, value: float | None) -> None:
        """Add a value; an unknown or non-finite one leaves a gap."""
        if value is None or not math.isfinite(value):
            return
        new = Bucket(time, value, value, value, 1)
        if self._buckets and self._buckets[-1].count < self._per_bucket:
            self._buckets[-1] = self._buckets[-1].merged(new)
            return
        if len(self._buckets) >= self.capacity:
            self._halve()
        self._buckets.append(new)

    def buckets(self) -> tuple[Bucket, ...]:
        """The series, oldest first."""
        return tuple(self._buckets)

    def _halve(self) -> None:
        old = self._buckets
        self._buckets = [pair[0].merged(pair[1]) if len(pair) == 2 else pair[0] for pair in _pairs(old)]
        self._per_bucket *= 2


def _pairs(buckets: list[Bucket]) -> Iterator[list[Bucket]]:
    return (buckets[at : at + 2] for at in range(0, len(buckets), 2))
