"""How far a move is: what it is doing, how much has travelled, at which rate; and that it may be cancelled."""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..model.errors import OperationError
from ..present import duration, size

_WINDOW_SECONDS = 10.0
"""The rate is that of the last seconds: a line gets slower and faster."""
_TELL_SECONDS = 0.2
_GZIP = 31


class Cancelled(OperationError):
    """Whoever asked for a move has taken that back."""

    exit_code = 130
    """As of whatever ends by ctrl+c."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is."""

    doing: str
    """What is being done, as in *sending the code*."""
    done_bytes: int = 0
    """Arrived, by this try and by earlier ones."""
    total_bytes: int = 0
    """0: nothing travels at this step."""
    rate: float | None = None
    """Bytes a second; None: not known yet."""
    can_cancel: bool = True
    """Not any more once the run has been given away."""

    @property
    def remaining_seconds(self) -> float | None:
        """Of this step; None: not known."""
        if not self.rate or not self.total_bytes:
            return None
        return max(self.total_bytes - self.done_bytes, 0) / self.rate

    @property
    def counts(self) -> str:
        """How much has arrived, how fast, and what it still takes; empty where nothing travels."""
        if not self.total_bytes:
            return ""
        told = [f"{size(self.done_bytes)} of {size(self.total_bytes)}"]
        if self.rate:
            told.append(f"{size(self.rate)}/s")
        if (left := self.remaining_seconds) is not None:
            told.append(f"{duration(left)} left")
        return ", ".join(told)

    @property
    def sentence(self) -> str:
        """All of it in a line."""
        return f"{self.doing}: {counts}" if (counts := self.counts) else self.doing


class Meter:
    """Measures what passes and tells of it, not too often."""

    def __init__(
        self, tell: Callable[[Progress], None] = lambda now: None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell, self._monotonic = tell, monotonic
        self._now = Progress("")
        self._passed: deque[tuple[float, int]] = deque()
        self._told_at = -_TELL_SECONDS
        self._unpacked = zlib.decompressobj(_GZIP)

    def begin(self, doing: str, total_bytes: int = 0, done_bytes: int = 0, *, can_cancel: bool = True) -> None:
        """Another step begins.

        Args:
            total_bytes: what travels by its end, before it is compressed.
            done_bytes: what an earlier try has sent of it.
        """
        self._now = Progress(doing, done_bytes, total_bytes, None, can_cancel)
        self._passed = deque([(self._monotonic(), done_bytes)])
        self._unpacked = zlib.decompressobj(_GZIP)
        self._tell(self._now)

    def passes(self, data: bytes) -> None:
        """A part of a parcel, which is unpacked here only to know how much of the files it is."""
        now, done = self._monotonic(), self._now.done_bytes + len(self._unpacked.decompress(data))
        self._passed.append((now, done))
        while self._passed[1][0] < now - _WINDOW_SECONDS:
            self._passed.popleft()
        (then, before), total = self._passed[0], self._now.total_bytes
        rate = (done - before) / (now - then) if now - then > 1.0 else None
        # Names and fillings of the archive are counted too.
        self._now = Progress(self._now.doing, min(done, total), total, rate, self._now.can_cancel)
        if now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            self._tell(self._now)

    def all_passed(self) -> None:
        """The parcel has been handed over; what has arrived is looked at now."""
        self._tell(self._now)
