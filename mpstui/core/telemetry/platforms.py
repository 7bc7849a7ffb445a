"""The sampler for the machine at hand."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from .reading import Clock
from .sampler import Sampler
from .source import Commands, Source
from .trees import ProcessTable


def default_sampler(platform: str = sys.platform, root: Path = Path("/"), clock: Clock = time) -> Sampler:
    """The sampler for this machine; close it when done."""
    commands = Commands()
    return Sampler(_sources(platform, root, commands), clock, processes=ProcessTable(), on_close=commands.close)


def _sources(platform: str, root: Path, commands: Commands) -> list[Source]:
    # The other platform's sources cost their import (ctypes, property lists) and are of no use here.
    if platform == "darwin":
        from .apple import apple_sources

        return apple_sources(commands)
    from .linux import linux_sources

    return linux_sources(root)
