"""The part of a log file that explains its end: its beginning, the first traceback, and its last lines.

A log may be a gigabyte long. It is read once in large blocks, to count its lines and to find the first traceback; only
some hundred kilobytes of it are ever decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .model import Evidence, LogLine
from .text import screen_lines

HEAD_BYTES = 48 << 10  # settings, versions and warnings of the start
TAIL_BYTES = 256 << 10
TRACEBACK_BYTES = 64 << 10
BLOCK_BYTES = 1 << 20
FIRST_ERROR = b"Traceback (most recent call last)"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of the file and the number of the line it begins with."""

    start: int
    end: int
    first_line: int


def evidence_from_log(path: Path, signal: int | None = None, exit_code: int | None = None) -> Evidence:
    """Return the evidence of a log file; raises ``OSError`` when it cannot be read.

    Bytes that are no UTF-8 are replaced. Lines are numbered as in an editor, from 1.
    """
    return Evidence(lines=log_lines(path), signal=signal, exit_code=exit_code)


def log_lines(path: Path) -> tuple[LogLine, ...]:
    """Return the screen lines of the parts of a log that matter, in order."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        return tuple(line for piece in _pieces(file, size) for line in _decoded(file, piece))


def _decoded(file: BinaryIO, piece: _Piece) -> Iterator[LogLine]:
    file.seek(piece.start)
    text = file.read(piece.end - piece.start).decode("utf-8", errors="replace")
    # Not splitlines(): it also breaks at characters that no editor counts as a line.
    return screen_lines(text.split("\n"), piece.first_line)


def _pieces(file: BinaryIO, size: int) -> list[_Piece]:
    if size <= HEAD_BYTES + TRACEBACK_BYTES + TAIL_BYTES:
        return [_Piece(0, size, 1)]
    tail_start = size - TAIL_BYTES
    newlines, traceback = _scan(file, tail_start)
    pieces = [_Piece(0, HEAD_BYTES, 1), _Piece(tail_start, size, newlines + 1)]
    if traceback is not None and traceback[0] >= HEAD_BYTES:
        start, line = traceback
        pieces.insert(1, _Piece(start, min(start + TRACEBACK_BYTES, tail_start), line))
    return pieces


def _scan(file: BinaryIO, end: int) -> tuple[int, tuple[int, int] | None]:
    """Return the number of newlines before ``end``, and offset and line of the first traceback."""
    file.seek(0)
    newlines = 0
    position = 0
    traceback = None
    # A marker cut by the end of a block is missed: the tail is read whole, so only a handled exception can be lost.
    while position < end and (block := file.read(min(BLOCK_BYTES, end - position))):
        if traceback is None and (found := block.find(FIRST_ERROR)) >= 0:
            traceback = position + found, newlines + block.count(b"\n", 0, found) + 1
        newlines += block.count(b"\n")
        position += len(block)
    return newlines, traceback
