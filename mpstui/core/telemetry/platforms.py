"""The sampler for the machine at hand."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from mpstui.core.telemetry.source import Commands
from mpstui.core.telemetry.reading import Clock
from mpstui.core.telemetry.sampler import Sampler
from mpstui.core.telemetry.source import Source
from mpstui.core.telemetry.trees import ProcessTable


def default_sampler(platform: str = sys.platform, root: Path = Path("/"), clock: Clock = time) -> Sampler:
    """The sampler for this machine; close it when done."""
    commands = Commands()
    return Sampler(_sources(platform, root, commands), clock, processes=ProcessTable(), on_close=commands.close)


def _sources(platform: str, root: Path, commands: Commands) -> list[Source]:
    # The other platform's sources cost their import (ctypes, property lists) and are of no use here.
    if platform == "darwin":
        from mpstui.core.telemetry.apple import apple_sources

        return apple_sources(commands)
    from mpstui.core.telemetry.linux import linux_sources

    return linux_sources(root)
