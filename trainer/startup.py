"""From a process's start to its first step: heartbeats say what is being done, an event how long each phase took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from mpstui.agent.reporter import Reporter

SETUP_SECONDS = 180.0
_SHORTEST_SECONDS = 0.05
"""What took less is not mentioned."""


class Startup:
    """The phases of one start; beginning one ends the previous one."""

    def __init__(self, environ: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self.reporter = Reporter.from_environment(environ)
        self.reporter.listen_for_stacks()
        self.seconds: dict[str, float] = {}
        """What each took, in order."""
        self._clock = clock
        self._doing = ""
        self._since = clock()

    def begin(self, doing: str, *, patience: float = SETUP_SECONDS) -> None:
        """Begin a phase: announce what it does, and for how many seconds it may stay silent."""
        self._end()
        self._doing = doing
        self.reporter.beat("setup", now=True, doing=doing, expect_next_in=patience)

    def told(self) -> str:
        """End the last phase; returns a sentence about all of them."""
        self._end()
        parts = [f"{doing} {took:.1f}" for doing, took in self.seconds.items() if took >= _SHORTEST_SECONDS]
        return f"the first step is done after {sum(self.seconds.values()):.1f} s: {', '.join(parts)}"

    def _end(self) -> None:
        now = self._clock()
        if self._doing:
            self.seconds[self._doing] = self.seconds.get(self._doing, 0.0) + now - self._since
        self._doing, self._since = "", now
