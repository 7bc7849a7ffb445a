"""Finds the lines of a huge file without an index, reading at most two blocks, and searches it block by block.

A *piece* is a line, or part of a line that is megabytes long. Such a line is split at multiples of ``BLOCK_BYTES``: a
multiple is a border if the whole block before it contains no newline. Reading forwards and backwards finds the same
borders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import AnyStr, NamedTuple

from ..follow import Budget
from ..formats.console import decode_line, without_sequences
from ..model.patterns import LONGEST_PATTERN, LinePattern, PatternMistake, line_pattern
from .line import LogLine, begins_error

BLOCK_BYTES = 1 << 20
READ_BYTES = 1 << 16


class LinePiece(NamedTuple):
    """Bytes ``start`` to ``end`` of the file, including the newline."""

    start: int
    end: int


class PieceFinder:
    """Finds the pieces of one open file between ``begin`` (a capped log has had its front removed) and ``size``."""

    def __init__(self, descriptor: int, size: int, begin: int = 0) -> None:
        self._descriptor = descriptor
        self.size = size
        self.begin = begin
        self.reads = READ_BYTES
        """Bytes read at a time."""
        self._base = 0
        self._data = b""

    def read(self, start: int, end: int) -> bytes:
        """Return bytes of the file, through a small cache."""
        end = min(end, self.size)
        if start >= end:
            return b""
        if start < self._base or end > self._base + len(self._data):
            self._base, self._data = start, self._take(start, end)
        return self._data[start - self._base : end - self._base]

    def _take(self, start: int, end: int) -> bytes:
        return os.pread(self._descriptor, end - start, start)

    def start_before(self, end: int) -> int:
        """Return the start of the piece that holds byte ``end - 1``."""
        border = (end - 1) // BLOCK_BYTES * BLOCK_BYTES
        found = self._last_newline(max(border, self.begin), end - 1)
        if found is not None:
            return found + 1
        if border <= self.begin:
            return self.begin
        found = self._last_newline(max(border - BLOCK_BYTES, self.begin), border)
        return border if found is None else found + 1

    def end_after(self, start: int) -> int:
        """Return the end of the piece that begins at ``start``."""
        border = (start // BLOCK_BYTES + 1) * BLOCK_BYTES
        found = self._first_newline(start, border)
        if found is not None:
            return found + 1
        if start != border - BLOCK_BYTES and border < self.size:
            found = self._first_newline(border, border + BLOCK_BYTES)
            if found is not None:
                return found + 1
            border += BLOCK_BYTES
        return min(border, self.size)

    def next_start(self, offset: int) -> int:
        """Return the start of the first piece that begins at or after ``offset``; ``size`` if there is none."""
        if offset <= self.begin:
            return self.begin
        if offset >= self.size:
            return self.size
        start = self.start_before(offset + 1)
        return start if start == offset else self.end_after(start)

    def forwards(self, start: int) -> Iterator[LinePiece]:
        """Yield the pieces from ``start``, which must begin one, to the end of the file."""
        while start < self.size:
            data = self.read(start, start + self.reads)
            if not data:
                return
            position = 0
            while (newline := data.find(b"\n", position)) >= 0:
                yield LinePiece(start + position, start + newline + 1)
                position = newline + 1
            start += position
            if not position or start + self.reads > self.size:
                end = self.end_after(start) if start < self.size else start
                if end > start:
                    yield LinePiece(start, end)
                start = end

    def backwards(self, end: int) -> Iterator[LinePiece]:
        """Yield the piece that ends at ``end``, the one before it, and so on."""
        while end > self.begin:
            if not self._base < end <= self._base + len(self._data) or end - self._base < self.reads // 8:
                start = max(self.begin, end - self.reads)  # many short lines are found in one read
                self._base, self._data = start, self._take(start, end)
            start = self.start_before(end)
            yield LinePiece(start, end)
            end = start

    def _last_newline(self, low: int, high: int) -> int | None:
        """Return the position of the last newline in [low, high)."""
        while high > low:
            start = max(low, self._base if self._base < high <= self._base + len(self._data) else high - self.reads)
            found = self.read(start, high).rfind(b"\n")
            if found >= 0:
                return start + found
            high = start
        return None

    def _first_newline(self, low: int, high: int) -> int | None:
        """Return the position of the first newline in [low, high)."""
        high = min(high, self.size)
        while low < high:
            end = min(high, low + self.reads)
            data = self.read(low, end)
            found = data.find(b"\n")
            if found >= 0:
                return low + found
            if not data:
                return None
            low += len(data)
        return None


SEARCH_BYTES = 1 << 18
"""Bytes searched between two checks of the time budget."""
Maker = Callable[[LinePiece], LogLine]
_NEWLINE = re.compile(b"\n")
_SIGNS_OF_ERROR = (
    *(b"rror", b"RROR", b"xception", b"Interrupt", b"Traceback", b"FATAL", b"CRITICAL", b"ssertion", b"fault"),
    *(b"illed", b"bort", b"terminate called", b"core dumped", b"out of memory", b"No space left"),
)


class LiteralHint:
    """Finds candidate lines in raw bytes: those that contain at least one of some plain words.

    A hint may name lines that do not match, but misses none that does, so that most of a file is never decoded. Plain
    words are many times faster than a regular expression.
    """

    def __init__(self, words: Sequence[bytes], *, ignore_case: bool = False) -> None:
        self._words = [word.lower() for word in words] if ignore_case else words
        self._ignore_case = ignore_case

    def serves(self, text: bytes, *, raw_tells: bool) -> bool:
        """True if the hint is sure to miss no line of ``text``; ``raw_tells`` as in `Search`."""
        return True

    def lines(self, text: bytes) -> Iterator[int]:
        """Yield the numbers of candidate lines, from 0, in any order; ``text`` must have no escape sequences."""
        where = text.lower() if self._ignore_case else text
        for word in self._words:
            at, counted, number = where.find(word), 0, 0
            while at >= 0:
                number += where.count(b"\n", counted, at)
                yield number
                counted, line_end = at, where.find(b"\n", at)
                at = where.find(word, line_end) if line_end >= 0 else -1


class PatternHint:
    """Like :class:`LiteralHint`, for a regular expression."""

    def __init__(self, pattern: LinePattern) -> None:
        words = pattern.pattern.pattern
        self._anchored = re.search(r"[\^$]|\\[bB]", words) is not None
        self._of_whole_lines = re.search(r"\\[AZ]|\(\?[=!<]", words) is not None
        """True if it may match a line on its own, but not within the surrounding text."""
        flags = re.MULTILINE | pattern.pattern.flags & re.IGNORECASE
        self._raw = re.compile(words.encode(errors="replace"), flags)
        self._pattern = re.compile(words, flags)
        self._longest = None if pattern.is_linear else pattern.longest

    def serves(self, text: bytes, *, raw_tells: bool) -> bool:
        return not self._of_whole_lines and (raw_tells or text.isascii())

    def lines(self, text: bytes) -> Iterator[int]:
        if self._longest is not None:
            for number, line in enumerate(text.split(b"\n")):
                if not line.isascii() or b"\r" in line or b"\x08" in line or self._raw.search(line, 0, self._longest):
                    yield number
        # An anchored pattern can match at the start of each redraw.
        elif text.isascii():
            drawn = text.replace(b"\r", b"\n").replace(b"\x08", b"\n") if self._anchored else text
            yield from _matched(self._raw, drawn, text, b"\n")
        else:
            shown = _decoded(text)
            over = shown.replace("\r", "\n").replace("\x08", "\n") if self._anchored else shown
            yield from _matched(self._pattern, over, shown, "\n")


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:  # decode line by line, as for display
        return "\n".join(map(decode_line, text.split(b"\n")))


def _matched(pattern: re.Pattern[AnyStr], drawn: AnyStr, text: AnyStr, newline: AnyStr) -> Iterator[int]:
    """Yield the numbers of the lines of ``text`` that match; ``drawn`` is ``text`` with redraws turned into lines."""
    at = counted = number = 0
    while (match := pattern.search(drawn, at)) is not None:
        number += text.count(newline, counted, match.start())
        yield number
        counted = match.start()
        at = text.find(newline, counted) + 1
        if not at:
            return


Hint = LiteralHint | PatternHint


class Search:
    """One search through a file. ``stopped_at`` is where its budget ran out; None if it finished."""

    def __init__(self, finder: PieceFinder, make: Maker, budget: Budget, *, raw_tells: bool = True) -> None:
        """``raw_tells``: True if the file's raw bytes can be searched for text (not in UTF-16)."""
        self._raw_tells = raw_tells
        self._finder = finder
        self._make = make
        self._budget = budget
        self.stopped_at: int | None = None

    def next(self, wanted: Wanted, start: int, *, backwards: bool) -> LogLine | None:
        """Return the next match among the lines that begin at or after ``start``, or backwards among those before."""
        for piece in self._backwards(wanted.hint, start) if backwards else self._forwards(wanted.hint, start):
            line = self._make(piece)
            if self._shows(wanted, line, piece):
                return line
        return None

    def offsets(self, wanted: Wanted, begin: int, end: int) -> list[int]:
        """Return the offsets of all matches between two line starts, in order, regardless of the budget."""
        pieces = self._candidates(wanted.hint, begin, end)
        return [piece.start for piece in pieces if self._shows(wanted, self._make(piece), piece)]

    def _shows(self, wanted: Wanted, line: LogLine, piece: LinePiece) -> bool:
        # The hidden part of a long line may match too.
        return wanted.matches(line) or (line.hidden_characters > 0 and self._hides(wanted.hint, piece))

    def _forwards(self, hint: Hint, start: int) -> Iterator[LinePiece]:
        """Yield the pieces from ``start`` on that may contain a match."""
        begin = self._finder.next_start(start)
        while begin < self._finder.size:
            end = self._finder.next_start(begin + SEARCH_BYTES)
            if end <= begin:
                end = self._finder.end_after(begin)
            yield from self._candidates(hint, begin, end)
            begin = end
            if self._budget.spent and begin < self._finder.size:
                self.stopped_at = begin
                return

    def _backwards(self, hint: Hint, start: int) -> Iterator[LinePiece]:
        """Yield the pieces that begin before ``start`` and may contain a match, last first."""
        end = self._finder.next_start(start)
        while end > self._finder.begin:
            begin = self._finder.next_start(max(self._finder.begin, end - SEARCH_BYTES))
            if begin >= end:
                begin = self._finder.start_before(end)
            yield from reversed(list(self._candidates(hint, begin, end)))
            end = begin
            if self._budget.spent and end > self._finder.begin:
                self.stopped_at = end
                return

    def _hides(self, hint: Hint, piece: LinePiece) -> bool:
        return any(True for _ in hint.lines(without_sequences(self._finder.read(*piece))))

    def _candidates(self, hint: Hint, begin: int, end: int) -> Iterator[LinePiece]:
        data = self._finder.read(begin, end)
        text = without_sequences(data)
        serves = hint.serves(text, raw_tells=self._raw_tells)
        numbers = sorted(set(hint.lines(text))) if serves else range(data.count(b"\n") + 1)
        if not numbers:
            return
        borders = [0, *(newline.end() for newline in _NEWLINE.finditer(data))]
        borders += [len(data)] if borders[-1] < len(data) else []
        for number in numbers:
            if number + 1 < len(borders):
                yield LinePiece(begin + borders[number], begin + borders[number + 1])


class Wanted(NamedTuple):
    """What a search looks for: a hint that names candidates, and a test that decides."""

    hint: Hint
    matches: Callable[[LogLine], bool]
    name: str = ""
    """The name from which :func:`wanted_of` recreates it on the machine that has the file."""


NOTHING = Wanted(LiteralHint([]), lambda line: False)


def matching(pattern: str) -> Wanted:
    """Search for lines that match a pattern, which is interpreted by :func:`compiled`."""
    text = compiled(pattern)
    words = text.pattern.pattern
    literal = re.escape(words).replace("\\ ", " ").replace("\\-", "-") == words
    # Choose the fastest hint that misses no line.
    any_case = bool(text.pattern.flags & re.IGNORECASE)
    plain = literal and words.isascii()
    hint: Hint = LiteralHint([words.encode()], ignore_case=any_case) if plain else PatternHint(text)
    return Wanted(hint, lambda line: text.search(line.text) is not None, f"/{pattern}")


def beginning_errors() -> Wanted:
    """Search for lines that begin an error."""
    return Wanted(LiteralHint(_SIGNS_OF_ERROR), lambda line: begins_error(line.text), "!")


def of_levels(levels: frozenset[str]) -> Wanted:
    """Search for lines of these levels: ``error``, ``warning``."""
    signs = [*_SIGNS_OF_ERROR, b'File "'] if "error" in levels else []
    signs += [b"WARN", b"arning"] if "warning" in levels else []
    return Wanted(LiteralHint(signs), lambda line: line.level in levels, f"={' '.join(sorted(levels))}")


def wanted_of(name: str) -> Wanted:
    """Return the search of this :attr:`Wanted.name`: ``/pattern``, ``!`` for errors, ``=error warning`` for levels."""
    if name.startswith("/") and len(name) > 1:
        return matching(name[1:])
    return beginning_errors() if name == "!" else of_levels(frozenset(name[1:].split())) if name else NOTHING


def compiled(pattern: str) -> LinePattern:
    """Compile a pattern as a regular expression; one that is invalid or could run for ever is taken literally.

    Case matters only if the pattern has a capital letter (other than after a backslash).
    """
    flags = 0 if re.search(r"[A-Z]", re.sub(r"\\.", "", pattern)) else re.IGNORECASE
    try:
        return line_pattern(pattern, flags)
    except PatternMistake:
        return line_pattern(re.escape(pattern[: LONGEST_PATTERN // 2]), flags)
