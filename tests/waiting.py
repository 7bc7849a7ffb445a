"""Waiting for conditions in tests, never for time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], *, timeout: float = 60.0, what: str = "the condition", every: float = 0.02
) -> T:
    """Ask ``every`` so many seconds until the answer is truthy, and return it.

    Raises:
        AssertionError: the time is up.
    """
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not come about within {timeout:.0f} s"
        time.sleep(every)
