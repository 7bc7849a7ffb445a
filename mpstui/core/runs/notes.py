"""What one command has learned of a log, kept for the next: `mpstui ps` need not read twenty megabytes once more.

A note holds for the very bytes it was made of. It names the file, how far it was read and what stands just before that
place; a file that is another one, shorter or rewritten is read from its start. Losing a note costs time alone.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import __version__
from ...wire import storage

SCHEMA = 1
TAIL_BYTES = 256
_SUFFIX = ".note"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNote:
    """What is known of a log up to a place in it."""

    identity: tuple[int, int]
    """Device and inode."""
    read_bytes: int
    newest: Mapping[str, Any]
    """The numbers that a list shows, as `ForeignPoints.newest`."""
    memory: Callable[[], Mapping[str, Any]]
    """What its reader needs to go on from there, unpacked when the file has grown.

    Raises:
        ValueError, TypeError: it cannot be understood.
    """


class LogNotes:
    """Notes by run, in a folder of the cache. Whoever lists all runs reads and writes them, in one pass."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def find(self, run: str, path: Path, pattern: str | None) -> LogNote | None:
        """The note of a run's log, when it was read with the same pattern and still begins as it did then."""
        try:
            text, _, packed = self._path(run).read_bytes().partition(b"\n")
            head = json.loads(text)
            if head["made"] != _made(path, pattern) or head["tail"] != _before(path, head["read_bytes"]):
                return None
            found = LogNote(
                identity=(head["device"], head["inode"]),
                read_bytes=head["read_bytes"],
                newest=head["newest"],
                memory=lambda: _unpacked(packed),
            )
        except (OSError, ValueError, LookupError, TypeError):
            return None
        self._held[run] = found.read_bytes
        return found

    def keep(self, run: str, path: Path, pattern: str | None, note: LogNote) -> None:
        """Write down what is known. A disk that takes nothing, or a reader that cannot travel, costs time alone."""
        if self._held.get(run) == note.read_bytes:
            return
        from .carried import pack

        with contextlib.suppress(OSError, TypeError):
            head = {
                "made": _made(path, pattern),
                "device": note.identity[0],
                "inode": note.identity[1],
                "read_bytes": note.read_bytes,
                "tail": _before(path, note.read_bytes),
                "newest": dict(note.newest),
            }
            storage.make_private_folder(self._folder.parent)
            storage.make_private_folder(self._folder)
            data = json.dumps(head).encode() + b"\n" + bytes(pack(note.memory()))
            storage.write_bytes(self._path(run), data, sync=False)
            self._held[run] = note.read_bytes

    def drop(self, run: str) -> None:
        """Nothing more is to be read of its log, or not from where this note ends."""
        self._held.pop(run, None)

    def forget_others(self) -> None:
        """Delete the notes that this pass has neither read nor written: their runs have ended, or are gone."""
        with contextlib.suppress(OSError):
            for path in self._folder.glob(f"*{_SUFFIX}"):
                if path.name.removesuffix(_SUFFIX) not in self._held:
                    path.unlink()

    def _path(self, run: str) -> Path:
        return self._folder / f"{run}{_SUFFIX}"


def _made(path: Path, pattern: str | None) -> list[Any]:
    """What must be the same for a note to hold, beside the bytes."""
    return [SCHEMA, __version__, str(path), pattern]


def _before(path: Path, position: int) -> str:
    """The bytes that end at ``position``."""
    start = max(0, position - TAIL_BYTES)
    with path.open("rb") as file:
        return os.pread(file.fileno(), position - start, start).decode("latin-1")


def _unpacked(packed: bytes) -> Mapping[str, Any]:
    from .carried import unpack

    found = unpack(packed)
    if not isinstance(found, dict):
        raise TypeError("the note of a log holds no state of a reader")
    return found
