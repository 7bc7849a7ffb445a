"""Noticing that a log has grown, and when to draw it."""

from __future__ import annotations

import math
import threading
from pathlib import Path

_FLOOD_BYTES = 4096
"""Growth between two looks from which on a log is drawn four times a second, not at once."""

_FLOOD_SECONDS = 1.0
"""After its last big step a flood is held to be over."""

_LIVELY_SECONDS = 2.0
"""A log that has not grown for so long is not about to."""


class LogWatch:
    """Notices that a file changed by asking for its size; FSEvents says nothing about a file that is kept open."""

    def __init__(self, slow: bool) -> None:
        self._path: Path | None = None
        self._slow = slow
        self._seen: tuple[int, int] | None = None
        self._peeked: tuple[int, int] | None = None
        self._next = 0.0
        self._quick, self._flood = (0.25, 1.0) if slow else (0.03, 0.25)
        self._flooded = self._grew_at = -math.inf
        self._drawn = threading.Event()
        self._drawn.set()

    def drawn(self) -> None:
        """What was told last is on the screen."""
        self._drawn.set()

    def floods(self, now: float) -> bool:
        """Whether the file has been growing fast until now."""
        return now - self._flooded < _FLOOD_SECONDS

    def grows(self, now: float) -> bool:
        """Whether the file has grown just now."""
        return now - self._grew_at < _LIVELY_SECONDS

    def _ends_early(self, now: float) -> bool:
        """Whether a pause of the file is waited for; over SSH the drawing rate is what counts."""
        return not self._slow and self.floods(now)

    def grew(self, path: Path | None, now: float) -> bool:
        """Whether there is something new to draw and it is time: a trickle at once, a flood four times a second."""
        if path != self._path:
            self._path, self._seen = path, None
        if path is None or not self._drawn.is_set() or (now < self._next and not self._ends_early(now)):
            return False
        try:
            found = path.stat()
        except OSError:
            return False
        state = (found.st_size, found.st_mtime_ns)
        waits, self._peeked = now < self._next and state != self._peeked, state
        if state == self._seen or waits:
            return False  # a flood that has paused is drawn at once: nothing more may come
        grown = state[0] - self._seen[0] if self._seen else 0
        if grown:
            self._grew_at = now
        self._seen = state
        if grown > _FLOOD_BYTES:
            self._flooded = now
        self._next = now + (self._flood if grown > _FLOOD_BYTES else self._quick)
        self._drawn.clear()
        return True
