"""How the trainer ended: learnt without reaping it, so that its pid and process group stay taken until we are done."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ..wire.processes import ProcessTable


@dataclass(frozen=True)
class Ending:
    """Exit code or signal; neither when nobody who could know was there."""

    code: int | None = None
    signal: int | None = None
    core: bool = False
    rusage: dict[str, float] = field(default_factory=dict)

    @property
    def unknown(self) -> bool:
        """The end was seen, the code was not."""
        return self.code is None and self.signal is None


class Child:
    """A child process of this supervisor."""

    def __init__(self, pid: int, table: ProcessTable) -> None:
        self.pid = pid
        self._table = table

    def has_ended(self) -> bool:
        """Whether it is a zombie by now; it stays one.

        ``os.waitid`` is missing from CPython on macOS before 3.13; the process table says the same.
        """
        if hasattr(os, "waitid"):
            try:
                return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
            except ChildProcessError:
                return True
        found = self._table.find(self.pid)
        return found is None or not found.alive

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


_MAXRSS_UNIT = 1 if os.uname().sysname == "Darwin" else 1024
"""getrusage(2): bytes on macOS, kilobytes on Linux."""


def ending_of(status: int, rusage: dict[str, float] | None = None) -> Ending:
    """Read a wait status."""
    if os.WIFSIGNALED(status):
        return Ending(signal=os.WTERMSIG(status), core=os.WCOREDUMP(status), rusage=rusage or {})
    return Ending(code=os.WEXITSTATUS(status), rusage=rusage or {})
