"""Messages of the far side, sent in order of urgency, with never more in transit than the line can carry.

Buffers between two machines hold megabytes, and nothing can overtake what is in them. So no more is put in transit
than recently got through within a moment, long messages are sent in pieces, and urgent ones go between these.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import NamedTuple

from ..model.errors import OperationError
from .forms import Tree
from .frames import Frames

PIECE = 4096
"""Characters per piece of a long message; compressed, about a third as many bytes."""
FEWEST_BYTES, FIRST_BYTES, MOST_BYTES = 1 << 11, 1 << 14, 1 << 18
"""Bytes in transit at once: on the slowest line, at first, on the fastest."""
PROMPT_SECONDS, LATE_SECONDS = 0.5, 1.2
"""If a message is confirmed within the first, more may be in transit; if it takes longer than the second, less."""
Sent = Callable[[int], None]


class _Piece(NamedTuple):
    message: Tree
    done: Sent | None


class Outbox:
    """Messages that wait, and a thread that sends them."""

    def __init__(self, frames: Frames, broken: Callable[[], None]) -> None:
        """``broken`` is called once when nothing more can be sent."""
        self._frames, self._broken = frames, broken
        self._changed = Condition()
        self._urgent: deque[_Piece] = deque()
        self._bulk: deque[deque[_Piece]] = deque()
        self._window = FIRST_BYTES
        self._confirmed = 0
        self._sent: deque[tuple[int, float]] = deque()
        """For each unconfirmed message, the total of bytes sent up to its end, and when it was sent."""
        self._numbered = 0
        self._closed = False
        self._thread = Thread(target=self._run, name="mpstui-outbox", daemon=True)
        self._thread.start()

    def put(self, message: Tree, done: Sent | None = None, *, urgent: bool = False) -> None:
        """Send a message; ``done`` is called with the bytes it took. Urgent ones are short and go first."""
        pieces = [_Piece(message, done)] if urgent else self._pieces(message, done)
        with self._changed:
            if urgent:
                self._urgent.extend(pieces)
            else:
                self._bulk.append(deque(pieces))
            self._changed.notify()

    def confirm(self, received: int) -> None:
        """Note that ``received`` bytes, of all that were ever sent, have arrived."""
        now = time.monotonic()
        with self._changed:
            self._confirmed = max(self._confirmed, received)
            while self._sent and self._sent[0][0] <= self._confirmed:
                took = now - self._sent.popleft()[1]
                if took < PROMPT_SECONDS:
                    self._window = min(MOST_BYTES, self._window * 2)
                elif took > LATE_SECONDS:
                    self._window = max(FEWEST_BYTES, self._window // 2)
            self._changed.notify()

    def close(self) -> None:
        """Send nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _pieces(self, message: Tree, done: Sent | None) -> list[_Piece]:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        if len(text) <= PIECE:
            return [_Piece(message, done)]
        self._numbered += 1
        number, cuts = self._numbered, range(0, len(text), PIECE)
        total = [0]

        def count(size: int) -> None:
            total[0] += size

        def last(size: int) -> None:
            if done is not None:
                done(total[0] + size)

        return [
            _Piece(["part", number, text[at : at + PIECE], at == cuts[-1]], last if at == cuts[-1] else count)
            for at in cuts
        ]

    def _next(self) -> _Piece | None:
        """The piece to be sent now, if any; long messages take turns."""
        if self._urgent:
            return self._urgent.popleft()
        if not self._bulk or self._frames.sent - self._confirmed >= self._window:
            return None
        first = self._bulk.popleft()
        piece = first.popleft()
        if first:
            self._bulk.append(first)
        return piece

    def _run(self) -> None:
        while True:
            with self._changed:
                piece = self._next()
                while piece is None and not self._closed:
                    self._changed.wait()
                    piece = self._next()
                if self._closed or piece is None:
                    return
            try:
                size = self._frames.send(piece.message)
            except (OSError, ValueError, OperationError):
                self._broken()
                return
            with self._changed:
                self._sent.append((self._frames.sent, time.monotonic()))
            if piece.done is not None:
                piece.done(size)


class Pieces:
    """Reassembles what was received in pieces."""

    def __init__(self) -> None:
        self._begun: dict[int, list[str]] = {}

    def take(self, message: Tree) -> Tree | None:
        """Take what was received; return the message if it is complete now, otherwise None."""
        if not (isinstance(message, list) and message and message[0] == "part"):
            return message
        _, number, text, ends = message
        self._begun.setdefault(number, []).append(text)
        return json.loads("".join(self._begun.pop(number))) if ends else None
