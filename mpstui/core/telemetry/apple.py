"""The sources of a Mac, the preferred one first."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from .source import Commands, Source
from .sources.host import HostCpu
from .sources.ioreg import IoregAccelerator, IoregClients
from .sources.macmon import Macmon, MacmonMissing
from .sources.rusage import Footprint
from .sources.sysctl import SysctlIdentity, SysctlMemory
from .sources.thermal import Thermal
from .sources.vm_stat import VmStat


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
