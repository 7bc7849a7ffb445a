"""The progress of a transfer: what is being done, how much has arrived, how fast, and if it may be cancelled."""

from __future__ import annotations

import io
import time
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any, BinaryIO, cast

from ..model.errors import OperationError
from ..present import duration, size

_WINDOW_SECONDS = 10.0
"""The rate is that of these last seconds: lines get slower and faster."""
_TELL_SECONDS = 0.2
_GZIP = 31


class Cancelled(OperationError):
    """The person who asked for it has cancelled it."""

    exit_code = 130
    """The usual one for a program ended by ctrl+c."""


class Wish:
    """A request that takes time and may be withdrawn."""

    def __init__(self, sentence: str = "it was cancelled") -> None:
        """``sentence``: what is said about it then."""
        self._sentence, self._is_over = sentence, Event()

    def take_back(self) -> None:
        """Withdraw it, from another thread than the one that carries it out, or below a signal handler."""
        self._is_over.set()

    def require(self) -> None:
        """Continue only if it is still wanted.

        Raises:
            Cancelled: it was withdrawn.
        """
        if self._is_over.is_set():
            raise Cancelled(self._sentence)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a transfer has got."""

    doing: str
    """What is being done, as in *sending the code*."""
    done_bytes: int = 0
    """Bytes that have arrived, in this attempt and earlier ones."""
    total_bytes: int = 0
    """0 if nothing is sent in this step."""
    rate: float | None = None
    """Bytes per second; None: not known yet."""
    can_cancel: bool = True
    """False once the run has been handed over, or the launch requested."""

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds that this step still takes; None if unknown."""
        if not self.rate or not self.total_bytes:
            return None
        return max(self.total_bytes - self.done_bytes, 0) / self.rate

    @property
    def counts(self) -> str:
        """How much has arrived, how fast, and how long the rest takes; empty if nothing is sent."""
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
        """The whole progress in one line."""
        return f"{self.doing}: {counts}" if (counts := self.counts) else self.doing


class Meter:
    """Measures what is transferred and reports it, not too often."""

    def __init__(
        self, tell: Callable[[Progress], None] = lambda now: None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell, self._monotonic = tell, monotonic
        self._now = Progress("")
        self._passed: deque[tuple[float, int]] = deque()
        self._told_at = -_TELL_SECONDS
        self._unpacked = zlib.decompressobj(_GZIP)

    def begin(self, doing: str, total_bytes: int = 0, done_bytes: int = 0, *, can_cancel: bool = True) -> None:
        """Begin another step.

        Args:
            total_bytes: size of all that is to be sent, before compression.
            done_bytes: how much of that an earlier attempt has sent.
        """
        self._now = Progress(doing, done_bytes, total_bytes, None, can_cancel)
        self._passed = deque([(self._monotonic(), done_bytes)])
        self._unpacked = zlib.decompressobj(_GZIP)
        self._tell(self._now)

    def passes(self, data: bytes) -> None:
        """Count a part of a parcel, decompressed here only to know how much of the files it contains."""
        try:
            unpacked = len(self._unpacked.decompress(data))
        except zlib.error:  # writing was broken off: the end of the stream comes after a gap
            return
        now, done = self._monotonic(), self._now.done_bytes + unpacked
        self._passed.append((now, done))
        while self._passed[1][0] < now - _WINDOW_SECONDS:
            self._passed.popleft()
        (then, before), total = self._passed[0], self._now.total_bytes
        rate = (done - before) / (now - then) if now - then > 1.0 else None
        # Names and padding of the archive are counted too.
        self._now = Progress(self._now.doing, min(done, total), total, rate, self._now.can_cancel)
        if now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            self._tell(self._now)

    def sink(self, out: BinaryIO, wish: Wish) -> BinaryIO:
        """A file that measures what is written to it and passes it on, as long as that is wanted."""
        return cast(BinaryIO, _Sink(self, out, wish))

    def tap(self, reads: BinaryIO, wish: Wish) -> BinaryIO:
        """The same for a file that is read."""
        return cast(BinaryIO, _Tap(self, reads, wish))

    def all_passed(self) -> None:
        """Report that the parcel has been handed over; now the arrived files are inspected."""
        self._tell(self._now)


class _Sink(io.RawIOBase):
    def __init__(self, meter: Meter, out: BinaryIO, wish: Wish) -> None:
        self._meter, self._out, self._wish = meter, out, wish

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._wish.require()
        self._out.write(data)
        self._meter.passes(bytes(data))
        return len(data)


class _Tap(io.RawIOBase):
    def __init__(self, meter: Meter, reads: BinaryIO, wish: Wish) -> None:
        self._meter, self._reads, self._wish = meter, reads, wish

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self._wish.require()
        data = self._reads.read(size)
        self._meter.passes(data)
        return data
