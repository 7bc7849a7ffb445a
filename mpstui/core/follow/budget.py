"""How long one refresh may read: a huge backlog is taken in slices, and the screen stays alive."""

from __future__ import annotations

import time
from collections.abc import Callable

SLICE_BYTES = 1 << 18


class Budget:
    """Seconds that may still be spent; always allows the first slice, so that every refresh gets further."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.perf_counter) -> None:
        self._monotonic = monotonic
        self._deadline = monotonic() + seconds

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return self._monotonic() >= self._deadline

    @property
    def left_seconds(self) -> float:
        """What may still be spent, 0 or more."""
        return max(0.0, self._deadline - self._monotonic())

    def part(self, seconds: float) -> Budget:
        """A smaller budget within this one."""
        return Budget(min(seconds, self.left_seconds), self._monotonic)


def hundredths(read_bytes: int, size: int) -> float:
    """How much of a file has been read, rounded down to hundredths: 1.0 says all of it."""
    return min(read_bytes, size) * 100 // size / 100 if size > 0 else 0.0
