"""The sources of a Linux machine, the preferred one first."""

from __future__ import annotations

import os
from pathlib import Path

from .source import Source
from .sources.cgroup import ControlGroup
from .sources.cpuinfo import CpuInfo
from .sources.host import HostCpu, HostMemory
from .sources.nvml import Nvml
from .sources.pressure import MemoryPressure
from .sources.smaps import ProportionalMemory


def linux_sources(root: Path = Path("/")) -> list[Source]:
    """Linux below ``root``, with NVIDIA cards where the binding and the driver are there."""
    return [
        CpuInfo(root),
        HostCpu(),
        HostMemory(),
        MemoryPressure(root),
        ControlGroup(root),
        ProportionalMemory(root, os.sysconf("SC_PAGE_SIZE")),
        Nvml(),
    ]
