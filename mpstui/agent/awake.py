"""A second thread that checks whether Python still moves while none of our hooks is called for long."""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable

_LONGEST_LOOK_SECONDS = 2.0
_COMPUTES_FROM = 0.2
"""Share of a core that a program at work uses; one that only waits and polls uses less."""
_TRY_SECONDS, _MOST_TRIES = 0.0003, 300


class Awake:
    """Calls ``look`` at intervals, on a thread that ``threading`` does not count and that is ended before any fork.

    A fork copies only the forking thread: Python 3.12 and later warn if there is a second one, and a lock held by this
    one would stay locked in the child for ever. 3.13 checks after the fork, so the thread restarts only when asked to.
    """

    def __init__(self, look: Callable[[], None], seconds: float) -> None:
        self._look = look
        self._seconds = seconds
        self._watched, self._pid = _thread.get_ident(), os.getpid()
        self._ending: Callable[[], object] | None = None
        self._places: list[tuple[int, int]] = []
        self._moved_at = 0.0
        self._worked, self._looked_at = time.process_time(), 0.0
        os.register_at_fork(before=self._pause)

    def stands_still(self, now: float) -> float:
        """Return for how many seconds the thread that created this has stood still; called by the second thread."""
        frame, places = sys._current_frames().get(self._watched), []
        while frame is not None:
            places.append((id(frame.f_code), frame.f_lasti))
            frame = frame.f_back
        if places != self._places:
            self._places, self._moved_at = places, now
        return now - self._moved_at

    def computes(self, now: float) -> bool:
        """Return whether the program has been working since the last call, and not merely moved to another line."""
        worked, before, since = time.process_time(), self._worked, self._looked_at
        self._worked, self._looked_at = worked, now
        return worked - before > _COMPUTES_FROM * (now - since)

    def end(self) -> None:
        """End the second thread for good, and wait until it is gone."""
        self._pid = 0
        self._pause()

    def _pause(self) -> None:
        ending, self._ending = self._ending, None
        if ending is not None:
            ending()

    def start(self) -> None:
        """Start the thread if it is not running."""
        if self._ending is not None or self._pid != os.getpid():
            return
        stop, ended = _thread.allocate_lock(), _thread.allocate_lock()
        stop.acquire()
        ended.acquire()

        number = 0

        def look() -> None:
            nonlocal number
            number = _thread.get_native_id()
            while not stop.acquire(timeout=self._seconds):
                self._look()
            ended.release()

        def end() -> None:
            stop.release()
            ended.acquire(timeout=_LONGEST_LOOK_SECONDS)
            for _ in range(_MOST_TRIES):  # after Python, the system needs a moment to end it
                time.sleep(_TRY_SECONDS)
                if not os.path.exists(f"/proc/self/task/{number}"):  # noqa: PTH110
                    break

        self._ending = end
        _thread.start_new_thread(look, ())
