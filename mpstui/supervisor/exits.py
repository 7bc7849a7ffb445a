"""How the trainer ended: learnt without reaping it, so that its pid and process group stay taken until we are done."""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Ending(NamedTuple):
    """Exit code or signal; neither when nobody who could know was there."""

    code: int | None = None
    signal: int | None = None
    core: bool = False
    rusage: Mapping[str, float] = MappingProxyType({})

    @property
    def unknown(self) -> bool:
        """The end was seen, the code was not."""
        return self.code is None and self.signal is None


class Child:
    """A child process of this supervisor."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._note = None if hasattr(os, "waitid") else ExitNote(pid, select)

    def has_ended(self) -> bool:
        """Whether it is a zombie by now; it stays one."""
        if self._note is not None:
            return self._note.has_come()
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        except ChildProcessError:
            return True

    def reap(self) -> Ending:
        """Collect it. From here on its pid may be anybody's."""
        try:
            _, status, usage = os.wait4(self.pid, 0)
        except ChildProcessError:
            return Ending()
        rusage = {
            "user_seconds": round(usage.ru_utime, 3),
            "system_seconds": round(usage.ru_stime, 3),
            "max_rss_bytes": float(usage.ru_maxrss * _MAXRSS_UNIT),
        }
        return ending_of(status, rusage)


class ExitNote:
    """The kernel's word that a process ended, through kqueue(2), which does not reap it either.

    For CPython on macOS before 3.13, which has no ``os.waitid``. Not verified on a Mac.
    """

    def __init__(self, pid: int, kernel: Any) -> None:
        self._queue = kernel.kqueue()
        self._ended = False
        wish = kernel.kevent(pid, filter=kernel.KQ_FILTER_PROC, flags=kernel.KQ_EV_ADD, fflags=kernel.KQ_NOTE_EXIT)
        try:
            self._queue.control([wish], 0, 0)
        except ProcessLookupError:
            self._ended = True  # it was a zombie already

    def has_come(self) -> bool:
        """Whether it ended; asked without waiting."""
        self._ended = self._ended or bool(self._queue.control(None, 1, 0))
        return self._ended


_MAXRSS_UNIT = 1 if os.uname().sysname == "Darwin" else 1024
"""getrusage(2): bytes on macOS, kilobytes on Linux."""


def ending_of(status: int, rusage: dict[str, float] | None = None) -> Ending:
    """Read a wait status."""
    if os.WIFSIGNALED(status):
        return Ending(signal=os.WTERMSIG(status), core=os.WCOREDUMP(status), rusage=rusage or {})
    return Ending(code=os.WEXITSTATUS(status), rusage=rusage or {})
