"""``python -I -S backlog_process.py``: reads a long log and tells what it has learned; see `backlog.BacklogProcess`.

The task comes through standard input, the memory of the reader goes out through standard output: once a second while it
reads, and when it is near the end of the file. What is left is for the one who asked, with all that is added meanwhile.
"""

import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

if not __package__:
    # Appended, not put first: what lies beside the package must never stand in for the standard library.
    sys.path.append(str(Path(__file__).resolve().parents[3]))

from mpstui.core.follow.budget import Budget
from mpstui.core.runs.backlog import LENGTH
from mpstui.core.runs.carried import pack, unpack
from mpstui.core.runs.foreign import ForeignPoints

NICENESS = 2
"""A training, and the screen, come first; but somebody waits for the curve, for ten seconds once."""
NEAR_BYTES = 1 << 20
FIRST_TELL_SECONDS, TELL_SECONDS = 0.1, 1.0
"""The first curves are wanted at once; from then on each message costs the screen some milliseconds."""
_ONE_SLICE = 0.0


class Outlet:
    """Messages into a pipe whose reader may be slow: it is never waited for until the last."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting = b""
        os.set_blocking(descriptor, False)

    def flush(self) -> bool:
        """Write what the pipe takes; True when nothing waits any more. Raises BrokenPipeError: nobody listens."""
        try:
            while self._waiting:
                self._waiting = self._waiting[os.write(self._descriptor, self._waiting) :]
        except BlockingIOError:
            return False
        return True

    def tell(self, message: bytes) -> None:
        """Begin with a message; the one before has been written."""
        self._waiting = LENGTH.pack(len(message)) + message
        self.flush()

    def finish(self, message: bytes) -> None:
        """Write the last message, however long that takes."""
        os.set_blocking(self._descriptor, True)
        self.flush()
        self.tell(message)


def read_backlog(points: ForeignPoints, outlet: Outlet, monotonic: Callable[[], float] = time.monotonic) -> None:
    """Read until the end of the file is near, however it grows meanwhile."""
    told, pause = monotonic(), FIRST_TELL_SECONDS
    while points.look() and points.owed_bytes > NEAR_BYTES:
        points.read(Budget(_ONE_SLICE))
        if outlet.flush() and monotonic() - told >= pause:
            gc.collect()
            outlet.tell(pack(points.memory()))
            told, pause = monotonic(), min(2 * pause, TELL_SECONDS)
    outlet.finish(pack(points.memory()))


def main() -> int:
    """Do one task; 1 when nobody wants to know any more."""
    gc.disable()  # reading makes hardly any cycles, and looking for them among a million rows costs a tenth of the time
    os.nice(NICENESS)
    task = unpack(sys.stdin.buffer.read())
    points = ForeignPoints(Path(task["path"]), time.time, task["pattern"], attempt=task["attempt"])
    points.resume(task["memory"])
    try:
        read_backlog(points, Outlet(sys.stdout.fileno()))
    except BrokenPipeError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
