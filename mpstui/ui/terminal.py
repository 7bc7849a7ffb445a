"""The terminal itself: whether it is still there, and how to restore it if everything else has failed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
import termios
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

_GRACE_SECONDS = 3.0
_RESTORE = (
    "\x1b[<u"  # the keyboard protocol back to plain
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # no mouse
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l\x1b[?2026l"  # no paste brackets, focus or size reports, no held-back output
    "\x1b]0;\a\x1b[23;0t"  # the title
    "\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m"  # wrapping, the main screen, the cursor, no colours
)


class Terminal:
    """A terminal, as it was before the screen took it over."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.__stdin__.fileno() if descriptor is None and sys.__stdin__ else descriptor or 0
        self._before: list[Any] | None = None
        self._ordered: float | None = None
        self._signal = signal.SIGTERM
        with contextlib.suppress(termios.error):
            self._before = termios.tcgetattr(self._descriptor)

    def gone(self) -> bool:
        """True if it hung up: reading its settings then fails."""
        try:
            termios.tcgetattr(self._descriptor)
        except termios.error as error:
            return (
                self._before is not None or error.args[0] == errno.EIO
            )  # it hung up before we began, or never was one
        return False

    def overdue(self) -> bool:
        """True if we are still running some seconds after a signal to end: the terminal must have stalled."""
        return self._ordered is not None and time.monotonic() - self._ordered > _GRACE_SECONDS

    def end_on_signals(self, leave: Callable[[], object]) -> None:
        """Have SIGTERM and SIGHUP end the app cleanly, even if SIGHUP was ignored. Needs the running loop."""
        loop = asyncio.get_running_loop()

        def ordered(number: int, frame: FrameType | None) -> None:
            self._signal = signal.Signals(number)
            if self._ordered is None:
                self._ordered = time.monotonic()
                loop.call_soon_threadsafe(leave)

        for number in (signal.SIGTERM, signal.SIGHUP):
            # Not the loop's own handler: that waits for the loop, which a stalled terminal has blocked.
            signal.signal(number, ordered)

    def exit_code(self) -> int:
        """128 plus the signal that ended us, as in a shell; 0 if none did."""
        return 128 + self._signal if self._ordered is not None else 0

    def die(self) -> None:
        """Restore the terminal as far as possible, and exit at once: nothing here needs to be saved."""
        with contextlib.suppress(OSError, termios.error, ValueError):
            os.set_blocking(2, False)
            os.write(2, _RESTORE.encode())
        if self._before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
        os._exit(self.exit_code() or 128 + signal.SIGHUP)
