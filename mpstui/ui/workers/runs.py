"""Reading the runs and the log in view."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...core.model.allocator import release_free_memory
from ..differences import differ
from ..log_watch import LogWatch
from ..messages import LogGrew, SnapshotsReady
from .base import Post, Pump

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..services import Services

_TICK_SECONDS, _LIVELY_TICK_SECONDS, _QUIET_TICK_SECONDS = 0.025, 0.01, 0.25
"""Between two looks at the size of the log in view; shorter while it grows: half of it is what a new line waits.

A look at nothing costs little, but being woken for it does, ten times as much as the look."""
_HINTED_SECONDS, _POLL_SECONDS, _QUIET_POLL_SECONDS = 0.1, 0.2, 0.5
_QUIET_AFTER_SECONDS = 2.0
"""Where nothing has changed for so long, looks are fewer."""
_READING_SHARE = 0.05
_HINTED_SHARE = 0.2
"""Pictures may take this share of one core at most, more after a hint; many runs are then read less often."""
_LONGEST_READ_SECONDS = 1.0
"""Whatever that costs: the end of a training is on the screen within two seconds, right after the first reading too."""
_SLICE_SECONDS, _BREATH_SECONDS = 0.015, 0.001
"""The history of the run in focus is read in slices as short as this; keys and frames come between them."""
_RELEASE_SECONDS = 0.5
"""After the start, and after a history was read, what both needed for a moment is given back."""
_TOLERATED_BYTES = 64 << 20
"""A log that floods in is read at the pace of the pictures until so much of it is owed."""


class Focus(NamedTuple):
    """What is looked at closely: a run, and its output file where it has one."""

    run: str | None = None
    output: Path | None = None
    live: bool = True
    """Whether the output may grow at any moment."""


class RunPump(Pump):
    """Reads the runs five times a second and posts a picture when it differs, at most at the drawing rate."""

    name = "runs"

    def __init__(self, services: Services, post: Post, release: Callable[[], object] = release_free_memory) -> None:
        super().__init__(post)
        self._release = release
        self._release_at = time.monotonic() + _RELEASE_SECONDS
        self._monitor = services.monitor
        self._queue = services.queue
        self._draw_seconds = 1.0 if services.remote else 0.25
        self._log = LogWatch(slow=services.remote)
        self._focus = Focus()
        self._last: tuple[RunSnapshot, ...] | None = None
        self._pending: tuple[RunSnapshot, ...] | None = None
        self._paused: tuple[str, ...] = ()
        self._drawn = threading.Event()
        self._drawn.set()
        self._next_read = self._next_hinted = self._next_draw = 0.0
        self._hinted: frozenset[str] = frozenset()
        self._changed_at = -math.inf
        self._owed_bytes = 0
        self._catching_up = False

    def look_at(self, focus: Focus) -> None:
        """Look at another run; the next picture has it in full, at once."""
        if focus.run != self._focus.run:
            self._next_read = self._next_draw = 0.0
        self._focus = focus
        self.wake()

    def hint(self, runs: frozenset[str]) -> None:
        """Something happened to these runs: look soon. May come from any thread; one that is lost costs a poll."""
        self._hinted |= runs
        self.wake()

    def drawn(self) -> None:
        """The last picture is on the screen."""
        self._drawn.set()
        self.wake()

    def log_drawn(self) -> None:
        """The log's newest lines are on the screen."""
        self._log.drawn()

    def _work(self) -> float:
        now = time.monotonic()
        focus = self._focus
        if self._log.grew(focus.output, now) and focus.run is not None:
            self._changed_at = now
            self._post(LogGrew(focus.run))
        if now >= self._due():
            self._read(focus)
        if self._pending is not None and now >= self._next_draw and self._drawn.is_set():
            self._drawn.clear()
            pending, self._pending = self._pending, None
            self._next_draw = now + self._draw_seconds
            self._post(SnapshotsReady(pending, self._paused))
        if self._catch_up(focus, now):
            self._release_at = now + _RELEASE_SECONDS
            return _BREATH_SECONDS
        if now >= self._release_at:
            self._release_at = math.inf
            self._release()
        return self._pause(focus, now)

    def _due(self) -> float:
        return self._next_hinted if self._hinted else self._next_read

    def _pause(self, focus: Focus, now: float) -> float:
        """Seconds until there is something to do; whoever wants it sooner wakes this pump."""
        until = self._due()
        if self._pending is not None and self._drawn.is_set():
            until = min(until, self._next_draw)
        if focus.output is not None and focus.live:
            quick = _LIVELY_TICK_SECONDS if self._log.grows(now) else _TICK_SECONDS
            until = min(until, now + (_QUIET_TICK_SECONDS if self._quiet(now) else quick))
        return max(0.0, until - time.monotonic())

    def _catch_up(self, focus: Focus, now: float) -> bool:
        """Read a slice of what the run in focus owes; True when there is more to be read at once."""
        hurry = self._catching_up or self._owed_bytes > _TOLERATED_BYTES or not self._log.floods(now)
        self._catching_up = focus.run is not None and self._owed_bytes > 0 and hurry
        if self._catching_up and focus.run is not None:
            self._owed_bytes = self._monitor.read_on(focus.run, _SLICE_SECONDS)
        return self._catching_up

    def _read(self, focus: Focus) -> None:
        began, worked = time.monotonic(), time.thread_time()
        hinted, self._hinted = self._hinted, frozenset()
        self._monitor.hint(hinted)
        fresh = self._monitor.refresh(focus.run)
        self._owed_bytes = self._monitor.read_on(focus.run, 0.0) if focus.run is not None else 0
        took = time.thread_time() - worked  # on a busy machine the clock says how long others took
        poll = _QUIET_POLL_SECONDS if self._quiet(began) else _POLL_SECONDS
        self._next_read = began + max(poll, _POLL_SECONDS, min(took / _READING_SHARE, _LONGEST_READ_SECONDS))
        self._next_hinted = began + max(_HINTED_SECONDS, took / _HINTED_SHARE)
        paused = self._queue.paused()
        if self._last is None or paused != self._paused or differ(self._last, fresh):
            self._pending, self._changed_at = fresh, began
        self._last, self._paused = fresh, paused

    def _quiet(self, now: float) -> bool:
        return now - self._changed_at > _QUIET_AFTER_SECONDS
