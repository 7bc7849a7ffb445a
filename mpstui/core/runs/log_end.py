"""What a log that mpstui only watches ends with: nobody records how its program ended, its last words stand there."""

from __future__ import annotations

import os
from pathlib import Path

from ...wire import atomic

TAIL_BYTES = 1 << 15
"""Tracebacks of several ranks, one after the other, fit in; the last of them is enough."""
TRACEBACK = b"Traceback (most recent call last)"


class LogEnd:
    """The exception at the end of a log, looked for again when the log has changed."""

    def __init__(self) -> None:
        self._of: tuple[Path, tuple[int, int, int] | None] | None = None
        self._found: str | None = None

    def exception(self, path: Path) -> str | None:
        """``RuntimeError: ...`` as it was printed; None where training goes on behind it, and where there is none."""
        now = path, atomic.stamp(path)
        if now != self._of:
            self._of, self._found = now, _exception(_tail(path))
        return self._found


def _exception(data: bytes) -> str | None:
    if TRACEBACK not in data:
        return None
    from ..diagnosis.course import ending_exception
    from ..diagnosis.text import screen_lines

    return ending_exception(tuple(screen_lines(data.decode("utf-8", errors="replace").split("\n"), 1)))


def _tail(path: Path) -> bytes:
    if not path.is_file():
        return b""  # opening a pipe would wait for its writer
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read(TAIL_BYTES)
    except OSError:
        return b""
