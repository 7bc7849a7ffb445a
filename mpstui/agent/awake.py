"""A second thread, for long stretches in which the program calls nothing of ours: it looks whether Python moves."""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable

_LONGEST_LOOK_SECONDS = 2.0
_COMPUTES_FROM = 0.2
"""Of a core: who waits and looks again every so often takes less."""
_TRY_SECONDS, _MOST_TRIES = 0.0003, 300


class Awake:
    """Calls ``look`` every so often. ``threading`` does not count this thread, and none of it is there at a fork.

    A fork copies the forking thread alone: with a second one Python 3.12 and later warn, and a lock that this one holds
    would be held for ever in the child. 3.13 looks behind the fork: so it does not begin anew before it is asked to.
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
        """For how many seconds the thread that made this has been at the same place; asked from the second thread."""
        frame, places = sys._current_frames().get(self._watched), []
        while frame is not None:
            places.append((id(frame.f_code), frame.f_lasti))
            frame = frame.f_back
        if places != self._places:
            self._places, self._moved_at = places, now
        return now - self._moved_at

    def computes(self, now: float) -> bool:
        """Whether the program was at work since this was asked last, not only somewhere else in its code."""
        worked, before, since = time.process_time(), self._worked, self._looked_at
        self._worked, self._looked_at = worked, now
        return worked - before > _COMPUTES_FROM * (now - since)

    def end(self) -> None:
        """Let the second thread end for good, and wait for it."""
        self._pid = 0
        self._pause()

    def _pause(self) -> None:
        ending, self._ending = self._ending, None
        if ending is not None:
            ending()

    def start(self) -> None:
        """Begin, where it is not there."""
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
            for _ in range(_MOST_TRIES):  # Python is done with it: the system a moment later
                time.sleep(_TRY_SECONDS)
                if not os.path.exists(f"/proc/self/task/{number}"):  # noqa: PTH110
                    break

        self._ending = end
        _thread.start_new_thread(look, ())
