"""Waiting for conditions in tests, never for time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LONGEST_PAUSE_SECONDS = 0.1


def wait_until(
    condition: Callable[[], T], *, timeout: float = 60.0, what: str = "the condition", every: float = 0.02
) -> T:
    """Ask ``every`` so many seconds until the answer is truthy, and return it; what takes long is asked more seldom.

    A file that is not there yet is a no.

    Raises:
        AssertionError: the time is up.
    """
    deadline, pause = time.monotonic() + timeout, every
    while True:
        with contextlib.suppress(FileNotFoundError):
            found = condition()
            if found:
                return found
        assert time.monotonic() < deadline, f"{what} did not come about within {timeout:.0f} s"
        time.sleep(pause)
        pause = max(every, min(1.1 * pause, LONGEST_PAUSE_SECONDS))
