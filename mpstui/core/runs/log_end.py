"""What a log that mpstui only watches ends with: nobody records how its program ended, its last words stand there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...wire import storage
from ..formats.console import strip_controls

TAIL_BYTES = 1 << 15
"""Tracebacks of several ranks, one after the other, fit in; the last of them is enough."""
TRACEBACK = "Traceback (most recent call last)"
_LOWER_EDGE = "╰─"
"""Of the box that rich draws around a traceback, whose title may be cut, or too far above."""
_IGNORED = "Exception ignored "
LAST_WORDS_LINES = 100
"""More lines than launchers, trackers and aborting libraries print behind a traceback: the program went on."""
_MARKS = (b"Traceback", _LOWER_EDGE.encode())
"""What a tail without holds no traceback: colours part the words of the title."""


class LogEnd:
    """The exception at the end of a log, looked for again when the log has changed."""

    def __init__(self) -> None:
        self._of: tuple[Path, tuple[int, int, int] | None] | None = None
        self._found: str | None = None

    def exception(self, path: Path) -> str | None:
        """``RuntimeError: ...`` as it was printed; None where training goes on behind it, and where there is none."""
        now = path, storage.stamp(path)
        if now != self._of:
            self._of, self._found = now, _exception(_tail(path))
        return self._found


def _exception(data: bytes) -> str | None:
    if not any(mark in data for mark in _MARKS):
        return None
    from ..diagnosis.log_text import ending_exception, screen_lines

    raw = _without_ignored(strip_controls(line) for line in data.decode("utf-8", errors="replace").split("\n"))
    found = ending_exception(tuple(screen_lines(raw, 1)))
    if found is None or found.line is None:
        return None
    before, after = raw[: found.line - 1], raw[found.line :]
    return found.text if _ends_traceback(before) and not _goes_on(after) else None


def _without_ignored(lines: Iterable[str]) -> list[str]:
    """The lines, those blank that tell of an exception which Python ignores: a destructor's, as a program ends."""
    kept = []
    ignoring = False
    for line in lines:
        begins = _IGNORED in line
        kept.append("" if begins or ignoring else line)
        ignoring = begins or (ignoring and (TRACEBACK in line or _is_indented(line)))
    return kept


def _ends_traceback(before: Sequence[str]) -> bool:
    """Whether the line behind these is the last one of a traceback, and no error that a program merely prints."""
    if before and before[-1].lstrip().startswith(_LOWER_EDGE):
        return True
    title = max((place for place, line in enumerate(before) if TRACEBACK in line), default=None)
    return title is not None and not _trains(line for line in before[title + 1 :] if not _is_indented(line))


def _goes_on(after: Sequence[str]) -> bool:
    spoken = [line for line in after if line.strip() and not _is_indented(line)]
    return len(spoken) > LAST_WORDS_LINES or _trains(after)


def _trains(lines: Iterable[str]) -> bool:
    """Whether the reader of logs finds a counter, a loss or an evaluation in these lines."""
    from ..formats.reader import LogReader

    points = LogReader().take("".join(f"{line}\n" for line in lines).encode())
    return any(
        point.loss is not None or point.eval_metrics or point.counters != type(point.counters)()
        for point in (found.newest for found in points)
    )


def _is_indented(line: str) -> bool:
    from ..diagnosis.log_text import RANK_PREFIX

    return re.sub(f"^{RANK_PREFIX}", "", line)[:1] in (" ", "\t")


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
