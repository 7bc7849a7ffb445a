"""When the log in view has grown, and whether that is to be drawn now."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path

_FLOOD_BYTES = 4096
"""Growth between two looks from which on a log is drawn four times a second, not at once."""
_FLOOD_SECONDS = 1.0
"""After its last big step a flood is held to be over."""
_LIVELY_SECONDS = 2.0
"""A log that has not grown for so long is not about to."""


class LogWatch:
    """Notices that a file changed by asking for its size; FSEvents says nothing about a file that is kept open."""

    def __init__(self, stamp: Callable[[Path], tuple[int, ...] | None], *, slow: bool) -> None:
        """``stamp`` tells what changes when a log does, its size last; None: it is not there."""
        self._stamp = stamp
        self._path: Path | None = None
        self._slow = slow
        self._seen: tuple[int, ...] | None = None
        self._peeked: tuple[int, ...] | None = None
        self._next = 0.0
        self._quick, self._flood = (0.25, 1.0) if slow else (0.03, 0.25)
        self._flooded = self._grew_at = -math.inf
        self._drawn = threading.Event()
        self._drawn.set()

    def drawn(self) -> None:
        """The growth that was told last is on the screen."""
        self._drawn.set()

    def floods(self, now: float) -> bool:
        """Whether the file has been growing fast until now."""
        return now - self._flooded < _FLOOD_SECONDS

    def grows(self, now: float) -> bool:
        """Whether the file has grown just now."""
        return now - self._grew_at < _LIVELY_SECONDS

    def grew(self, path: Path | None, now: float) -> bool:
        """Whether there is something new to draw and it is time: a trickle at once, a flood four times a second."""
        if path != self._path:
            self._path, self._seen = path, None
        # A pause of the file ends a flood early; over SSH the drawing rate is what counts.
        ends_early = not self._slow and self.floods(now)
        if path is None or not self._drawn.is_set() or (now < self._next and not ends_early):
            return False
        state = self._stamp(path)
        if state is None:
            return False
        waits, self._peeked = now < self._next and state != self._peeked, state
        if state == self._seen or waits:
            return False  # a flood that has paused is drawn at once: nothing more may come
        grown = state[-1] - self._seen[-1] if self._seen else 0
        if grown:
            self._grew_at = now
        self._seen = state
        if grown > _FLOOD_BYTES:
            self._flooded = now
        self._next = now + (self._flood if grown > _FLOOD_BYTES else self._quick)
        self._drawn.clear()
        return True
