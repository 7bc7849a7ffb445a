"""Small JSON files that others replace: read when their stat says so, and never trusted to be whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...wire.records import NewerSchema
from ...wire.storage import UnreadableRecord, load_object

T = TypeVar("T")


MOST_BYTES = 1 << 24
"""No record is larger; whatever is, is not ours."""


def read_small(name: str, size: int) -> bytes:
    """The content of a file of ``size`` bytes, at half the price of ``Path.read_bytes``.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(descriptor, min(size, MOST_BYTES))
    finally:
        os.close(descriptor)


class RecordFile(Generic[T]):
    """One file that holds one JSON object.

    ``value`` is what the file holds now, None when it is missing or unreadable; ``error`` says what is wrong with it.
    """

    def __init__(self, path: Path, parse: Callable[[Mapping[str, Any]], T]) -> None:
        self.path = path
        self.value: T | None = None
        self.error: str | None = None
        self.newer = False
        self.raw: Mapping[str, Any] = {}
        """The object as it stands in the file, {} when there is none."""
        self.modified: float | None = None
        """Unix seconds."""
        self._parse = parse
        self._name = str(path)
        self._mark: tuple[int, int, int] | None = None

    def read(self) -> bool:
        """Look at the file; True when its content is another one than before."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 - half the price of Path.stat
        except OSError as error:
            return self._set_missing(None if isinstance(error, (FileNotFoundError, NotADirectoryError)) else error)
        mark = (found.st_mtime_ns, found.st_ino, found.st_size)
        if mark == self._mark:
            return False
        self._mark, self.modified = mark, found.st_mtime
        self.value, self.error, self.newer, self.raw = None, None, False, {}
        self._load(found.st_size)
        return True

    def _load(self, size: int) -> None:
        try:
            self.raw = load_object(read_small(self._name, size))
            self.value = self._parse(self.raw)
        except NewerSchema as error:
            self.newer, self.error = True, f"{self.path.name}: {error}"
        except (UnreadableRecord, OSError, TypeError, ValueError, AttributeError, KeyError) as error:
            # Whatever the parser of a record stumbles over, the file is the one to blame: it is not ours.
            self.error = f"{self.path.name}: {error}"

    def _set_missing(self, error: OSError | None) -> bool:
        changed = self._mark is not None
        self._mark, self.modified, self.value, self.newer, self.raw = None, None, None, False, {}
        self.error = f"{self.path.name}: {error.strerror}" if error else None
        return changed
