"""Keep what one command has read of the logs of live runs, so that the next `mpstui ps` need not read them again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.storage import UnreadableRecord
from ..model.reader_version import reader_version
from .sources import bytes_at


class LogNotes:
    """Notes by run, in one file. Losing it costs only time.

    A note is valid while the log still has the same bytes before the position up to which it was read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[str, Any] = {}
        self._kept: dict[str, Any] = {}
        with contextlib.suppress(OSError, UnreadableRecord):
            found = (storage.read_json(path) or {}).get(reader_version())
            self._found = found if isinstance(found, dict) else {}

    def find(self, run: str, path: Path, pattern: str | None) -> Mapping[str, Any] | None:
        """Return the note about a run's log if it was read with the same pattern and has at most grown since then."""
        try:
            note: Mapping[str, Any] = self._found[run]
            known = note["of"] == _identity(path, pattern, note["read_bytes"])
            return note if known and isinstance(note["newest"], dict) else None
        except (OSError, LookupError, TypeError):
            return None

    def keep(self, run: str, path: Path, pattern: str | None, note: Mapping[str, Any]) -> None:
        """Take a note about a run's log, to be saved by :meth:`write`."""
        with contextlib.suppress(OSError):
            self._kept[run] = {**note, "of": _identity(path, pattern, note["read_bytes"])}

    def write(self) -> None:
        """Save the notes taken, and forget all others, of runs that have ended or are gone."""
        if self._kept != self._found:
            with contextlib.suppress(OSError, ValueError):  # a full or read-only disk costs only time
                storage.make_private_folder(self._path.parent)
                storage.write_bytes(self._path, json.dumps({reader_version(): self._kept}).encode(), sync=False)


def _identity(path: Path, pattern: str | None, position: int) -> list[Any]:
    """Return what must not change for a note to be valid: the file, the pattern, and the bytes before ``position``."""
    found = path.stat()
    start = max(0, position - 256)
    return [str(path), pattern, found.st_dev, found.st_ino, bytes_at(path, start, position - start).decode("latin-1")]
