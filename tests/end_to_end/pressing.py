"""Waiting on a screen for what a real supervisor does, which takes longer than drawing."""

from __future__ import annotations

import time

from mpstui.wire.rundir import RunDir
from tests.ui.driving import Driver

PATIENCE_SECONDS = 180.0


async def second_attempt(driver: Driver, run: RunDir) -> None:
    """Let the screen live until the run is in its second attempt."""
    until = time.monotonic() + PATIENCE_SECONDS
    while run.attempt_numbers() != [1, 2]:
        assert time.monotonic() < until, f"never a second attempt\n{driver.text}"
        await driver.pilot.pause(0.05)
