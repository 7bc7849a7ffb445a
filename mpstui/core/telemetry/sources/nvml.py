"""NVIDIA GPUs through NVML (the ``nvidia-ml-py`` binding, imported as ``pynvml`` when first read).

Any single call may be unsupported on a card, a partition or a driver; then only its own field becomes unknown.
Function names without ``_v2`` are used throughout: the binding picks what the driver has. The busy share is the part of
the driver's last sampling period in which any kernel ran. Old bindings return names as bytes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..model import GpuSample, ProcessFacts
from ..source import Facts, Host, Source, SourceError, SourceRequest

# nvml.h, nvmlClocksEventReasons: bits that mean that the card runs slower than it could, the most harmful first.
_THROTTLE_BITS = (
    (0x40, "hardware thermal slowdown"),
    (0x80, "hardware power brake"),
    (0x08, "hardware slowdown"),
    (0x20, "software thermal slowdown"),
    (0x04, "power cap"),
)
_HURTING_BITS = 0x40 | 0x80 | 0x08 | 0x20
_NO_VALUE = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE


_DRIVER = ("proc/driver/nvidia", "dev/nvidiactl", "dev/dxg")
"""Files that an NVIDIA driver creates; the last one is for Windows's driver, seen from WSL."""


def sources(host: Host) -> list[Source]:
    def has_driver() -> bool:
        return any((host.root / one).exists() for one in _DRIVER)

    return [] if host.is_mac else [Nvml(has_driver=has_driver)]


class Nvml(Source):
    """Every card, and the GPU memory of each watched process. A lost card can hang the driver."""

    name = "NVML"
    gives = ("gpus", "gpu_memory_bytes")

    def __init__(
        self,
        load: Callable[[], Any] = lambda: importlib.import_module("pynvml"),
        has_driver: Callable[[], bool] = lambda: True,
    ) -> None:
        self._load, self._has_driver = load, has_driver
        self._nvml: Any = None

    def read(self, request: SourceRequest) -> Facts:
        nvml = self._ready()
        reasons: dict[str, str] = {}
        handles = self._handles(nvml, reasons)
        gpus = tuple(_Card(nvml, handle, index, reasons).sample() for index, handle in handles.items())
        return Facts(gpus=gpus, processes=_processes(nvml, tuple(handles.values()), request, reasons), reasons=reasons)

    def _handles(self, nvml: Any, reasons: dict[str, str]) -> dict[int, Any]:
        """Return the cards that answer, by index: one that fell off the bus does not hide the others."""
        handles: dict[int, Any] = {}
        try:
            for index in range(nvml.nvmlDeviceGetCount()):
                try:
                    handles[index] = nvml.nvmlDeviceGetHandleByIndex(index)
                except nvml.NVMLError as error:
                    lost = error
                    reasons[f"gpu{index}.busy_percent"] = f"nvmlDeviceGetHandleByIndex: {error}"
            if reasons and not handles:
                raise lost
        except nvml.NVMLError as error:
            self.close()  # the driver was reloaded, or the only card is gone
            raise SourceError(f"the NVIDIA driver lists no cards: {error}") from error
        return handles

    def close(self) -> None:
        nvml, self._nvml = self._nvml, None
        if nvml is not None:
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                return  # it was shut down already

    def _ready(self) -> Any:
        if self._nvml is None:
            try:
                nvml = self._load()
            except ImportError as error:
                if not self._has_driver():
                    raise SourceError("there is no NVIDIA driver") from error
                raise SourceError("nvidia-ml-py is not installed; pip install 'mpstui[nvidia]'") from error
            try:
                nvml.nvmlInit()
            except nvml.NVMLError as error:
                raise SourceError(f"the NVIDIA driver does not answer: {error}") from error
            self._nvml = nvml
        return self._nvml


class _Card:
    """The calls for one card, each of which may fail by itself."""

    def __init__(self, nvml: Any, handle: Any, index: int, reasons: dict[str, str]) -> None:
        self._nvml = nvml
        self._handle = handle
        self._index = index
        self._reasons = reasons

    def sample(self) -> GpuSample:
        nvml = self._nvml
        memory = self._memory()
        utilization = self._ask("nvmlDeviceGetUtilizationRates", "busy_percent")
        throttling = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", "throttle_reasons", "is_throttled")
        return GpuSample(
            index=self._index,
            vendor="nvidia",
            name=_text(self._ask("nvmlDeviceGetName", "name")),
            uuid=_text(self._ask("nvmlDeviceGetUUID", "uuid")),
            busy_percent=getattr(utilization, "gpu", None),
            memory_used_bytes=getattr(memory, "used", None),
            memory_total_bytes=getattr(memory, "total", None),
            temperature_celsius=self._ask(
                "nvmlDeviceGetTemperature", "temperature_celsius", arguments=(nvml.NVML_TEMPERATURE_GPU,)
            ),
            power_watts=_watts(self._ask("nvmlDeviceGetPowerUsage", "power_watts")),
            power_limit_watts=_watts(self._ask("nvmlDeviceGetEnforcedPowerLimit", "power_limit_watts")),
            clock_mhz=self._ask("nvmlDeviceGetClockInfo", "clock_mhz", arguments=(nvml.NVML_CLOCK_SM,)),
            memory_clock_mhz=self._ask("nvmlDeviceGetClockInfo", "memory_clock_mhz", arguments=(nvml.NVML_CLOCK_MEM,)),
            throttle_reasons=None
            if throttling is None
            else tuple(word for bit, word in _THROTTLE_BITS if throttling & bit),
            is_throttled=None if throttling is None else bool(throttling & _HURTING_BITS),
        )

    def _memory(self) -> Any:
        """Return the use of the card's own memory; None if it shares the host's, and so refuses or returns zeros."""
        names = ("memory_used_bytes", "memory_total_bytes")
        memory = self._ask("nvmlDeviceGetMemoryInfo", *names)
        if memory is None or memory.total:
            return memory
        self._refuse("nvmlDeviceGetMemoryInfo", "the card has no memory of its own", names)
        return None

    def _refuse(self, function: str, why: object, names: Sequence[str]) -> None:
        self._reasons.update((f"gpu{self._index}.{name}", f"{function}: {why}") for name in names)

    def _ask(self, function: str, *names: str, arguments: tuple[Any, ...] = ()) -> Any:
        try:
            return getattr(self._nvml, function)(self._handle, *arguments)
        except (self._nvml.NVMLError, AttributeError, TypeError, UnicodeDecodeError) as error:
            # Besides the driver's own refusals: a binding of another version, a name that is not text.
            self._refuse(function, error, names)
            return None


def _processes(
    nvml: Any, handles: Sequence[Any], request: SourceRequest, reasons: dict[str, str]
) -> Mapping[int, ProcessFacts]:
    """Return GPU memory by process id, summed over cards; in a container the driver may use another PID namespace."""
    wanted = frozenset(request.pids())
    used: dict[int, int | None] = {}
    for handle in handles if wanted else ():
        try:
            listed = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except nvml.NVMLError as error:
            reasons["gpu_memory_bytes"] = f"nvmlDeviceGetComputeRunningProcesses: {error}"
            return {}
        for process in listed:
            if process.pid in wanted:
                known, more = used.get(process.pid, 0), process.usedGpuMemory
                used[process.pid] = None if known is None or more in (None, _NO_VALUE) else known + more
    if any(memory is None for memory in used.values()):
        reasons["gpu_memory_bytes"] = "the NVIDIA driver does not report the memory of single processes here"
    return {pid: ProcessFacts(gpu_memory_bytes=memory) for pid, memory in used.items()}


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts * 1e-3


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else None
