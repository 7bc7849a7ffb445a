"""Following files that others write: is it still the same file, what was added, and how long may reading take?"""

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
"""Longer lines are dropped: no record of ours is that long, and memory must stay bounded."""
_WITNESS_BYTES = 32


class FollowedFile:
    """One growing file. It may not exist yet, be replaced, be truncated, or be truncated and grow past the old end.

    It counts as another file if its inode changed, if it is shorter than the part already read, or if the last bytes
    read are no longer there. NULs in their place are a hole, not a change: the front of a capped log is punched out to
    free disk space.
    """

    def __init__(self, path: Path, *, start: int = 0, witness: bytes = b"") -> None:
        """``witness``: the last bytes before ``start``, if known; see :attr:`witness`."""
        self.path = path
        self.offset = start
        """The position reached in the file; back to 0 if it turns out to be another file."""
        self.size = 0
        """Size of the file in bytes when it was last checked."""
        self.changed_at: float | None = None
        """When the file was last modified, Unix seconds; None while there is no file."""
        self.restarts = 0
        """How many times it turned out to be another file."""
        self.unreadable = False
        """True if the file exists but cannot be opened."""
        self._name = str(path)
        self._identity: tuple[int, int] | None = None
        self._mark: tuple[int, int, int] | None = None
        self.witness = witness
        """The last few bytes before ``offset``: a file that no longer contains them there is another one."""

    def paths(self) -> Sequence[Path]:
        """The files being followed."""
        return (self.path,)

    @property
    def unread_bytes(self) -> int:
        """How many bytes of the file are still to be read."""
        return max(0, self.size - self.offset)

    def poll(self) -> bool:
        """Check the file; True if it changed. The position survives if the file is missing for a moment."""
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
        """Return up to ``limit`` next bytes without moving past them; none at the end or while there is no file."""
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
        """Move past ``data``, which :meth:`peek` returned."""
        self.offset += len(data)
        self.witness = (self.witness + data[-_WITNESS_BYTES:])[-_WITNESS_BYTES:]

    def take(self, limit: int) -> bytes:
        """Read up to ``limit`` next bytes and move past them."""
        data = self.peek(limit)
        self.advance(data)
        return data

    def _open(self) -> int:
        """Open the file, and start over if it is a different one."""
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
    """Several related files, polled as one; ``size`` and ``offset`` are totals over all of them.

    Reading them, and noticing that one was replaced, is left to the caller.
    """

    def __init__(self, path: Path, files: Callable[[], Iterable[Path]]) -> None:
        super().__init__(path)
        self._files = files
        self._marks: list[tuple[int, int, int]] = []

    def paths(self) -> Sequence[Path]:
        return tuple(self._files())

    def poll(self) -> bool:
        """Check the files; True if one changed. After any change, at least one byte counts as unread."""
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
    """The result of one read."""

    data: bytes = b""
    """Complete lines, including newlines."""
    offset: int = 0
    """Where ``data`` begins in the file."""
    restarted: bool = False
    """True if the file was replaced or truncated: forget what was read before."""
    more: bool = False
    """True if the budget ran out before the end of the file."""
    dropped_lines: int = 0
    """Number of lines that were too long to keep."""


class LineTail(FollowedFile):
    """A file read in complete lines: the last line counts only once its newline has been written."""

    def __init__(self, path: Path, *, start: int = 0) -> None:
        super().__init__(path, start=start)
        self._skipping = False
        """True while the next bytes belong to a line that is too long."""
        self._more = False

    def read(self, budget_bytes: int = SLICE_BYTES) -> Growth:
        """Return the complete lines added, about ``budget_bytes`` at most. Never raises, whatever the file's state."""
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
        # "More" means bytes beyond those peeked at; an unfinished last line does not count.
        self._more = start + len(data) < self.size
        return Growth(data[:end], start, restarted, self._more, int(too_long))

    def _skip(self, data: bytes) -> bytes:
        """Drop the rest of an overlong line; return what follows it, if its end is in ``data``."""
        line = data[: data.find(b"\n") + 1 or len(data)]
        self.advance(line)
        self._skipping = not line.endswith(b"\n")
        return data[len(line) :]


class RecordFile(Generic[T]):
    """A small file that holds one JSON object and is replaced as a whole; reread only if its stat changed.

    ``value`` is the parsed content, None if the file is missing or unreadable; ``error`` says what is wrong with it.
    """

    def __init__(self, path: Path, parse: Callable[[Mapping[str, Any]], T]) -> None:
        self.value: T | None = None
        self.error: str | None = None
        self.newer = False
        self.raw: Mapping[str, Any] = {}
        """The unparsed JSON object; empty if there is none."""
        self.modified_ns: int | None = None
        """When the file was last modified, Unix nanoseconds."""
        self._parse = parse
        self._name = str(path)  # not a Path: 500 ended runs take 3 MB less
        self._mark: tuple[int, int, int] | None = None

    @property
    def path(self) -> Path:
        return Path(self._name)

    def read(self) -> bool:
        """Check the file, and read it if needed; True if its content may have changed."""
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
            # Anyone may have written the file: whatever the parser trips over, the file is at fault.
            self.error, self._mark = f"{self.path.name}: {error}", None  # it may be half written: read it again
        return True


class Occasional(Generic[T]):
    """A cached value, looked up again after some seconds, or at once if its key has changed."""

    def __init__(self, every_seconds: float, nothing: T) -> None:
        self._every_seconds = every_seconds
        self._value = nothing
        self._looked_up: tuple[float, object] | None = None

    def get(self, now: float, key: object, look_up: Callable[[], T]) -> T:
        """Return the value, calling ``look_up`` if it is due."""
        if self._looked_up is None or now - self._looked_up[0] >= self._every_seconds or key != self._looked_up[1]:
            self._looked_up, self._value = (now, key), look_up()
        return self._value


class Budget:
    """Seconds that may be spent reading. Callers read one slice before checking, so that every refresh progresses."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        """``clock``: use `time.thread_time` if a busy machine must not shorten the answer."""
        self._clock = clock
        self._deadline = clock() + seconds

    @property
    def spent(self) -> bool:
        """True once the time is up."""
        return self._clock() >= self._deadline


def last_lines(path: Path, budget_bytes: int) -> bytes:
    """Return the complete lines within the last ``budget_bytes`` of a file; empty if it cannot be read."""
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
    """Return the first offset at or after ``offset`` that is not in a hole; ``size`` if the rest is a hole."""
    if not hasattr(os, "SEEK_DATA") or offset >= size or os.pread(descriptor, 1, offset) != b"\0":
        return offset
    try:
        return max(offset, os.lseek(descriptor, offset, os.SEEK_DATA))
    except OSError as error:
        return size if error.errno == errno.ENXIO else offset


def hundredths(read_bytes: int, size: int) -> float:
    """Return the share of a file that has been read, rounded down to hundredths, so that only all of it is 1.0."""
    return min(read_bytes, size) * 100 // size / 100 if size > 0 else 0.0


def _mark(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mtime_ns, found.st_ino, found.st_size
