"""Two ways of reading what other programs write: console output in slices, metric files by their own readers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..model.errors import OperationError, UsageError

if TYPE_CHECKING:
    from ..formats.files import MetricFile
    from ..formats.points import Point
    from ..formats.reader import LogReader
    from .notes import LogNote

SLICE_BYTES = 1 << 18
PREVIEW_BYTES = 1 << 19
"""A longer log is understood from its end first; the rest follows in slices."""


class FileReader(Protocol):
    """Reads on in one file."""

    @property
    def read_bytes(self) -> int:
        """How far it has got."""
        ...

    @property
    def primary(self) -> str | None:
        """The name of the loss series to chart; None: there is but one."""
        ...

    @property
    def failure(self) -> str | None:
        """What went wrong in a reader; None: nothing did."""
        ...

    def preview(self, size: int) -> Sequence[Point]:
        """Points at the end of a file that is too long to be read at once; none otherwise."""
        ...

    def read(self, size: int) -> Sequence[Point]:
        """The points of the next slice of a file that is ``size`` bytes long."""
        ...


class ConsoleFile:
    """Console output."""

    def __init__(self, path: Path, pattern: str | None, note: LogNote | None = None) -> None:
        """``note``: what is known of it already; no reader is loaded before the file grows."""
        self.read_bytes = note.read_bytes if note is not None else 0
        self.failure: str | None = None
        self._path = path
        self._pattern = pattern
        self._note = note

    @cached_property
    def _reader(self) -> LogReader:
        if self._note is not None:
            reader = self._new_reader()
            try:
                reader.resume(self._note.memory()["reader"])
            except (ValueError, LookupError, TypeError, AttributeError):
                self.read_bytes = 0  # the note of another program: the file is there to be read
            else:
                return reader
        return self._new_reader()

    @property
    def primary(self) -> str | None:
        """See :class:`FileReader`."""
        return self._reader.primary

    def preview(self, size: int) -> Sequence[Point]:
        """See :class:`FileReader`."""
        if size <= PREVIEW_BYTES:
            return ()
        reader = self._new_reader()
        points = reader.take(_pread(self._path, size - PREVIEW_BYTES, PREVIEW_BYTES))
        return [point for point in points if reader.primary is None or point.newest.series in ("", reader.primary)]

    def read(self, size: int) -> Sequence[Point]:
        """See :class:`FileReader`."""
        reader = self._reader
        data = _pread(self._path, self.read_bytes, SLICE_BYTES)
        self.read_bytes = self.read_bytes + len(data) if data else size
        try:
            return reader.take(data)
        except Exception as error:  # noqa: BLE001 - dozens of grammars over anybody's text: one that fails costs a slice
            self.failure = f"{type(error).__name__}: {error}"
            self._reader = self._new_reader()
            return ()

    @property
    def pattern(self) -> str | None:
        """What its profile declares."""
        return self._pattern

    def memory(self) -> dict[str, Any]:
        """What another reader of the same file needs to go on from here."""
        return {"read_bytes": self.read_bytes, "failure": self.failure, "reader": self._reader.memory()}

    def resume(self, memory: Mapping[str, Any]) -> None:
        """Go on where another one stopped."""
        self.read_bytes, self.failure = memory["read_bytes"], memory["failure"]
        self._reader.resume(memory["reader"])

    def _new_reader(self) -> LogReader:
        from ..formats.declared import Declared
        from ..formats.grammars import all_grammars
        from ..formats.reader import LogReader

        pattern = self._pattern
        if pattern is None:
            return LogReader()
        return LogReader(lambda: [Declared(pattern), *all_grammars()])


class MetricsFile:
    """A metric file, read on by its own reader."""

    primary: str | None = None

    def __init__(self, file: MetricFile) -> None:
        self.failure: str | None = None
        self.read_bytes = 0
        self._file = file

    def preview(self, size: int) -> Sequence[Point]:
        """Not needed: see :class:`FileReader`."""
        return ()

    def read(self, size: int) -> Sequence[Point]:
        """See :class:`FileReader`."""
        before = self._file.position
        self.read_bytes = size  # also where a torn last record keeps the reader from its end
        try:
            points = self._file.poll(SLICE_BYTES)
            if self._file.position != before:
                self.read_bytes = min(size, self._file.position)
            return points
        except OSError:
            return ()
        except Exception as error:  # noqa: BLE001 - anybody's file: a reader that stumbles costs this look
            self.failure = f"{type(error).__name__}: {error}"
            return ()


def open_reader(path: Path, pattern: str | None) -> FileReader | None:
    """The reader that the file's content asks for; None when it cannot be read now."""
    from ..formats.files.console_log import ConsoleLog
    from ..formats.sources import detect

    try:
        if pattern is not None:
            return ConsoleFile(path, pattern)
        file = detect(path)
    except (UsageError, OperationError, OSError):
        return None
    return ConsoleFile(path, None) if isinstance(file, ConsoleLog) else MetricsFile(file)


def _pread(path: Path, offset: int, length: int) -> bytes:
    try:
        with path.open("rb") as file:
            return os.pread(file.fileno(), length, offset)
    except OSError:
        return b""
