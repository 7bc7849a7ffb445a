"""The sources of a Mac, the preferred one first."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from mpstui.core.telemetry.source import Commands
from mpstui.core.telemetry.source import Source
from mpstui.core.telemetry.sources.host import HostCpu
from mpstui.core.telemetry.sources.ioreg_accelerator import IoregAccelerator
from mpstui.core.telemetry.sources.ioreg_clients import IoregClients
from mpstui.core.telemetry.sources.macmon import Macmon, MacmonMissing
from mpstui.core.telemetry.sources.rusage import Footprint
from mpstui.core.telemetry.sources.sysctl import SysctlIdentity, SysctlMemory
from mpstui.core.telemetry.sources.thermal import Thermal
from mpstui.core.telemetry.sources.vm_stat import VmStat


def apple_sources(commands: Commands, which: Callable[[str], str | None] = shutil.which) -> list[Source]:
    """macOS, without root. ``macmon`` joins where it is installed; where it is not, it says so."""
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
    return [*sources, MacmonMissing() if macmon is None else Macmon(commands, macmon)]
