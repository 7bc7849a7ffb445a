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

    def part(self, seconds: float) -> Budget:
        """A smaller budget within this one."""
        left = max(0.0, self._deadline - self._monotonic())
        return Budget(min(seconds, left), self._monotonic)
