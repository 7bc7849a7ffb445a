"""When to reopen a line that broke: as soon as possible, without wearing the other machine out.

A line that held for a moment is reopened at once. One that cannot be opened is retried after growing pauses; but if
nothing answers at all, as when the network is away, we knock at the machine's port instead: a packet per second costs
it nothing, causes no login, and shows within a second that it is back. A line is also retried when the clock went on
while we did not: this machine has slept, and its network may be another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import Protocol

FIRST_BACKOFF, MOST_BACKOFF, REFUSED_BACKOFF = 0.5, 15.0, 60.0
HELD_SECONDS = 2.0
"""A line that lasted this long does not count as a failed attempt."""
REFUSED = frozenset({"login", "key_changed", "key_unknown", "python"})
"""Failures that last until somebody does something; a machine may shut out clients that try too often."""
AWAY = frozenset({"unreachable", "name", "frozen"})
"""Failures seen when the network is away: a laptop without one cannot resolve names either."""
KNOCK_EVERY, RARELY_EVERY = 1.0, 5.0
OFTEN_SECONDS = 600.0
"""For this long somebody may be waiting for the machine; after that we knock rarely."""
SLEPT_SECONDS = 5.0
"""A gap this long between two checks a moment apart means that we were asleep."""
_LOOK_SECONDS = 0.25


class Knock(Protocol):
    """Check at the lowest cost if the machine accepts a connection; None: that cannot be known from here."""

    def __call__(self, seconds: float) -> bool | None: ...


def unknown(seconds: float) -> bool | None:
    """The :class:`Knock` for a machine that only ssh can reach."""
    return None


class Wakefulness:
    """Notices when this process, or the machine with it, has slept."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._seen = clock(), time.monotonic()
        self.unseen = 0.0
        """Seconds between the last two calls of :meth:`slept` in which the monotonic clock stood still."""

    def slept(self) -> bool:
        """True if it has slept since the last call."""
        (wall, steady), self._seen = self._seen, (self._clock(), time.monotonic())
        passed, ticked = self._seen[0] - wall, self._seen[1] - steady
        self.unseen = max(0.0, passed - ticked)
        return max(passed, ticked) > SLEPT_SECONDS


class Reopening:
    """The pauses between attempts to open a line. Any thread may call :meth:`hurry` and :meth:`stop`, one the rest."""

    def __init__(self, knock: Knock = unknown, clock: Callable[[], float] = time.time) -> None:
        self._knock, self._clock = knock, clock
        self.backoff = FIRST_BACKOFF
        """Seconds of the next pause, unless something shortens it."""
        self._kind = ""
        self._away_since: float | None = None
        self._hurried, self._over = Event(), Event()

    def hurry(self) -> None:
        """Try now: somebody is waiting for the line."""
        self._hurried.set()

    def stop(self) -> None:
        """End the present pause, and never pause again."""
        self._over.set()
        self._hurried.set()

    def ended(self, spoken_seconds: float, kind: str = "") -> None:
        """Note that a line has ended, after how long (0 if it could not be opened), and why."""
        self._kind = kind
        if spoken_seconds > 0.0:
            self._away_since = None
        if spoken_seconds >= HELD_SECONDS:
            self.backoff = FIRST_BACKOFF
        if kind in REFUSED:
            self.backoff = REFUSED_BACKOFF

    def pause(self, most: float = OFTEN_SECONDS) -> None:
        """Wait as long as makes sense, but at most this many seconds."""
        began, awake, was_away = time.monotonic(), Wakefulness(self._clock), self._away_since is not None
        until = began + min(most, self.backoff)
        knock_at = began if self._kind in AWAY else float("inf")
        while not self._over.is_set():
            now = time.monotonic()
            if awake.slept():
                self.backoff = FIRST_BACKOFF
                break
            if now >= knock_at:
                answers = self._knock(KNOCK_EVERY)
                awake.slept()  # waiting for an answer does not count
                now = time.monotonic()
                if answers is False and not was_away:
                    was_away, self._away_since = True, now
                if answers and was_away:
                    self._away_since, self.backoff = None, FIRST_BACKOFF
                    return
                often = self._away_since is None or now - self._away_since < OFTEN_SECONDS
                knock_at = now + (KNOCK_EVERY if often else RARELY_EVERY) if answers is not None else float("inf")
                if answers is False:
                    # ssh would only wait now; but it says at once if a name does not exist, and may know more names
                    last = began + min(most, MOST_BACKOFF if self._kind == "name" else most)
                    until = min(max(until, now + KNOCK_EVERY), last)
            if now >= until:
                break
            if self._hurried.wait(max(0.0, min(until, knock_at, now + _LOOK_SECONDS) - now)):
                self._hurried.clear()
                if self._kind in REFUSED:
                    until = min(until, max(now, began + MOST_BACKOFF))
                elif self._away_since is None:
                    break
        self._hurried.clear()
        self.backoff = min(MOST_BACKOFF, 2 * self.backoff)
