"""Time as a parameter: the wall clock for records, the monotonic one for everything that waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Clock(NamedTuple):
    """Two clocks. Only differences of ``monotonic`` decide anything: a wall clock set back by an hour stops nothing."""

    wall: Callable[[], float] = time.time
    """Unix seconds."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds; on macOS it stands still while the machine sleeps (CPython issue 86273)."""
    sleep: Callable[[float], None] = time.sleep
