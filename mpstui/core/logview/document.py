"""The model behind a log pane. No lines are kept in memory: they are read from the file when they are shown.

Opening a gigabyte takes one read at its end. Lines are addressed by byte offset, so that scrolling needs no index;
their numbers come from a count that each refresh takes a little further.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ...wire import storage
from ...wire.records import ExitRecord, LaunchRecord
from ...wire.rundir import AttemptDir
from ..follow import Budget, FollowedFile, after_hole
from ..formats.console import SNIFF_BYTES, sniff_utf16, utf8_of
from .counting import Tally
from .line import LONGEST_FRAME_BYTES, LogLine, make_line
from .searching import NOTHING, LinePiece, PieceFinder, Search, Wanted, beginning_errors, matching

COUNT_SECONDS = 0.01
"""Time that one refresh spends on counting lines."""
SEARCH_SECONDS = 3.0
COUNTED_BLOCK_BYTES = 1 << 20
NEAR_BYTES = 1 << 14
"""This close to the position of the count, lines are numbered backwards from there. A pane that follows the end of a
log needs no others."""


class LogDocument:
    """One log file, which may not exist yet, may grow, be truncated or be replaced. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.search_stopped_at: int | None = None
        """Where the last search ran out of time, to continue from there; None if it finished."""
        self._file = FollowedFile(path)
        """Its offset is how far lines have been counted."""
        self._descriptor: int | None = None
        self._restarts = 0
        self._size = 0
        self.encoding: str | None = None
        """``utf-16-le`` or ``utf-16-be``; None for any other encoding, which is detected line by line."""
        self._counter = LineCounter(self._file)
        self._finder: PieceFinder | None = None
        self.waiting = False
        """True while bytes in view are still being fetched from another machine; the pane keeps what it shows."""

    def refresh(self) -> bool:
        """Check the file again; True if there is something new to show."""
        changed = self._look()
        if self._descriptor is not None:
            before = self.line_count
            with suppress(OSError):
                self._counter.advance(self._descriptor, self._size, Budget(COUNT_SECONDS))
            changed = changed or self.line_count != before
        return changed

    @property
    def size_bytes(self) -> int:
        """Size of the file when it was last checked."""
        return self._size

    @property
    def line_count(self) -> int | None:
        """Number of lines in the file; None until they are counted."""
        return self._counter.total(self._size)

    def tail(self, rows: int) -> list[LogLine]:
        """Return the last ``rows`` lines in file order, including an unfinished one."""
        return self.before(self._size, rows)

    def window(self, first_offset: int, rows: int) -> list[LogLine]:
        """Return up to ``rows`` lines, from the first one that begins at or after ``first_offset``."""
        return self._lines(lambda finder: islice(finder.forwards(finder.next_start(first_offset)), max(0, rows)))

    def before(self, offset: int, rows: int) -> list[LogLine]:
        """Return the last ``rows`` lines that begin before ``offset``, in file order."""
        offset = min(offset, self._size)
        return self._lines(lambda finder: islice(finder.backwards(finder.next_start(offset)), max(0, rows)))

    def at_line(self, number: int, rows: int) -> list[LogLine]:
        """Return up to ``rows`` lines from line ``number`` on; none until the count has reached it."""
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
        """Return the next line that matches ``pattern``, which is interpreted by :func:`.searching.compiled`.

        Searches the lines that begin at or after ``start_offset``, or backwards those that begin before it. None if no
        line matches, or if ``seconds`` were not enough (see :attr:`search_stopped_at`).
        """
        return self.find(matching(pattern) if pattern else NOTHING, start_offset, backwards=backwards, seconds=seconds)

    def next_error(self, offset: int, backwards: bool = False, seconds: float = SEARCH_SECONDS) -> LogLine | None:
        """Return the next line that begins an error; directions and time limit as for :meth:`search`."""
        return self.find(beginning_errors(), offset, backwards=backwards, seconds=seconds)

    @property
    def span(self) -> tuple[float | None, float | None]:
        """When the attempt that wrote this log began and ended, Unix seconds; None if there is no record."""
        folder = AttemptDir(self.path.parent, 0)
        launch = storage.read_or_none(LaunchRecord, folder.launch)
        end = storage.read_or_none(ExitRecord, folder.exit) if launch is not None else None
        return (launch.time if launch is not None else None), (end.ended if end is not None else None)

    @property
    def opened(self) -> bool:
        """True if the file exists and has been opened."""
        return self._finder is not None

    @property
    def restarts(self) -> int:
        """How many times the file has been replaced."""
        return self._restarts

    def bytes_between(self, start: int, end: int) -> bytes:
        """Return the file's bytes in that range, as far as they exist."""
        with suppress(OSError):
            return self._finder.read(start, end) if self._finder is not None else b""
        return b""

    def lines_before(self, offset: int) -> int | None:
        """Return the number of newlines before ``offset``; None until they are counted."""
        with suppress(OSError):
            number = self._counter.number_at(self._descriptor, offset) if self._descriptor is not None else None
            return None if number is None else number - 1
        return None

    def count_on(self, tally: Tally, seconds: float) -> bool:
        """Spend up to ``seconds`` on a tally; False if the file has been replaced, so that a new tally is needed."""
        tally.restarts = self._restarts if tally.restarts is None else tally.restarts
        if tally.restarts != self._restarts:
            return False
        if self._finder is not None:
            with suppress(OSError):
                tally.advance(self._searching(Budget(seconds)), self._finder, Budget(seconds))
        return True

    def number_in(self, tally: Tally, offset: int) -> int | None:
        """Return the number in a tally, from 1, of the match at ``offset``; None if there is none, or none yet."""
        if self._finder is not None and tally.restarts == self._restarts:
            with suppress(OSError):
                return tally.number_of(self._searching(Budget(SEARCH_SECONDS)), offset)
        return None

    def _searching(self, budget: Budget) -> Search:
        assert self._finder is not None
        return Search(self._finder, self._make, budget, raw_tells=self.encoding is None)

    def close(self) -> None:
        """Close the file; the next :meth:`refresh` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = self._finder = None

    def __del__(self) -> None:
        self.close()

    def _look(self) -> bool:
        changed = self._file.poll()
        if self._file.changed_at is None:
            return False  # missing or just being replaced: the open file stays readable
        if self._file.restarts != self._restarts:
            self.close()
            self._restarts, self._counter = self._file.restarts, LineCounter(self._file)
        if self._descriptor is None:
            with suppress(OSError):
                self._descriptor = storage.open_descriptor(self.path)
                changed = True
        if self._descriptor is None or not changed:
            return False
        self.encoding = sniff_utf16(os.pread(self._descriptor, SNIFF_BYTES, 0))
        self._size = self._file.size
        if self.encoding == "utf-16-le" and self._size >= 2:
            # Lines are split after the byte 0x0A; the zero byte after it still belongs to that newline.
            self._size -= int(os.pread(self._descriptor, 2, self._size - 2) == b"\n\0")
        begin = after_hole(self._descriptor, 0, self._size)  # a capped log has had its front removed
        self._finder = PieceFinder(self._descriptor, self._size, begin)
        return True

    def _lines(self, pieces: Callable[[PieceFinder], Iterable[LinePiece]]) -> list[LogLine]:
        """Return these pieces as lines, in file order."""
        finder = self._finder
        if finder is None:
            return []
        try:
            lines = [self._make(piece) for piece in sorted(pieces(finder))]
        except OSError:
            return []
        return self._numbered(lines)

    def _numbered(self, lines: list[LogLine]) -> list[LogLine]:
        """Return the lines, numbered if the count has reached them; pieces of one long line share a number."""
        if not lines or self._descriptor is None:
            return lines
        number = self._counter.number_at(self._descriptor, lines[0].offset)
        if number is None or self._finder is None:
            return lines
        out = []
        for line in lines:
            out.append(replace(line, number=number))
            number += self._finder.read(line.end - 1, line.end) == b"\n"
        return out

    def _make(self, piece: LinePiece) -> LogLine:
        assert self._finder is not None
        start, end = piece
        if self.encoding is not None:
            return make_line(utf8_of(self._finder.read(start, end), self.encoding), start, end)
        if end - start <= LONGEST_FRAME_BYTES:
            return make_line(self._finder.read(start, end), start, end)
        # Show the end of a line that was redrawn, and the beginning of any other.
        raw = self._finder.read(end - LONGEST_FRAME_BYTES, end)
        missing = 0
        if b"\r" not in raw.rstrip(b"\r\n"):
            raw, missing = self._finder.read(start, start + LONGEST_FRAME_BYTES), end - start - LONGEST_FRAME_BYTES
        return make_line(raw, start, end, missing=missing)

    def find(self, wanted: Wanted, offset: int, *, backwards: bool, seconds: float) -> LogLine | None:
        """Return the next wanted line; directions and time limit as for :meth:`search`."""
        self.search_stopped_at = None
        if self._finder is None:
            return None
        search = self._searching(Budget(seconds))
        try:
            line = search.next(wanted, offset, backwards=backwards)
        except OSError:
            return None
        self.search_stopped_at = search.stopped_at
        return self._numbered([line])[0] if line is not None else None


class LineCounter:
    """Counts newlines from the start of a file. It keeps one number per megabyte, however many lines that has."""

    def __init__(self, file: FollowedFile) -> None:
        """Counting advances the offset of ``file``, which may grow meanwhile."""
        self._file = file
        self._before = array("Q", [0])
        """Number of newlines before each block."""
        self._newlines = 0
        self._ends_line = True
        """True if the last byte counted was a newline."""

    def advance(self, descriptor: int, size: int, budget: Budget) -> None:
        """Continue counting to the end of the file, or until the budget is spent."""
        while self._file.offset < size:
            border = len(self._before) * COUNTED_BLOCK_BYTES
            data = os.pread(descriptor, min(border, size) - self._file.offset, self._file.offset)
            if not data:
                return
            self._newlines += data.count(b"\n")
            self._file.advance(data)
            self._ends_line = data.endswith(b"\n")
            if self._file.offset == border:
                self._before.append(self._newlines)
            if budget.spent:
                return

    def total(self, size: int) -> int | None:
        """Return the number of lines, including an unfinished last one; None until they are counted."""
        if self._file.offset < size:
            return None
        return self._newlines + (0 if self._ends_line else 1)

    def number_at(self, descriptor: int, offset: int) -> int | None:
        """Return the number, from 1, of the line that begins at ``offset``; None until the count has reached it."""
        if offset > self._file.offset:
            return None
        if self._file.offset - offset < NEAR_BYTES:
            behind = os.pread(descriptor, self._file.offset - offset, offset)
            return self._newlines - behind.count(b"\n") + 1
        block = min(offset // COUNTED_BLOCK_BYTES, len(self._before) - 1)
        start = block * COUNTED_BLOCK_BYTES
        return self._before[block] + os.pread(descriptor, offset - start, start).count(b"\n") + 1

    def block_of(self, number: int) -> int | None:
        """Return the offset of the block in which line ``number`` begins; None until the count has reached it."""

        if number < 1 or number > self._newlines + 1:
            return None
        return max(0, bisect_left(self._before, number) - 1) * COUNTED_BLOCK_BYTES
