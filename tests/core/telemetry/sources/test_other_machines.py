"""What other machines print: Intel Macs, whole trees, small pages, missing keys, old kernels."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.core.telemetry.model import GpuSample, HostFacts
from mpstui.core.telemetry.source import SourceRequest
from mpstui.core.telemetry.sources import ioreg, macmon, sysctl, vm_stat
from mpstui.core.telemetry.sources.host import HostMemory
from mpstui.core.telemetry.sources.ioreg import parse_value
from mpstui.core.telemetry.sources.smaps import ProportionalMemory

INTEL_AND_AMD = """\
+-o IntelAccelerator  <class IntelAccelerator, id 0x1000004b0, registered, matched, active, busy 0 (5 ms), retain 90>
  | {
  |   "PerformanceStatistics" = {"Device Utilization %"=4,"textureCount"=811,"inUseSysMemoryBytes"=210000000}
  |   "model" = <"Intel UHD Graphics 630">
  | }
  |
+-o AMDRadeonX6000_AMDNavi14GraphicsAccelerator  <class AMDRadeonX6000, id 0x1000004c1, registered, retain 33>
    {
      "PerformanceStatistics" = {"vramUsedBytes"=900000000,"Device Utilization %"=61,"Temperature(C)"=63}
      "model" = <414d4420526164656f6e2050726f0000>
    }
"""


def test_of_two_gpus_the_busiest_is_shown_with_its_name_and_without_apples_memory() -> None:
    first, second = ioreg.parse_gpus(INTEL_AND_AMD)
    assert (first.name, first.busy_percent, first.memory_used_bytes, first.cores) == ("AMD Radeon Pro", 61, None, None)
    assert (second.name, second.busy_percent) == ("Intel UHD Graphics 630", 4)
    too_busy = INTEL_AND_AMD.replace('"Device Utilization %"=4', '"Device Utilization %"=173')
    assert ioreg.parse_gpus(too_busy)[0].busy_percent == 100


@pytest.mark.parametrize("text", ['<"cut', '<"cut"', "<6b1", "<zz>", "<"])
def test_data_that_is_cut_is_no_value(text: str) -> None:
    assert parse_value(text) is None


VM_STAT_INTEL = """\
Mach Virtual Memory Statistics: (page size of 4096 bytes)
Pages free:                              120000.
Pages wired down:                        500000.
Pages purgeable:                          20000.
"Translation faults":                 999999999.
Anonymous pages:                        1500000.
Pages stored in compressor:              700000.
Pages occupied by compressor:            300000.
Pages tagged:                                 0.
Bytes of compressed tags:                     0.
"""


def test_small_pages_and_lines_of_newer_systems() -> None:
    assert vm_stat.parse(VM_STAT_INTEL) == (1500000 - 20000 + 500000 + 300000) * 4096
    assert vm_stat.parse(VM_STAT_INTEL.replace("\n", "\r\n")) == vm_stat.parse(VM_STAT_INTEL)


def test_counters_that_make_no_memory_are_unknown_and_not_zero() -> None:
    empty = VM_STAT_INTEL.replace("1500000.", "0.").replace("500000.", "0.").replace("300000.", "0.")
    assert vm_stat.parse(empty) is None


@pytest.mark.parametrize("between", [": ", " = ", "="])
def test_sysctl_separates_name_and_value_in_three_ways(between: str) -> None:
    lines = {
        "hw.memsize": "17179869184",
        "vm.swapusage": "total = 2048,00M  used = 1,50G  free = 512,00M",
        "kern.memorystatus_vm_pressure_level": "4",
    }
    facts = sysctl.parse_memory("".join(f"{name}{between}{value}\n" for name, value in lines.items()))
    assert (facts.memory_total_bytes, facts.pressure) == (2**34, "critical")
    assert (facts.swap_total_bytes, facts.swap_used_bytes) == (2**31, int(1.5 * 2**30))
    assert facts.wired_limit_bytes is None


def test_an_intel_mac_has_no_core_tiers() -> None:
    facts = sysctl.parse_identity(
        "machdep.cpu.brand_string: Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz\nhw.logicalcpu: 16\n"
    )
    assert (facts.chip, facts.cpu_count) == ("Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz", 16)
    assert (facts.cpu_performance_cores, facts.cpu_efficiency_cores, facts.machine_model) == (None, None, None)


def test_macmon_sizes_may_be_written_as_decimals_and_null_is_unknown() -> None:
    facts = macmon.parse_line('{"memory":{"ram_total":1.7179869184e10,"ram_usage":null},"gpu_power":null}')
    assert facts is not None
    assert (facts.host.memory_total_bytes, facts.host.memory_used_bytes) == (2**34, None)
    assert facts.gpus[0].power_watts is None
    odd = macmon.parse_line('{"memory":{"ram_total":NaN,"ram_usage":1e400,"swap_total":0.5}}')
    assert odd is not None
    assert (odd.host.memory_total_bytes, odd.host.memory_used_bytes, odd.host.swap_total_bytes) == (None, None, None)


def test_macmon_that_reads_no_counters_of_a_newer_chip_tells_no_zeros() -> None:
    power = '"cpu_power": 0.0, "gpu_power": 0.0, "sys_power": 0.0, "gpu_usage": [0, 0.0], "gpu_freq_mhz": 0'
    facts = macmon.parse_line(f'{{{power}, "temp": {{"cpu_temp_avg": 0.0}}, "memory": {{"ram_usage": 0}}}}')
    assert facts is not None
    assert (facts.host, facts.gpus) == (HostFacts(), (GpuSample(vendor="apple"),))


def test_macmon_of_an_idle_gpu_tells_its_zero_watts() -> None:
    facts = macmon.parse_line('{"cpu_power": 0.2, "gpu_power": 0.0, "gpu_active_ratio": 0.0, "gpu_freq_mhz": 338}')
    assert facts is not None
    assert (facts.gpus[0].power_watts, facts.gpus[0].busy_percent, facts.gpus[0].clock_mhz) == (0.0, 0.0, 338)


def test_a_kernel_without_smaps_rollup_says_so(tmp_path: Path) -> None:
    process = tmp_path / "proc/41"
    process.mkdir(parents=True)
    (process / "statm").write_text("900 500 100 1 0 300 0\n")
    facts = ProportionalMemory(tmp_path).read(SourceRequest({"run": (41, 42)}))
    assert facts.processes[41].footprint_bytes is None
    assert "no smaps_rollup" in facts.reasons["footprint_bytes"]
    assert 42 not in facts.processes


def test_a_container_that_hides_its_swap_still_tells_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden() -> None:
        raise FileNotFoundError("/proc/vmstat")

    monkeypatch.setattr(psutil, "swap_memory", hidden)
    facts = HostMemory().read(SourceRequest())
    assert facts.host.memory_total_bytes is not None
    assert facts.host.swap_used_bytes is None
    assert "/proc/vmstat" in facts.reasons["swap_used_bytes"]


def test_psutil_writes_no_warning_onto_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = psutil.swap_memory()

    def warns() -> Any:
        warnings.warn("'sin' and 'sout' swap memory stats couldn't be determined", RuntimeWarning, stacklevel=1)
        return whole

    monkeypatch.setattr(psutil, "swap_memory", warns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert HostMemory().read(SourceRequest()).host.swap_total_bytes == whole.total
