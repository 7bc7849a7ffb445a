"""Small JSON files that others replace: read when their stat says so, and never trusted to be whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...wire import atomic
from ...wire.jsontext import UnreadableRecord
from ...wire.records import NewerSchema

T = TypeVar("T")


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
        self._mark: tuple[int, int, int] | None = None

    def read(self) -> bool:
        """Look at the file; True when its content is another one than before."""
        try:
            found = self.path.stat()
        except OSError as error:
            return self._set_missing(None if isinstance(error, (FileNotFoundError, NotADirectoryError)) else error)
        mark = (found.st_mtime_ns, found.st_ino, found.st_size)
        if mark == self._mark:
            return False
        self._mark, self.modified = mark, found.st_mtime
        self.value, self.error, self.newer, self.raw = None, None, False, {}
        self._load()
        return True

    def _load(self) -> None:
        try:
            self.raw = atomic.read_json(self.path) or {}
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
