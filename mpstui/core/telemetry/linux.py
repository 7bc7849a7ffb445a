"""The sources of a Linux machine, the preferred one first."""

from __future__ import annotations

import os
from pathlib import Path

from mpstui.core.telemetry.source import Source
from mpstui.core.telemetry.sources.cgroup import ControlGroup
from mpstui.core.telemetry.sources.cpuinfo import CpuInfo
from mpstui.core.telemetry.sources.host import HostCpu, HostMemory
from mpstui.core.telemetry.sources.nvml import Nvml
from mpstui.core.telemetry.sources.pressure import MemoryPressure
from mpstui.core.telemetry.sources.smaps import ProportionalMemory


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
