"""What the macOS kernel says about memory pressure, swap and limits (``sysctl``), and which machine this is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..model import HostFacts, PressureLevel
from ..source import Facts, Host, ProgramSource, Source, SourceRequest

_PROGRAM = "/usr/sbin/sysctl"
# With -i an unknown key is left out and the exit code stays 0; without it one unknown key hides the others.
MEMORY_COMMAND = (
    _PROGRAM,
    "-i",
    "hw.memsize",
    "vm.swapusage",
    "kern.memorystatus_vm_pressure_level",
    "iogpu.wired_limit_mb",
)
IDENTITY_COMMAND = (
    _PROGRAM,
    "-i",
    "machdep.cpu.brand_string",
    "hw.model",
    "hw.logicalcpu",
    "hw.perflevel0.physicalcpu",
    "hw.perflevel1.physicalcpu",
)
_LINE = re.compile(r"^([\w.]+)(?:: | = |=)(.*)\n", re.MULTILINE)
_SWAP = re.compile(r"(total|used) = (\d+(?:[.,]\d+)?)([KMGT])\b")
_SCALE = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_PRESSURE: dict[int, PressureLevel] = {1: "normal", 2: "warn", 4: "critical"}


def parse_lines(text: str) -> dict[str, str]:
    """Return the ``name: value`` lines as a mapping; a last line without a newline may be cut short and is left out."""
    return {name: value.strip() for name, value in _LINE.findall(text)}


def parse_memory(text: str) -> HostFacts:
    """Return total memory, swap, pressure and the wired limit; a limit of 0 is macOS's default, which is unknown."""
    values = parse_lines(text)
    swap = {
        word: int(float(size.replace(",", ".")) * _SCALE[unit])
        for word, size, unit in _SWAP.findall(values.get("vm.swapusage", ""))
    }
    wired_limit = _integer(values, "iogpu.wired_limit_mb")
    return HostFacts(
        memory_total_bytes=_integer(values, "hw.memsize"),
        swap_total_bytes=swap.get("total"),
        swap_used_bytes=swap.get("used"),
        pressure=_PRESSURE.get(_integer(values, "kern.memorystatus_vm_pressure_level") or 0),
        wired_limit_bytes=wired_limit * 2**20 if wired_limit else None,
    )


def parse_identity(text: str) -> HostFacts:
    """Return chip, model and core counts. Level 0 is the faster kind of core, level 1 the slower."""
    values = parse_lines(text)
    return HostFacts(
        chip=values.get("machdep.cpu.brand_string") or None,
        machine_model=values.get("hw.model") or None,
        cpu_count=_integer(values, "hw.logicalcpu"),
        cpu_performance_cores=_integer(values, "hw.perflevel0.physicalcpu"),
        cpu_efficiency_cores=_integer(values, "hw.perflevel1.physicalcpu"),
    )


def sources(host: Host) -> list[Source]:
    return [SysctlIdentity(host.commands.run), SysctlMemory(host.commands.run)] if host.is_mac else []


class SysctlMemory(ProgramSource):
    """Pressure, swap and limits: they predict a freeze, which the allocator's own counters do not."""

    name = "sysctl memory"
    gives = ("memory_total_bytes", "swap_total_bytes", "swap_used_bytes", "pressure", "wired_limit_bytes")
    period_seconds = 3.0
    verified = False

    def read(self, request: SourceRequest) -> Facts:
        host = parse_memory(self.run(MEMORY_COMMAND, self.timeout_seconds))
        reasons = {"wired_limit_bytes": "iogpu.wired_limit_mb is at the macOS default, which only Metal knows"}
        return Facts(host=host, reasons=reasons if host.wired_limit_bytes is None else {})


class SysctlIdentity(ProgramSource):
    """Chip and cores, which do not change while we run."""

    name = "sysctl identity"
    gives = ("chip", "machine_model", "cpu_count", "cpu_performance_cores", "cpu_efficiency_cores")
    period_seconds = 24 * 3600.0
    verified = False

    def read(self, request: SourceRequest) -> Facts:
        return Facts(host=parse_identity(self.run(IDENTITY_COMMAND, self.timeout_seconds)))


def _integer(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None
