"""SIGTERM and SIGINT become a flag that the loop reads between two steps; a second one ends the process at once."""

from __future__ import annotations

import os
import signal
from types import FrameType


class Control:
    """Whether somebody asked this process to end."""

    def __init__(self) -> None:
        self.stop_requested = False
        self.signal_name: str | None = None

    def install(self) -> Control:
        """Take over SIGTERM and SIGINT. Must run in the main thread, before anything slow is imported."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        return self

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.stop_requested:
            os._exit(128 + number)
        self.stop_requested = True
        self.signal_name = signal.Signals(number).name
