"""What a log that mpstui only watches ends with: nobody records how its program ended, its last words stand there."""

from __future__ import annotations

import os
from pathlib import Path

from ...wire import atomic
from ..formats.escapes import strip_controls

TAIL_BYTES = 1 << 15
"""Tracebacks of several ranks, one after the other, fit in; the last of them is enough."""
TRACEBACK = "Traceback (most recent call last)"
_LOWER_EDGE = "╰─"
"""Of the box that rich draws around a traceback, whose title may be cut, or too far above."""
_MARKS = (b"Traceback", _LOWER_EDGE.encode())
"""What a tail without holds no traceback: colours part the words of the title."""


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
    if not any(mark in data for mark in _MARKS):
        return None
    from ..diagnosis.course import ending_exception
    from ..diagnosis.text import screen_lines

    raw = data.decode("utf-8", errors="replace").split("\n")
    lines = tuple(screen_lines(raw, 1))
    found = ending_exception(lines)
    if found is None or found.line is None:
        return None
    # `screen_lines` takes frames away: the edge is looked for in the line above, as it was printed.
    boxed = strip_controls(raw[found.line - 2]).lstrip().startswith(_LOWER_EDGE) if found.line > 1 else False
    return found.text if boxed or any(TRACEBACK in line.text for line in lines) else None


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
