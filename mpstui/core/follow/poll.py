"""When to look at what: often at what is on the screen and alive, now and then at the rest, at once after a hint."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from zlib import crc32


class PollSchedule:
    """Remembers when each key was looked at last.

    A stat of everything, all the time, would be the whole idle load of a monitor with hundreds of ended runs.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._next: dict[str, float] = {}

    def due(self, key: str, every_seconds: float) -> bool:
        """Whether to look at ``key`` now; if so, the next time is ``every_seconds`` away.

        The first look of each key is put off by a part of that, so that many keys never come due together again.
        """
        now = self._monotonic()
        if key not in self._next:
            self._next[key] = now + every_seconds * (0.5 + 0.5 * _fraction(key))
            return True
        if now < self._next[key]:
            return False
        self._next[key] = now + every_seconds
        return True

    def hurry(self, keys: Iterable[str]) -> None:
        """Something happened to these: look at them next time."""
        for key in keys:
            if key in self._next:
                self._next[key] = 0.0

    def forget(self, key: str) -> None:
        """It is gone."""
        self._next.pop(key, None)


def _fraction(key: str) -> float:
    return (crc32(key.encode(errors="surrogatepass")) % 1000) / 1000
