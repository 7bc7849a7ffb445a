"""What is known about the machine and about one trainer's processes at one moment.

Every quantity may be None, which means unknown and never zero. ``reasons`` says why a field is unknown, ``provenance``
names the source that gave a known one. The metadata of each field gives the range, and the total, within which a value
makes sense: ``reading.sensible`` refuses any other, whichever source it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..model.snapshot import Moment

PressureLevel = Literal["normal", "warn", "critical"]
ThermalLevel = Literal["nominal", "moderate", "heavy", "trapping", "sleeping"]

NO_SOURCE = "no source on this machine gives it"


@dataclass(frozen=True, slots=True)
class Limits:
    """The closed range in which a quantity makes sense, and its unit in the sentence that refuses a value."""

    low: float
    high: float
    unit: str


PERCENT = {"limits": Limits(0, 100, "%")}
# Integers of the IORegistry that stand for "none" sit near 2**64; no machine has eight petabytes of memory.
BYTES = {"limits": Limits(0, 2**53, "bytes")}
BYTES_OF_MEMORY = {**BYTES, "within": "memory_total_bytes"}
BYTES_OF_SWAP = {**BYTES, "within": "swap_total_bytes"}
CAPACITY = {"limits": Limits(1, 2**53, "bytes")}
CELSIUS = {"limits": Limits(1, 150, "degrees Celsius")}
WATTS = {"limits": Limits(0, 100_000, "W")}
MEGAHERTZ = {"limits": Limits(0, 20_000, "MHz")}
COUNT = {"limits": Limits(1, 100_000, "")}
CORES_PERCENT = {"limits": Limits(0, 10_000_000, "%")}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """One accelerator. ``index`` is the source's own order, which for NVIDIA is PCI order and not CUDA's.

    Samples of several sources are the same card if they have the same ``vendor`` (the source's name if it gives none)
    and the same ``uuid``, or the same index where one of them gives no ``uuid``.
    ``busy_percent`` is the share of time in which anything ran, at whatever clock: it says busy, not fast.
    ``memory_used_bytes`` counts every process of the machine. Unified memory has no total of its own.
    """

    index: int = 0
    vendor: str | None = None
    name: str | None = None
    uuid: str | None = None
    cores: int | None = field(default=None, metadata=COUNT)
    busy_percent: float | None = field(default=None, metadata=PERCENT)
    memory_used_bytes: int | None = field(default=None, metadata=BYTES_OF_MEMORY)
    memory_allocated_bytes: int | None = field(default=None, metadata=BYTES)
    memory_total_bytes: int | None = field(default=None, metadata=CAPACITY)
    temperature_celsius: float | None = field(default=None, metadata=CELSIUS)
    power_watts: float | None = field(default=None, metadata=WATTS)
    power_limit_watts: float | None = field(default=None, metadata=WATTS)
    clock_mhz: float | None = field(default=None, metadata=MEGAHERTZ)
    memory_clock_mhz: float | None = field(default=None, metadata=MEGAHERTZ)
    throttle_reasons: tuple[str, ...] | None = None
    is_throttled: bool | None = None
    """Slowed down by heat or its power supply, but not by a power cap, which is normal for a card under full load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """The machine as a whole; a source fills in what it knows.

    ``memory_used_bytes`` on macOS is what Activity Monitor calls Memory Used, on Linux total minus available.
    ``wired_limit_bytes`` is the ``iogpu.wired_limit_mb`` that somebody has set; at its default it is unknown.
    ``cpu_count`` counts logical cores. ``power_watts`` is that of the whole machine. ``cgroup_*`` are known where the
    monitor's own control group has a limit.
    """

    chip: str | None = None
    machine_model: str | None = None
    cpu_count: int | None = field(default=None, metadata=COUNT)
    cpu_performance_cores: int | None = field(default=None, metadata=COUNT)
    cpu_efficiency_cores: int | None = field(default=None, metadata=COUNT)
    cpu_percent: float | None = field(default=None, metadata=PERCENT)
    cpu_temperature_celsius: float | None = field(default=None, metadata=CELSIUS)
    cpu_power_watts: float | None = field(default=None, metadata=WATTS)
    power_watts: float | None = field(default=None, metadata=WATTS)
    memory_total_bytes: int | None = field(default=None, metadata=CAPACITY)
    memory_used_bytes: int | None = field(default=None, metadata=BYTES_OF_MEMORY)
    memory_available_bytes: int | None = field(default=None, metadata=BYTES_OF_MEMORY)
    swap_total_bytes: int | None = field(default=None, metadata=BYTES)
    swap_used_bytes: int | None = field(default=None, metadata=BYTES_OF_SWAP)
    pressure: PressureLevel | None = None
    pressure_percent: float | None = field(default=None, metadata=PERCENT)
    thermal: ThermalLevel | None = None
    wired_limit_bytes: int | None = field(default=None, metadata=CAPACITY)
    cgroup_limit_bytes: int | None = field(default=None, metadata=CAPACITY)
    cgroup_used_bytes: int | None = field(default=None, metadata=BYTES)
    cgroup_cpu_limit: float | None = field(default=None, metadata={"limits": Limits(0.001, 100_000, "cores")})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """One process. ``cpu_seconds`` and ``gpu_seconds`` are counters since its start.

    ``identity`` stays the same while the process lives, and differs if its id is reused. The creation time will not do:
    it moves when the system's clock is set.
    """

    parent: int | None = None
    identity: int | None = None
    rss_bytes: int | None = field(default=None, metadata=BYTES)
    footprint_bytes: int | None = field(default=None, metadata=BYTES)
    gpu_memory_bytes: int | None = field(default=None, metadata=BYTES)
    cpu_seconds: float | None = field(default=None, metadata={"limits": Limits(0, 1e12, "s")})
    gpu_seconds: float | None = field(default=None, metadata={"limits": Limits(0, 1e12, "s")})


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSample(HostFacts):
    """The machine at ``time`` (Unix seconds).

    ``provenance`` and ``reasons`` are keyed by field name; a GPU's fields by ``"gpu0.busy_percent"`` and so on.
    """

    time: Moment
    gpus: tuple[GpuSample, ...] = ()
    host: str | None = None
    """The name of the machine, if it is another one."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def usable_memory_bytes(self) -> int | None:
        """Memory that a process here can really get: the machine's, or the control group's limit if that is less."""
        known = [size for size in (self.memory_total_bytes, self.cgroup_limit_bytes) if size is not None]
        return min(known) if known else None

    @property
    def memory_used_of_usable_bytes(self) -> int | None:
        """What counts against :attr:`usable_memory_bytes`: the control group's use if its limit is the tighter one."""
        limit = self.cgroup_limit_bytes
        limited = limit is not None and limit == self.usable_memory_bytes
        return self.cgroup_used_bytes if limited else self.memory_used_bytes

    def why_unknown(self, name: str) -> str:
        """Return why field ``name`` (or ``gpu0.name``) is None, in words for a person."""
        general = self.reasons.get("gpus", NO_SOURCE) if name.startswith("gpu") else NO_SOURCE
        return self.reasons.get(name, general)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSample:
    """One trainer with all its descendants at ``time`` (Unix seconds).

    ``rss_bytes`` counts shared pages once per process, so it is an upper bound if workers share data; on macOS it
    misses GPU memory as well. ``footprint_bytes`` can be added up correctly: it is Activity Monitor's Memory on macOS,
    the proportional set size with swap on Linux. ``cpu_percent`` is 100 per busy core. ``gpu_percent`` is the share of
    wall time in which the tree's work ran on the GPU.
    """

    time: Moment
    process_count: int | None = None
    rss_bytes: int | None = field(default=None, metadata=BYTES)
    footprint_bytes: int | None = field(default=None, metadata=BYTES)
    gpu_memory_bytes: int | None = field(default=None, metadata=BYTES)
    gpu_percent: float | None = field(default=None, metadata=PERCENT)
    cpu_percent: float | None = field(default=None, metadata=CORES_PERCENT)
    provenance: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def why_unknown(self, name: str) -> str:
        """Return why field ``name`` is None, in words for a person."""
        return self.reasons.get(name, NO_SOURCE)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps ``first`` to ``last``, in which a training was slower than before (or was throttled)."""

    first: float
    last: float
