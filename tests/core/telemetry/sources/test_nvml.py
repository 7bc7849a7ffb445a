"""The NVIDIA source against a stand-in for the binding in which any call can fail."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpstui.core.telemetry.source import Host, SourceError, SourceRequest
from mpstui.core.telemetry.sources.nvml import Nvml, sources


class NVMLError(Exception):
    """As the binding's."""


def binding(**overrides: Callable[..., Any]) -> SimpleNamespace:
    """A binding with one card on which two processes run."""
    calls: dict[str, Any] = {
        "NVMLError": NVMLError,
        "NVML_TEMPERATURE_GPU": 0,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: b"NVIDIA T4",
        "nvmlDeviceGetUUID": lambda handle: "GPU-1",
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=16_000, used=9_000, free=7_000),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=88, memory=40),
        "nvmlDeviceGetTemperature": lambda handle, sensor: 61,
        "nvmlDeviceGetPowerUsage": lambda handle: 65_500,
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 70_000,
        "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1400, 2: 5000}[kind],
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x44,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
            SimpleNamespace(pid=7, usedGpuMemory=4_000),
            SimpleNamespace(pid=8, usedGpuMemory=1_000),
        ],
    }
    return SimpleNamespace(**(calls | overrides))


def fail(*arguments: object) -> Any:
    raise NVMLError("Not Supported")


def test_a_card_is_read_whole() -> None:
    (gpu,) = Nvml(binding).read(SourceRequest()).gpus
    assert (gpu.name, gpu.uuid, gpu.busy_percent) == ("NVIDIA T4", "GPU-1", 88)
    assert (gpu.memory_used_bytes, gpu.memory_total_bytes) == (9_000, 16_000)
    assert (gpu.power_watts, gpu.power_limit_watts, gpu.temperature_celsius) == (65.5, 70.0, 61)
    assert (gpu.clock_mhz, gpu.memory_clock_mhz) == (1400, 5000)
    assert gpu.throttle_reasons == ("hardware thermal slowdown", "power cap")
    assert gpu.is_throttled


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        ("nvmlDeviceGetMemoryInfo", ("memory_used_bytes", "memory_total_bytes")),
        ("nvmlDeviceGetUtilizationRates", ("busy_percent",)),
        ("nvmlDeviceGetPowerUsage", ("power_watts",)),
        ("nvmlDeviceGetTemperature", ("temperature_celsius",)),
        ("nvmlDeviceGetClockInfo", ("clock_mhz", "memory_clock_mhz")),
        ("nvmlDeviceGetCurrentClocksThrottleReasons", ("throttle_reasons", "is_throttled")),
        ("nvmlDeviceGetName", ("name",)),
    ],
)
def test_one_unsupported_call_blanks_its_own_fields_alone(function: str, fields: tuple[str, ...]) -> None:
    whole = Nvml(binding).read(SourceRequest()).gpus[0]
    facts = Nvml(lambda: binding(**{function: fail})).read(SourceRequest())
    for name in whole.__slots__:
        value = getattr(facts.gpus[0], name)
        assert value == (None if name in fields else getattr(whole, name)), name
    assert all("Not Supported" in facts.reasons[f"gpu0.{name}"] for name in fields)


def test_a_function_that_the_binding_lacks_is_unknown() -> None:
    old = binding()
    del old.nvmlDeviceGetCurrentClocksThrottleReasons
    assert Nvml(lambda: old).read(SourceRequest()).gpus[0].throttle_reasons is None


def test_memory_of_the_wanted_processes_is_summed_over_cards() -> None:
    facts = Nvml(lambda: binding(nvmlDeviceGetCount=lambda: 2)).read(SourceRequest({"run": (7, 9)}))
    assert {pid: process.gpu_memory_bytes for pid, process in facts.processes.items()} == {7: 8_000}


@pytest.mark.parametrize("hidden", [None, 2**64 - 1])
def test_memory_that_the_driver_hides_is_unknown(hidden: int | None) -> None:
    listed = lambda handle: [SimpleNamespace(pid=7, usedGpuMemory=hidden)]  # noqa: E731
    facts = Nvml(lambda: binding(nvmlDeviceGetComputeRunningProcesses=listed)).read(SourceRequest({"run": (7,)}))
    assert facts.processes[7].gpu_memory_bytes is None
    assert facts.reasons["gpu_memory_bytes"]


def missing() -> Any:
    raise ModuleNotFoundError("No module named 'pynvml'")


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (missing, "pip install 'mpstui"),
        (lambda: binding(nvmlInit=fail), "driver does not answer"),
        (lambda: binding(nvmlDeviceGetCount=fail), "lists no cards"),
    ],
)
def test_nothing_to_read_has_its_reason(load: Callable[[], Any], words: str) -> None:
    with pytest.raises(SourceError, match=words):
        Nvml(load).read(SourceRequest())


def test_the_driver_is_asked_anew_after_it_was_lost() -> None:
    started: list[int] = []
    lost = [NVMLError("GPU is lost")]

    def count() -> int:
        if lost:
            raise lost.pop()
        return 1

    source = Nvml(lambda: binding(nvmlInit=lambda: started.append(1), nvmlDeviceGetCount=count, nvmlShutdown=fail))
    with pytest.raises(SourceError):
        source.read(SourceRequest())
    assert len(source.read(SourceRequest()).gpus) == 1
    assert len(started) == 2


def test_a_card_that_fell_off_the_bus_does_not_hide_the_others() -> None:
    def handle(index: int) -> int:
        if index == 1:
            raise NVMLError("GPU is lost")
        return index

    facts = Nvml(lambda: binding(nvmlDeviceGetCount=lambda: 3, nvmlDeviceGetHandleByIndex=handle)).read(SourceRequest())
    assert [gpu.index for gpu in facts.gpus] == [0, 2]
    assert "GPU is lost" in facts.reasons["gpu1.busy_percent"]
    with pytest.raises(SourceError, match="lists no cards: Not Supported"):
        Nvml(lambda: binding(nvmlDeviceGetHandleByIndex=fail)).read(SourceRequest())
    assert Nvml(lambda: binding(nvmlDeviceGetCount=lambda: 0)).read(SourceRequest()).gpus == ()


@pytest.mark.parametrize("told", [fail, lambda handle: SimpleNamespace(total=0, used=0, free=0)])
def test_a_card_that_shares_the_hosts_memory_tells_no_total(told: Callable[..., Any]) -> None:
    facts = Nvml(lambda: binding(nvmlDeviceGetMemoryInfo=told, nvmlDeviceGetPowerUsage=fail)).read(SourceRequest())
    (gpu,) = facts.gpus
    assert (gpu.memory_used_bytes, gpu.memory_total_bytes, gpu.power_watts, gpu.busy_percent) == (None, None, None, 88)
    assert facts.reasons["gpu0.memory_total_bytes"].startswith("nvmlDeviceGetMemoryInfo: ")


def test_a_name_that_is_no_text_costs_the_name_alone() -> None:
    def broken(handle: object) -> str:
        return b"\xff".decode("utf-8")

    facts = Nvml(lambda: binding(nvmlDeviceGetName=broken)).read(SourceRequest())
    assert (facts.gpus[0].name, facts.gpus[0].busy_percent) == (None, 88)


@pytest.mark.parametrize("driver", [(), ("proc/driver/nvidia",), ("dev/nvidiactl",)])
def test_its_binding_is_asked_for_only_where_there_is_a_driver(
    driver: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    for path in driver:
        (tmp_path / path).mkdir(parents=True)
    (source,) = sources(Host(platform="linux", root=tmp_path))
    with pytest.raises(SourceError, match="mpstui.nvidia" if driver else "there is no NVIDIA driver"):
        source.read(SourceRequest())
