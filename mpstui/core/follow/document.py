"""The model of a log pane: the file is the store, and only what is looked at is read.

Opening a gigabyte costs one read at its end. Lines are addressed by their byte offset, so that scrolling needs no
index; their numbers come from a count that goes on in the background.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ..formats.encodings import SNIFF_BYTES, sniff_utf16, utf8_of
from .budget import Budget
from .counting import LineCounter
from .line import LONGEST_FRAME_BYTES, LogLine, make_line
from .pieces import Piece, PieceFinder
from .searching import Search

COUNT_SECONDS = 0.01
"""What one refresh spends on counting lines."""
SEARCH_SECONDS = 3.0


class LogDocument:
    """One log file, which may not exist yet, grow, be truncated or be replaced. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.search_stopped_at: int | None = None
        """Where the last search ran out of time: search on from there; None when it got to the end."""
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None
        self._size = 0
        self._begin = 0
        self._seen: tuple[int, int] | None = None
        """Time and size of the file at the last look."""
        self._encoding: str | None = None
        """UTF-16, if it is; anything else is found out line by line."""
        self._counter = LineCounter()
        self._finder: PieceFinder | None = None

    def refresh(self) -> bool:
        """Look at the file again; True when there is something else to show."""
        changed = self._look()
        if self._descriptor is not None:
            before = self.line_count
            with suppress(OSError):
                self._counter.advance(self._descriptor, self._size, Budget(COUNT_SECONDS))
            changed = changed or self.line_count != before
        return changed

    @property
    def size_bytes(self) -> int:
        """Of the file at the last look."""
        return self._size

    @property
    def dropped_bytes(self) -> int:
        """Bytes at the front that were given back to the disk (a capped log)."""
        return self._begin

    @property
    def line_count(self) -> int | None:
        """Lines of the file; None until they have been counted."""
        return self._counter.total(self._size)

    def tail(self, rows: int) -> list[LogLine]:
        """The newest ``rows`` lines, an unfinished last one included, oldest of them first."""
        return self.before(self._size, rows)

    def window(self, first_offset: int, rows: int) -> list[LogLine]:
        """``rows`` lines, from the first one that begins at or after ``first_offset``."""
        return self._lines(lambda finder: islice(finder.forwards(finder.next_start(first_offset)), max(0, rows)))

    def before(self, offset: int, rows: int) -> list[LogLine]:
        """The last ``rows`` lines that begin before ``offset``, in the order of the file."""
        offset = min(offset, self._size)
        found = self._lines(lambda finder: islice(finder.backwards(finder.next_start(offset)), max(0, rows)))
        return found[::-1] if not found or found[0].offset > found[-1].offset else found

    def at_line(self, number: int, rows: int) -> list[LogLine]:
        """``rows`` lines from line ``number`` on; none when the count has not got there."""
        block = self._counter.block_of(number)
        if block is None or self._finder is None or self._descriptor is None:
            return []
        first = self._counter.number_at(self._descriptor, block)
        start = self._finder.next_start(block)
        ahead = (number - first if start == block else number - first - 1) if first is not None else 0
        return self._lines(lambda finder: islice(finder.forwards(start), max(0, ahead), max(0, ahead) + rows))

    def search(
        self, pattern: str, start_offset: int, backwards: bool = False, seconds: float = SEARCH_SECONDS
    ) -> LogLine | None:
        """The next line that shows ``pattern`` (a regular expression, else literal; case does not matter).

        Forwards among the lines that begin at or after ``start_offset``, backwards among those that begin before it.
        None when there is none, or when ``seconds`` were not enough (see :attr:`search_stopped_at`).
        """
        return self._search(lambda search: search.pattern(pattern, start_offset, backwards=backwards), seconds)

    def next_error(self, offset: int, backwards: bool = False, seconds: float = SEARCH_SECONDS) -> LogLine | None:
        """The next line that tells of an error; see :meth:`search` for the directions and the time."""
        return self._search(lambda search: search.error(offset, backwards=backwards), seconds)

    def close(self) -> None:
        """Give the file back; the next :meth:`refresh` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = self._identity = self._finder = None

    def __del__(self) -> None:
        self.close()

    def _look(self) -> bool:
        try:
            found = self.path.stat()
        except OSError:
            return False  # in the middle of being replaced, or not there yet: what was seen stays readable
        if (found.st_dev, found.st_ino) != self._identity and not self._open():
            return False
        seen = (found.st_mtime_ns, found.st_size)
        changed, self._seen = self._seen != seen, seen
        if changed:
            assert self._descriptor is not None
            self._encoding = sniff_utf16(os.pread(self._descriptor, SNIFF_BYTES, 0))
            self._size = found.st_size - self._half_newline(found.st_size)
            if found.st_size < self._counter.counted_bytes or not self._counter.still_valid(self._descriptor):
                self._counter = LineCounter()
            self._begin = self._first_data()
            self._finder = PieceFinder(self._descriptor, self._size, self._begin)
        return changed

    def _open(self) -> bool:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return False
        self.close()
        found = os.fstat(descriptor)
        self._descriptor, self._identity = descriptor, (found.st_dev, found.st_ino)
        self._size, self._seen, self._counter = 0, None, LineCounter()
        return True

    def _half_newline(self, size: int) -> int:
        """Bytes at the end that belong to the newline before them: lines are cut at the byte 0x0A."""
        if self._encoding != "utf-16-le" or self._descriptor is None or size < 2:
            return 0
        return int(os.pread(self._descriptor, 2, size - 2) == b"\n\0")

    def _first_data(self) -> int:
        """Where the file begins to hold data: a capped log may have a hole in front."""
        if self._descriptor is None or not self._size or not hasattr(os, "SEEK_DATA"):
            return 0
        try:
            return os.lseek(self._descriptor, 0, os.SEEK_DATA)
        except OSError:
            return 0

    def _lines(self, pieces: Callable[[PieceFinder], Iterable[Piece]]) -> list[LogLine]:
        finder = self._finder
        if finder is None:
            return []
        try:
            found = list(pieces(finder))
            lines = [self._make(piece) for piece in found]
        except OSError:
            return []
        return self._numbered(lines)

    def _numbered(self, lines: list[LogLine]) -> list[LogLine]:
        """Numbers where the count has got this far; pieces of one long line share theirs."""
        if not lines or self._descriptor is None:
            return lines
        lines.sort(key=lambda line: line.offset)
        number = self._counter.number_at(self._descriptor, lines[0].offset)
        if number is None or self._finder is None:
            return lines
        out = []
        for line in lines:
            out.append(_with_number(line, number))
            number += self._finder.read(line.end - 1, line.end) == b"\n"
        return out

    def _make(self, piece: Piece) -> LogLine:
        assert self._finder is not None
        start, end = piece
        if self._encoding is not None:
            return make_line(utf8_of(self._finder.read(start, end), self._encoding), start, end)
        if end - start <= LONGEST_FRAME_BYTES:
            return make_line(self._finder.read(start, end), start, end)
        # Of a redrawn line the end counts, of any other the beginning.
        raw = self._finder.read(end - LONGEST_FRAME_BYTES, end)
        missing = 0
        if b"\r" not in raw.rstrip(b"\r\n"):
            raw, missing = self._finder.read(start, start + LONGEST_FRAME_BYTES), end - start - LONGEST_FRAME_BYTES
        return make_line(raw, start, end, missing=missing)

    def _search(self, look: Callable[[Search], LogLine | None], seconds: float) -> LogLine | None:
        self.search_stopped_at = None
        if self._finder is None:
            return None
        search = Search(self._finder, self._make, Budget(seconds), raw_tells=self._encoding is None)
        try:
            line = look(search)
        except OSError:
            return None
        self.search_stopped_at = search.stopped_at
        return self._numbered([line])[0] if line is not None else None


def _with_number(line: LogLine, number: int) -> LogLine:
    return LogLine(number, line.offset, line.end, line.text, line.spans, line.level, line.hidden_characters)
