"""A log on another machine: its end is kept up to date, other parts are fetched when needed, never all of it."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from ..logview.counting import Tally
from ..logview.document import SEARCH_SECONDS, LogDocument
from ..logview.line import LogLine
from ..logview.searching import PieceFinder, Wanted
from ..model.errors import ReportedError
from .desk import Desk
from .link import Link
from .view import Counted, Found, LogEnd, Piece

BLOCK_BYTES = 1 << 13
"""Bytes fetched at a time: some hundred lines."""
MOST_KEPT_BYTES = 1 << 21
PATIENCE_SECONDS = 2.5
"""How long to wait for bytes to be shown; after that the view stays where it is and waits for them."""
_GLANCE_SECONDS = 0.02
_FAR_SECONDS = 0.5
"""How long the other machine searches before it says how far it has got."""


class Stretches:
    """The parts of a file that have been fetched."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, bytes]] = []
        """Offsets and bytes, in order; no part touches the next."""

    def put(self, start: int, data: bytes) -> None:
        """Add bytes; they replace what was known there before."""
        end, kept = start + len(data), list[tuple[int, bytes]]()
        for at, part in self._parts:
            if at + len(part) < start or at > end:
                kept.append((at, part))
                continue
            if at < start:
                data, start = part[: start - at] + data, at
            if at + len(part) > end:
                data += part[end - at :]
                end = at + len(part)
        kept.append((start, data))
        while sum(len(part) for _, part in kept) > MOST_KEPT_BYTES and len(kept) > 1:
            kept.remove(max(kept, key=lambda one: abs(one[0] - start)))
        if len(data) > MOST_KEPT_BYTES:
            kept = [(end - MOST_KEPT_BYTES // 2, data[-MOST_KEPT_BYTES // 2 :])]
        self._parts = sorted(kept)

    def get(self, start: int, end: int) -> bytes | None:
        """The bytes from ``start`` to ``end``; None unless all of them have been fetched."""
        place = bisect_right(self._parts, start, key=lambda one: one[0]) - 1
        if place < 0:
            return None
        at, part = self._parts[place]
        return part[start - at : end - at] if end <= at + len(part) else None


class _FarFinder(PieceFinder):
    def __init__(self, log: FarLog, size: int) -> None:
        super().__init__(-1, size)
        self._log = log
        self.reads = BLOCK_BYTES

    def _take(self, start: int, end: int) -> bytes:
        return self._log.fetched(start, min(end, self.size))


class _Pending:
    """A question asked on a thread of its own, so that keys never wait for the line."""

    def __init__(self, key: object, ask: Any) -> None:
        self.key = key
        self.answer: Any = None
        self.done = Event()

        def work() -> None:
            try:
                self.answer = ask()
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever
                self.answer = error
            self.done.set()

        Thread(target=work, name="mpstui-log", daemon=True).start()


class FarLog(LogDocument):
    """One log over there."""

    def __init__(self, path: Path, link: Link) -> None:
        """``path``: its name over there."""
        super().__init__(path)
        self._link = link
        self._stretches = Stretches()
        self._anchors: dict[int, int] = {}
        """Number of newlines before some offsets."""
        self._end: LogEnd | None = None
        self._searching_there: _Pending | None = None
        self._counting_there: dict[str, _Pending] = {}
        self._numbers: dict[tuple[str, int, int], int | None] = {}

    def refresh(self) -> bool:
        end = self._link.values.get(f"log:{self.path}")
        if end is None and self._end is None:
            return False
        if end is None or (end is self._end and not self.waiting):
            return False
        if self._end is not None and (end.restarts != self._end.restarts or end.size < self._end.size):
            self._stretches, self._anchors = Stretches(), {}
        self._end, self._size, self.waiting = end, end.size, False
        self._stretches.put(end.start, b"".join(end.pieces))
        self._restarts, self.encoding = end.restarts, end.encoding
        self._finder = _FarFinder(self, end.size) if end.there else None
        return True

    @property
    def span(self) -> tuple[float | None, float | None]:
        return (self._end.began, self._end.ended) if self._end is not None else (None, None)

    @property
    def line_count(self) -> int | None:
        return self._end.lines if self._end is not None else None

    def fetched(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to ``end``, requested from the other machine if they are not here.

        Raises:
            OSError: they cannot be fetched.
        """
        found = self._stretches.get(start, end)
        if found is not None:
            return found
        first = max(0, start - start % BLOCK_BYTES)
        last = min(self._size, max(end, first + BLOCK_BYTES))
        try:
            piece = self._link.ask(Desk.log_piece, patience=PATIENCE_SECONDS, path=self.path, start=first, end=last)
        except ReportedError as error:
            self.waiting = True
            raise OSError(str(error)) from error
        self._take_piece(piece)
        self.waiting = False
        return self._stretches.get(start, min(end, piece.start + len(piece.data))) or b""

    def _take_piece(self, piece: Piece) -> None:
        if self._end is not None and piece.restarts == self._end.restarts and piece.data:
            self._stretches.put(piece.start, piece.data)
            if piece.lines_before is not None:
                self._anchors[piece.start] = piece.lines_before

    def _numbered(self, lines: list[LogLine]) -> list[LogLine]:
        from dataclasses import replace

        if not lines:
            return lines
        lines.sort(key=lambda line: line.offset)
        number = self._number_at(lines[0].offset)
        if number is None:
            return lines
        out = []
        for line in lines:
            out.append(replace(line, number=number))
            number += (self._stretches.get(line.end - 1, line.end) or b"\n") == b"\n"
        return out

    def _number_at(self, offset: int) -> int | None:
        end = self._end
        behind = self._stretches.get(offset, end.size) if end is not None else None
        if end is not None and end.lines is not None and behind is not None:
            newlines = end.lines - (0 if not behind or behind.endswith(b"\n") else 1)
            return newlines - behind.count(b"\n") + 1
        for anchor in sorted((one for one in self._anchors if one <= offset), reverse=True)[:4]:
            between = self._stretches.get(anchor, offset)
            if between is not None:
                return self._anchors[anchor] + between.count(b"\n") + 1
        return None

    def at_line(self, number: int, rows: int) -> list[LogLine]:
        try:
            piece = self._link.ask(Desk.log_at_line, patience=PATIENCE_SECONDS, path=self.path, number=number)
        except ReportedError:
            return []
        if piece is None:
            return []
        self._take_piece(piece)
        return self.window(piece.start, rows)

    def find(self, wanted: Wanted, offset: int, *, backwards: bool, seconds: float) -> LogLine | None:
        """Search over there; an unfinished search continues at :attr:`search_stopped_at`."""
        key, self.search_stopped_at = (wanted.name, offset, backwards), None
        if self._finder is None or not wanted.name:
            return None
        pending = self._searching_there
        if pending is None or pending.key != key:
            ask = partial(
                self._link.ask,
                Desk.log_search,
                path=self.path,
                wanted=wanted.name,
                offset=offset,
                backwards=backwards,
                seconds=_FAR_SECONDS,
            )
            pending = self._searching_there = _Pending(key, ask)
        if not pending.done.wait(PATIENCE_SECONDS if seconds >= SEARCH_SECONDS else _GLANCE_SECONDS):
            self.search_stopped_at = offset
            return None
        self._searching_there, found = None, pending.answer
        if not isinstance(found, Found):
            return None
        self.search_stopped_at = found.stopped_at
        if found.offset is None:
            return None
        if found.around is not None:
            self._take_piece(found.around)
        lines = self.window(found.offset, 1)
        return lines[0] if lines else None

    def count_on(self, tally: Tally, seconds: float) -> bool:
        tally.restarts = self._restarts if tally.restarts is None else tally.restarts
        if tally.restarts != self._restarts:
            return False
        name = tally.wanted.name
        pending = self._counting_there.get(name)
        if pending is None:
            ask = partial(self._link.ask, Desk.log_count, path=self.path, wanted=name, seconds=_FAR_SECONDS)
            pending = self._counting_there[name] = _Pending(name, ask)
        if pending.done.wait(_GLANCE_SECONDS):
            del self._counting_there[name]
            counted = pending.answer
            if isinstance(counted, Counted):
                tally.count, tally.complete = counted
            else:
                tally.complete = True  # no more answers will come: keep the count so far
        return True

    def number_in(self, tally: Tally, offset: int) -> int | None:
        key = tally.wanted.name, offset, tally.count
        if key not in self._numbers:
            try:
                self._numbers[key] = self._link.ask(
                    Desk.log_number, patience=1.0, path=self.path, wanted=tally.wanted.name, offset=offset
                )
            except ReportedError:
                return None
        return self._numbers[key]

    def bytes_between(self, start: int, end: int) -> bytes:
        try:
            return self.fetched(max(0, start), min(end, self._size))
        except OSError:
            return b""

    def lines_before(self, offset: int) -> int | None:
        number = self._number_at(offset)
        return None if number is None else number - 1
