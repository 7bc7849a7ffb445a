"""The model of a log pane: the file is the store, and only what is looked at is read.

Opening a gigabyte costs one read at its end. Lines are addressed by their byte offset, so that scrolling needs no
index; their numbers come from a count that goes on in the background.
"""

from __future__ import annotations

import os
from array import array
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
"""What one refresh spends on counting lines."""
SEARCH_SECONDS = 3.0
BLOCK_BYTES = 1 << 20
NEAR_BYTES = 1 << 14
"""So near to the end of the count its total is the better place to start from: a pane that follows asks for nothing
else."""


class LogDocument:
    """One log file, which may not exist yet, grow, be truncated or be replaced. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.search_stopped_at: int | None = None
        """Where the last search ran out of time: search on from there; None when it got to the end."""
        self._file = FollowedFile(path)
        """Its offset is how far lines have been counted."""
        self._descriptor: int | None = None
        self._restarts = 0
        self._size = 0
        self.encoding: str | None = None
        """UTF-16, if it is; anything else is found out line by line."""
        self._counter = LineCounter(self._file)
        self._finder: PieceFinder | None = None
        self.waiting = False
        """Whether bytes that are looked at are still on their way: what is in view stays there."""

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
        """The next line that shows ``pattern`` (a regular expression, else literal; case matters if it has capitals).

        Forwards among the lines that begin at or after ``start_offset``, backwards among those that begin before it.
        None when there is none, or when ``seconds`` were not enough (see :attr:`search_stopped_at`).
        """
        return self.find(matching(pattern) if pattern else NOTHING, start_offset, backwards=backwards, seconds=seconds)

    def next_error(self, offset: int, backwards: bool = False, seconds: float = SEARCH_SECONDS) -> LogLine | None:
        """The next line that tells of an error; see :meth:`search` for the directions and the time."""
        return self.find(beginning_errors(), offset, backwards=backwards, seconds=seconds)

    @property
    def span(self) -> tuple[float | None, float | None]:
        """When the attempt whose output this is began and ended, Unix seconds, as far as that is on record."""
        folder = AttemptDir(self.path.parent, 0)
        launch = storage.read_or_none(LaunchRecord, folder.launch)
        end = storage.read_or_none(ExitRecord, folder.exit) if launch is not None else None
        return (launch.time if launch is not None else None), (end.ended if end is not None else None)

    @property
    def opened(self) -> bool:
        """Whether there is a file."""
        return self._finder is not None

    @property
    def restarts(self) -> int:
        """How often it has been another file."""
        return self._restarts

    def bytes_between(self, start: int, end: int) -> bytes:
        """Bytes of the file as they are, as far as they are there."""
        with suppress(OSError):
            return self._finder.read(start, end) if self._finder is not None else b""
        return b""

    def lines_before(self, offset: int) -> int | None:
        """Newlines before an offset; None while they are not counted."""
        with suppress(OSError):
            number = self._counter.number_at(self._descriptor, offset) if self._descriptor is not None else None
            return None if number is None else number - 1
        return None

    def count_on(self, tally: Tally, seconds: float) -> bool:
        """Count lines for so long; False when the file is another one by now, and the tally is to begin anew."""
        tally.restarts = self._restarts if tally.restarts is None else tally.restarts
        if tally.restarts != self._restarts:
            return False
        if self._finder is not None:
            with suppress(OSError):
                tally.advance(self._searching(Budget(seconds)), self._finder, Budget(seconds))
        return True

    def number_in(self, tally: Tally, offset: int) -> int | None:
        """Which of the lines of a tally begins at an offset, from 1; None when it is none of them, or not yet."""
        if self._finder is not None and tally.restarts == self._restarts:
            with suppress(OSError):
                return tally.number_of(self._searching(Budget(SEARCH_SECONDS)), offset)
        return None

    def _searching(self, budget: Budget) -> Search:
        assert self._finder is not None
        return Search(self._finder, self._make, budget, raw_tells=self.encoding is None)

    def close(self) -> None:
        """Give the file back; the next :meth:`refresh` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = self._finder = None

    def __del__(self) -> None:
        self.close()

    def _look(self) -> bool:
        changed = self._file.poll()
        if self._file.changed_at is None:
            return False  # in the middle of being replaced, or not there yet: what was seen stays readable
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
            # Lines are cut at the byte 0x0A: the zero behind it belongs to the newline before it.
            self._size -= int(os.pread(self._descriptor, 2, self._size - 2) == b"\n\0")
        begin = after_hole(self._descriptor, 0, self._size)  # what is before it was given back to the disk
        self._finder = PieceFinder(self._descriptor, self._size, begin)
        return True

    def _lines(self, pieces: Callable[[PieceFinder], Iterable[LinePiece]]) -> list[LogLine]:
        finder = self._finder
        if finder is None:
            return []
        try:
            lines = [self._make(piece) for piece in list(pieces(finder))]
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
        # Of a redrawn line the end counts, of any other the beginning.
        raw = self._finder.read(end - LONGEST_FRAME_BYTES, end)
        missing = 0
        if b"\r" not in raw.rstrip(b"\r\n"):
            raw, missing = self._finder.read(start, start + LONGEST_FRAME_BYTES), end - start - LONGEST_FRAME_BYTES
        return make_line(raw, start, end, missing=missing)

    def find(self, wanted: Wanted, offset: int, *, backwards: bool, seconds: float) -> LogLine | None:
        """The next line that is wanted; see :meth:`search` for the directions and the time."""
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
    """Counts newlines from the beginning on: one number is kept a megabyte, whatever the length of the lines."""

    def __init__(self, file: FollowedFile) -> None:
        """``file`` may grow while it is counted; counting moves its offset."""
        self._file = file
        self._before = array("Q", [0])
        """Newlines before each block."""
        self._newlines = 0
        self._ends_line = True

    def advance(self, descriptor: int, size: int, budget: Budget) -> bool:
        """Count on; True when the end of the file is reached."""
        while self._file.offset < size:
            border = len(self._before) * BLOCK_BYTES
            data = os.pread(descriptor, min(border, size) - self._file.offset, self._file.offset)
            if not data:
                return False
            self._newlines += data.count(b"\n")
            self._file.advance(data)
            self._ends_line = data.endswith(b"\n")
            if self._file.offset == border:
                self._before.append(self._newlines)
            if budget.spent:
                break
        return self._file.offset >= size

    def total(self, size: int) -> int | None:
        """Lines of the file, an unfinished last one included; None until counted."""
        if self._file.offset < size:
            return None
        return self._newlines + (0 if self._ends_line else 1)

    def number_at(self, descriptor: int, offset: int) -> int | None:
        """Number of the line that begins at ``offset``, from 1; None when the count has not got there."""
        if offset > self._file.offset:
            return None
        if self._file.offset - offset < NEAR_BYTES:
            behind = os.pread(descriptor, self._file.offset - offset, offset)
            return self._newlines - behind.count(b"\n") + 1
        block = min(offset // BLOCK_BYTES, len(self._before) - 1)
        start = block * BLOCK_BYTES
        return self._before[block] + os.pread(descriptor, offset - start, start).count(b"\n") + 1

    def block_of(self, number: int) -> int | None:
        """Offset of the block in which line ``number`` begins; None when the count has not got there."""
        from bisect import bisect_left

        if number < 1 or number > self._newlines + 1:
            return None
        return max(0, bisect_left(self._before, number) - 1) * BLOCK_BYTES
