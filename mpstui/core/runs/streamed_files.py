"""The files behind a stream: each line is read once, even if the file is renamed, or moved away and back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...wire import storage
from ..follow import SLICE_BYTES, FollowedFile, LineTail
from .files import parse_lines

LONGEST_LINE_BYTES = 1 << 20
"""A longer line is split into parts."""


class HeldFile(FollowedFile):
    """A file that may be rotated (renamed when full): what was written before the rename is read first."""

    _held: int | None = None

    def _open(self) -> int:
        if self._held is not None:
            held, named = os.fstat(self._held), storage.stat_of(self.path)
            if (named is None or named.st_ino != held.st_ino) and held.st_size > self.offset:
                self.size = held.st_size
                return os.dup(self._held)
        descriptor = super()._open()
        self.close()
        self._held = os.dup(descriptor)
        return descriptor

    def close(self) -> None:
        """Release the file, which will not be read any more."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def __del__(self) -> None:
        self.close()


class OwnFile(FollowedFile):
    """A file of a run directory: a longer copy, which a moved run brings back, counts as the same file."""

    def _is_another(self, descriptor: int, found: os.stat_result) -> bool:
        if self.witness and found.st_size >= self.offset:
            return os.pread(descriptor, len(self.witness), self.offset - len(self.witness)) != self.witness
        return super()._is_another(descriptor, found)


class OwnRecords(OwnFile, LineTail):
    """A file of records in a run directory."""

    def take_records(self) -> Iterator[Mapping[str, Any]]:
        """Yield the records that were added."""
        while True:
            growth = self.read(SLICE_BYTES)
            yield from parse_lines(growth.data)
            if not growth.more:
                return


def end_of_lines(path: Path) -> int:
    """Return the offset after the last complete line; 0 if there is none."""
    try:
        with storage.open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            start = max(0, size - LONGEST_LINE_BYTES)
            return start + os.pread(file.fileno(), size - start, start).rfind(b"\n") + 1
    except OSError:
        return 0
