"""Show the progress of a transfer to another machine, and let ctrl+c cancel it."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator

from ..core.hosts.progress import Progress
from .session import say_lines, say_over

_LINE_SECONDS = 30.0
"""Time between two progress lines if standard error is not a terminal."""


@contextlib.contextmanager
def carried(cancel: Callable[[], object]) -> Iterator[Callable[[Progress], None]]:
    """Yield a function to report progress with. Ctrl+c calls ``cancel`` and waits; a second one ends this program."""

    def interrupted(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        cancel()

    teller = _Teller()
    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield teller.tell
    finally:
        signal.signal(signal.SIGINT, before)
        teller.end()


class _Teller:
    """Progress on standard error: one line, redrawn, on a terminal; else a new line now and then."""

    def __init__(self) -> None:
        self._changes = sys.stderr.isatty()
        self._last = Progress("")
        self._told_at = 0.0

    def tell(self, now: Progress) -> None:
        is_new, moment = now.doing != self._last.doing, time.monotonic()
        self._last = now
        if self._changes:
            say_over(now.sentence)
        elif is_new or moment - self._told_at >= _LINE_SECONDS:
            self._told_at = moment
            say_lines(now.sentence, beside=True)

    def end(self) -> None:
        """Clear the line for what is printed next."""
        if self._changes and self._last.doing:
            say_over("")
