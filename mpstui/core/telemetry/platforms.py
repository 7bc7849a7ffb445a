"""Which sources a machine gets, the preferred one first."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mpstui.core.telemetry.command import Commands
from mpstui.core.telemetry.reading import Clock
from mpstui.core.telemetry.sampler import Sampler
from mpstui.core.telemetry.source import Source
from mpstui.core.telemetry.sources.cgroup import ControlGroup
from mpstui.core.telemetry.sources.cpuinfo import CpuInfo
from mpstui.core.telemetry.sources.host import HostCpu, HostMemory
from mpstui.core.telemetry.sources.ioreg_accelerator import IoregAccelerator
from mpstui.core.telemetry.sources.ioreg_clients import IoregClients
from mpstui.core.telemetry.sources.macmon import Macmon
from mpstui.core.telemetry.sources.nvml import Nvml
from mpstui.core.telemetry.sources.pressure import MemoryPressure
from mpstui.core.telemetry.sources.process_table import ProcessTable
from mpstui.core.telemetry.sources.rusage import Footprint
from mpstui.core.telemetry.sources.smaps import ProportionalMemory
from mpstui.core.telemetry.sources.sysctl import SysctlIdentity, SysctlMemory
from mpstui.core.telemetry.sources.thermal import Thermal
from mpstui.core.telemetry.sources.vm_stat import VmStat


def apple_sources(commands: Commands, which: Callable[[str], str | None] = shutil.which) -> list[Source]:
    """macOS, without root. ``macmon`` joins where it is installed."""
    run = commands.run
    sources: list[Source] = [
        SysctlIdentity(run),
        SysctlMemory(run),
        VmStat(run),
        HostCpu(),
        IoregAccelerator(run),
        IoregClients(run),
        Footprint(),
        Thermal(run),
    ]
    macmon = which("macmon")
    return sources if macmon is None else [*sources, Macmon(commands, macmon)]


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


def default_sampler(platform: str = sys.platform, root: Path = Path("/"), clock: Clock = time) -> Sampler:
    """The sampler for this machine; close it when done."""
    commands = Commands()
    sources: Sequence[Source] = apple_sources(commands) if platform == "darwin" else linux_sources(root)
    return Sampler(sources, clock, processes=ProcessTable(), on_close=commands.close)
