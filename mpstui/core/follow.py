"""Files that others write, followed by their path: which file it is, what was added to it, and how long to read."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ..wire import storage
from ..wire.storage import NewerSchema, UnreadableRecord, load_object

T = TypeVar("T")
SLICE_BYTES = 1 << 18
LONGEST_LINE_BYTES = 1 << 20
"""A line longer than this is dropped: no record of ours is, and memory must stay bounded."""
_WITNESS_BYTES = 32


class FollowedFile:
    """One file that grows; it may not exist yet, be replaced, be cut, or be cut and written again past where it was.

    It is another file when its inode is another one, when it is shorter than what was read of it, or when other bytes
    stand before the place that was read to. NULs there are a hole: a capped log gives its front back to the disk.
    """

    def __init__(self, path: Path, *, start: int = 0, witness: bytes = b"") -> None:
        """``witness``: the bytes before ``start``, where they were read already."""
        self.path = path
        self.offset = start
        """Bytes read; of another file it begins at 0 again."""
        self.size = 0
        """Of the file at the last look."""
        self.changed_at: float | None = None
        """Modification time of the file, Unix seconds; None while there is no file."""
        self.restarts = 0
        """How often it turned out to be another file."""
        self.unreadable = False
        """Whether the file is there and cannot be opened."""
        self._name = str(path)
        self._identity: tuple[int, int] | None = None
        self._mark: tuple[int, int, int] | None = None
        self.witness = witness
        """The bytes before ``offset``."""

    def paths(self) -> Sequence[Path]:
        """The files that are followed."""
        return (self.path,)

    @property
    def unread_bytes(self) -> int:
        """What the file holds beyond what was read."""
        return max(0, self.size - self.offset)

    def poll(self) -> bool:
        """Look at the file; True when it is not as it was. One that is gone for a moment keeps what was read of it."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 - half the price of Path.stat
        except (OSError, ValueError):  # ValueError: a name that no file can have
            self.changed_at = self._mark = None
            return False
        if _mark(found) == self._mark:
            return False
        try:
            descriptor = self._open()
        except OSError:
            self.unreadable, self.size, self.changed_at = True, found.st_size, found.st_mtime
            return False
        os.close(descriptor)
        return True

    def peek(self, limit: int) -> bytes:
        """The next bytes, ``limit`` at most; none at the end, and while there is no file to read."""
        try:
            descriptor = self._open()
        except OSError as error:
            self.unreadable = not isinstance(error, FileNotFoundError)
            return b""
        try:
            start = after_hole(descriptor, self.offset, self.size)
            if start != self.offset:
                self.offset, self.witness = start, b""
            return os.pread(descriptor, limit, self.offset)
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def advance(self, data: bytes) -> None:
        """These bytes have been read."""
        self.offset += len(data)
        self.witness = (self.witness + data[-_WITNESS_BYTES:])[-_WITNESS_BYTES:]

    def take(self, limit: int) -> bytes:
        """The next bytes, which thereby are read."""
        data = self.peek(limit)
        self.advance(data)
        return data

    def _open(self) -> int:
        """The file opened, and compared with what was seen of it."""
        descriptor = storage.open_descriptor(self._name)
        try:
            found = os.fstat(descriptor)
            if _mark(found) != self._mark:
                if self._is_another(descriptor, found):
                    self.offset, self.witness = 0, b""
                    self.restarts += 1
                self._identity, self._mark = (found.st_dev, found.st_ino), _mark(found)
                self.size, self.changed_at, self.unreadable = found.st_size, found.st_mtime, False
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _is_another(self, descriptor: int, found: os.stat_result) -> bool:
        if self._identity not in (None, (found.st_dev, found.st_ino)) or found.st_size < self.offset:
            return True
        there = os.pread(descriptor, len(self.witness), self.offset - len(self.witness))
        return there != self.witness and there.strip(b"\0") != b""


class FollowedFiles(FollowedFile):
    """Several files that tell of one thing, followed by whether any of them changes; its offset counts in all of them.

    What is read, and that one of them was replaced, is the business of whoever reads them.
    """

    def __init__(self, path: Path, files: Callable[[], Iterable[Path]]) -> None:
        super().__init__(path)
        self._files = files
        self._marks: list[tuple[int, int, int]] = []

    def paths(self) -> Sequence[Path]:
        return tuple(self._files())

    def poll(self) -> bool:
        """Look at the files; True when one is not as it was. After any change there is something to be read."""
        marks = [mark for path in self._files() if (mark := storage.stamp(path)) is not None]
        if marks == self._marks:
            return False
        self._marks = marks
        self.changed_at = max(marks)[0] / 1e9 if marks else None
        if marks:
            self.size = sum(mark[2] for mark in marks)
            self.offset = min(self.offset, self.size - 1)
        return bool(marks)


class Growth(NamedTuple):
    """What one read found."""

    data: bytes = b""
    """Complete lines, newlines included."""
    offset: int = 0
    """Where ``data`` begins in the file."""
    restarted: bool = False
    """The file is another one (or was cut): forget what was read before."""
    more: bool = False
    """The budget ended before the file did."""
    dropped_lines: int = 0
    """Lines too long to be kept."""


class LineTail(FollowedFile):
    """Complete lines as they are added: a torn last line is "not yet"."""

    def __init__(self, path: Path, *, start: int = 0) -> None:
        super().__init__(path, start=start)
        self._skipping = False
        """In the middle of a line that is too long."""
        self._more = False

    def read(self, budget_bytes: int = SLICE_BYTES) -> Growth:
        """Complete lines that were added, at most about ``budget_bytes`` of them; never raises for a file's sake."""
        before, want = self.restarts, max(4096, budget_bytes)
        changed = self.poll() or self._more or self._skipping
        data = self.peek(want) if changed and self.changed_at is not None else b""
        restarted = self.restarts > before
        self._skipping = self._skipping and not restarted
        if not data:
            self._more = False
            return Growth(offset=self.offset, restarted=restarted)
        if self._skipping:
            data = self._skip(data)
        end = data.rfind(b"\n") + 1
        if not end and len(data) >= want and want < LONGEST_LINE_BYTES:
            data = self.peek(LONGEST_LINE_BYTES)
            end = data.rfind(b"\n") + 1
        start, too_long = self.offset, not end and len(data) >= LONGEST_LINE_BYTES
        self._skipping = self._skipping or too_long
        self.advance(data if too_long else data[:end])
        # More is there when the file goes on beyond the bytes looked at; a torn last line alone is not "more".
        self._more = start + len(data) < self.size
        return Growth(data[:end], start, restarted, self._more, int(too_long))

    def _skip(self, data: bytes) -> bytes:
        """What follows the line that is too long; nothing while its end has not come."""
        line = data[: data.find(b"\n") + 1 or len(data)]
        self.advance(line)
        self._skipping = not line.endswith(b"\n")
        return data[len(line) :]


class RecordFile(Generic[T]):
    """A small file that holds one JSON object and is replaced whole; read when its stat says so.

    ``value`` is what the file holds now, None when it is missing or unreadable; ``error`` says what is wrong with it.
    """

    def __init__(self, path: Path, parse: Callable[[Mapping[str, Any]], T]) -> None:
        self.value: T | None = None
        self.error: str | None = None
        self.newer = False
        self.raw: Mapping[str, Any] = {}
        """The object as it stands in the file, {} when there is none."""
        self.modified_ns: int | None = None
        """Of the file, nanoseconds of Unix time."""
        self._parse = parse
        self._name = str(path)  # without the path itself, 500 runs that have ended take 3 MB less
        self._mark: tuple[int, int, int] | None = None

    @property
    def path(self) -> Path:
        return Path(self._name)

    def read(self) -> bool:
        """Look at the file; True when its content is another one than before."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 - half the price of Path.stat
        except OSError as error:
            changed = self._mark is not None
            self._mark, self.modified_ns, self.value, self.newer, self.raw = None, None, None, False, {}
            missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
            self.error = None if missing else f"{self.path.name}: {error.strerror}"
            return changed
        if _mark(found) == self._mark:
            return False
        self._mark, self.modified_ns = _mark(found), found.st_mtime_ns
        self.value, self.error, self.newer, self.raw = None, None, False, {}
        try:
            self.raw = load_object(storage.read_bytes(self._name))
            self.value = self._parse(self.raw)
        except NewerSchema as error:
            self.newer, self.error = True, f"{self.path.name}: {error}"
        except (UnreadableRecord, OSError, TypeError, ValueError, AttributeError, KeyError) as error:
            # Whatever the parser of a record stumbles over, the file is the one to blame: it is not ours.
            self.error, self._mark = f"{self.path.name}: {error}", None  # perhaps it is just being written: look again
        return True


class Occasional(Generic[T]):
    """A value that is looked up again after some seconds, and at once when what was told of it has changed."""

    def __init__(self, every_seconds: float, nothing: T) -> None:
        self._every_seconds = every_seconds
        self._value = nothing
        self._looked: tuple[float, object] | None = None

    def get(self, now: float, told: object, look: Callable[[], T]) -> T:
        """The value; ``look`` is called where it is due."""
        if self._looked is None or now - self._looked[0] >= self._every_seconds or told != self._looked[1]:
            self._looked, self._value = (now, told), look()
        return self._value


class Budget:
    """Seconds that may still be spent; always allows the first slice, so that every refresh gets further."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        """``clock``: what counts them; `time.thread_time` where a busy machine must not shorten an answer."""
        self._clock = clock
        self._deadline = clock() + seconds

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return self._clock() >= self._deadline


def last_lines(path: Path, budget_bytes: int) -> bytes:
    """The complete lines within the last ``budget_bytes`` of a file; nothing when it cannot be read."""
    try:
        with storage.open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            start = max(0, size - budget_bytes)
            data = os.pread(file.fileno(), budget_bytes, start)
    except OSError:
        return b""
    if start:
        data = data[data.find(b"\n") + 1 :]
    return data[: data.rfind(b"\n") + 1]


def after_hole(descriptor: int, offset: int, size: int) -> int:
    """The next offset that holds data, ``size`` where none does: a capped log gives its front back to the disk."""
    if not hasattr(os, "SEEK_DATA") or offset >= size or os.pread(descriptor, 1, offset) != b"\0":
        return offset
    try:
        return max(offset, os.lseek(descriptor, offset, os.SEEK_DATA))
    except OSError as error:
        return size if error.errno == errno.ENXIO else offset


def hundredths(read_bytes: int, size: int) -> float:
    """How much of a file has been read, rounded down to hundredths: 1.0 says all of it."""
    return min(read_bytes, size) * 100 // size / 100 if size > 0 else 0.0


def _mark(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mtime_ns, found.st_ino, found.st_size
