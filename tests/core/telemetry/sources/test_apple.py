"""Each parser of a macOS program, on recordings in the program's own form and on damaged ones."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpstui.core.telemetry.model import GpuSample, HostFacts
from mpstui.core.telemetry.source import Facts, SourceError, SourceRequest
from mpstui.core.telemetry.sources import ioreg, macmon, rusage, sysctl, thermal, vm_stat
from mpstui.core.telemetry.sources.ioreg import nodes, parse_value
from tests.core.telemetry import recordings
from tests.core.telemetry.stand_ins import answers

PARSERS: dict[str, tuple[Callable[[str], object], str]] = {
    "ioreg accelerator": (ioreg.parse_gpus, recordings.IOREG_ACCELERATOR),
    "ioreg clients": (ioreg.parse_gpu_seconds, recordings.IOREG_CLIENTS),
    "vm_stat": (vm_stat.parse, recordings.VM_STAT),
    "sysctl memory": (sysctl.parse_memory, recordings.SYSCTL_MEMORY),
    "sysctl identity": (sysctl.parse_identity, recordings.SYSCTL_IDENTITY),
    "notifyutil": (thermal.parse, recordings.NOTIFYUTIL),
    "macmon": (macmon.parse_line, recordings.MACMON_NEW),
}


def test_accelerator_reads_the_device_share_and_the_memory_of_all_processes() -> None:
    (gpu,) = ioreg.parse_gpus(recordings.IOREG_ACCELERATOR)
    assert (gpu.name, gpu.cores) == ("Apple M3", 10)
    assert gpu.busy_percent == 97, "the renderer's 2 % is not the device's"
    assert gpu.memory_used_bytes == 3_000_000_000, "not the driver's own line, which is always 0"
    assert gpu.memory_allocated_bytes == 9_000_000_000


def test_accelerator_prefers_the_busiest_of_several_nodes() -> None:
    idle = recordings.IOREG_ACCELERATOR.replace('"Device Utilization %"=97', '"Device Utilization %"=3')
    assert ioreg.parse_gpus(idle + recordings.IOREG_ACCELERATOR)[0].busy_percent == 97


@pytest.mark.parametrize("key", ["Device Utilization %", "In use system memory"])
def test_missing_counter_is_unknown_and_not_zero(key: str) -> None:
    text = recordings.IOREG_ACCELERATOR.replace(f'"{key}"=', '"Renamed"=')
    facts = ioreg.IoregAccelerator(answers(text)).read(SourceRequest())
    field = "busy_percent" if "Device" in key else "memory_used_bytes"
    assert getattr(facts.gpus[0], field) is None
    assert facts.reasons[f"gpu0.{field}"]


@pytest.mark.parametrize(("output", "words"), [("", "no GPU that macOS can see"), ("+-o X\n", "no performance")])
def test_accelerator_says_why_there_is_nothing(output: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        ioreg.IoregAccelerator(answers(output)).read(SourceRequest())


def test_clients_are_summed_by_process_and_orphans_credit_nobody() -> None:
    assert ioreg.parse_gpu_seconds(recordings.IOREG_CLIENTS) == {501: pytest.approx(2.25)}


def test_clients_source_gives_the_wanted_processes_only() -> None:
    source = ioreg.IoregClients(answers(recordings.IOREG_CLIENTS))
    facts = source.read(SourceRequest({"run": (501, 502)}))
    assert {pid: process.gpu_seconds for pid, process in facts.processes.items()} == {501: pytest.approx(2.25)}
    assert not source.verified


def test_registry_lines_of_a_deeper_tree_are_read() -> None:
    text = '  | +-o Child  <class X>\n  |   | {\n  |   |   "model" = "Apple M3"\n'
    assert list(nodes(text, frozenset({"model"}))) == [{"model": "Apple M3"}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a"=1,"b"=(1,"x",Yes),"c"={}}', {"a": 1, "b": [1, "x", True], "c": {}}),
        ("<6b31>", "k1"),
        ("-3", -3),
        ("No", False),
        ('{"a"=1', None),
        ('{"a"=1} trailing', None),
        ("{" * 5000, None),
        ('{"a"=' * 99_999 + "1" + "}" * 99_999, None),
        ("(1 2)", None),
        ("", None),
    ],
)
def test_registry_values(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_memory_is_what_activity_monitor_counts() -> None:
    assert vm_stat.parse(recordings.VM_STAT) == recordings.VM_STAT_USED_BYTES
    small_pages = recordings.VM_STAT.replace("16384", "4096")
    assert vm_stat.parse(small_pages) == recordings.VM_STAT_USED_BYTES // 4


@pytest.mark.parametrize(
    "line", ["page size of 16384", "Anonymous pages", "Pages purgeable", "Pages wired", "Pages occupied"]
)
def test_memory_is_unknown_without_any_of_its_parts(line: str) -> None:
    assert vm_stat.parse(recordings.VM_STAT.replace(line, "Unknown thing")) is None
    with pytest.raises(SourceError, match="lacks one of the counters"):
        vm_stat.VmStat(answers(recordings.VM_STAT.replace(line, "Unknown thing"))).read(SourceRequest())


def test_sysctl_memory() -> None:
    host = sysctl.parse_memory(recordings.SYSCTL_MEMORY)
    assert host.memory_total_bytes == 24 * 2**30
    assert (host.swap_total_bytes, host.swap_used_bytes) == (3072 * 2**20, int(1536.5 * 2**20))
    assert host.pressure == "warn"
    assert host.wired_limit_bytes == 20480 * 2**20


@pytest.mark.parametrize(("level", "pressure"), [("1", "normal"), ("4", "critical"), ("0", None), ("3", None)])
def test_only_documented_pressure_levels_are_believed(level: str, pressure: str | None) -> None:
    text = recordings.SYSCTL_MEMORY.replace("pressure_level: 2", f"pressure_level: {level}")
    assert sysctl.parse_memory(text).pressure == pressure


def test_default_wired_limit_is_unknown_with_its_reason() -> None:
    text = recordings.SYSCTL_MEMORY.replace("wired_limit_mb: 20480", "wired_limit_mb: 0")
    facts = sysctl.SysctlMemory(answers(text)).read(SourceRequest())
    assert facts.host.wired_limit_bytes is None
    assert "default" in facts.reasons["wired_limit_bytes"]


@pytest.mark.parametrize("missing", range(4))
def test_a_key_that_this_macos_lacks_is_unknown(missing: int) -> None:
    lines = recordings.SYSCTL_MEMORY.splitlines(keepends=True)
    host = sysctl.parse_memory("".join(line for number, line in enumerate(lines) if number != missing))
    values = [host.memory_total_bytes, host.swap_used_bytes, host.pressure, host.wired_limit_bytes]
    assert [value is None for value in values] == [number == missing for number in range(4)]


def test_identity() -> None:
    host = sysctl.SysctlIdentity(answers(recordings.SYSCTL_IDENTITY)).read(SourceRequest()).host
    assert (host.chip, host.machine_model, host.cpu_count) == ("Apple M3", "Mac15,12", 8)
    assert (host.cpu_performance_cores, host.cpu_efficiency_cores) == (4, 4)
    assert sysctl.parse_identity("").chip is None


@pytest.mark.parametrize(("number", "level"), [("0", "nominal"), ("2", "heavy"), ("4", "sleeping"), ("5", None)])
def test_thermal_levels(number: str, level: str | None) -> None:
    assert thermal.parse(recordings.NOTIFYUTIL.replace(" 2", f" {number}")) == level


def test_thermal_failure_text_is_no_level() -> None:
    with pytest.raises(SourceError, match="Failed with code 9"):
        thermal.Thermal(answers("com.apple.system.thermalpressurelevel: Failed with code 9\n")).read(SourceRequest())


def test_macmon_of_an_old_version_has_no_busy_share() -> None:
    facts = macmon.parse_line(recordings.MACMON_OLD)
    assert facts is not None
    (gpu,) = facts.gpus
    assert gpu.busy_percent is None, "the only ratio it gives is scaled by clock"
    assert "scaled by clock" in facts.reasons["gpu0.busy_percent"]
    assert (gpu.clock_mhz, gpu.power_watts, gpu.temperature_celsius) == (900, 9.25, 51.0)
    assert (facts.host.power_watts, facts.host.memory_used_bytes) == (19.5, 9_000_000_000)


def test_macmon_tells_of_more_watts_than_a_mac_can_draw() -> None:
    record = json.loads(recordings.MACMON_NEW)
    facts = macmon.parse_line(json.dumps({**record, "sys_power": 1905.3, "gpu_power": 1890.0, "cpu_power": 999.0}))
    assert facts is not None
    assert (facts.host.power_watts, facts.host.cpu_power_watts, facts.gpus[0].power_watts) == (None, None, None)
    assert facts.host.memory_used_bytes is not None


def test_macmon_of_a_new_version() -> None:
    facts = macmon.parse_line(recordings.MACMON_NEW)
    assert facts is not None
    (gpu,) = facts.gpus
    assert (gpu.busy_percent, gpu.clock_mhz) == (75.0, 905)
    assert gpu.temperature_celsius is None, "0 degrees means that the sensor could not be read"
    assert facts.host.power_watts is None, "0 W means that the sensor could not be read"


@pytest.mark.parametrize("line", ["", "[]", "3", '{"temp"', "null"])
def test_macmon_line_that_is_no_object(line: str) -> None:
    assert macmon.parse_line(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"sys_power":true,"gpu_power":true}',
        '{"temp":3,"memory":[],"gpu_usage":"x","gpu_power":"1"}',
        '{"gpu_usage":[]}',
    ],
)
def test_macmon_line_without_known_fields_is_all_unknown(line: str) -> None:
    facts = macmon.parse_line(line)
    assert facts is not None
    assert facts.host.power_watts is None
    assert facts.gpus[0].power_watts is None


def test_rusage_decodes_the_documented_layout() -> None:
    words = list(range(100, 135))
    raw = b"\xff" * 16 + struct.pack("=35Q", *words)
    assert rusage.footprint_of(raw) == 107
    assert rusage.footprint_of(raw[:-1]) is None


def test_footprint_leaves_out_the_dead_and_marks_the_denied() -> None:
    def read(pid: int) -> bytes:
        if pid == 2:
            raise ProcessLookupError
        if pid == 3:
            raise PermissionError
        return bytes(16) + struct.pack("=35Q", *[pid * 1000] * 35)

    facts = rusage.Footprint(read).read(SourceRequest({"run": (1, 2, 3)}))
    assert {pid: process.footprint_bytes for pid, process in facts.processes.items()} == {1: 1000, 3: None}
    assert "denies 1" in facts.reasons["footprint_bytes"]


@pytest.mark.parametrize("name", [name for name in PARSERS if name != "ioreg clients"])
def test_cut_input_is_unknown_or_right_in_every_field(name: str) -> None:
    parse, text = PARSERS[name]
    whole = _values(parse(text))
    for end in range(len(text)):
        for field, value in _values(parse(text[:end])).items():
            assert value in (None, whole.get(field)), f"{name} cut at {end}: {field} is {value}"


def test_cut_clients_are_never_credited_with_more() -> None:
    for end in range(len(recordings.IOREG_CLIENTS)):
        found = ioreg.parse_gpu_seconds(recordings.IOREG_CLIENTS[:end])
        assert found.keys() <= {501}
        assert found.get(501, 0) in (0, pytest.approx(2.0), pytest.approx(2.25))


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_mutated_input_never_raises(data: st.DataObject) -> None:
    parse, text = PARSERS[data.draw(st.sampled_from(sorted(PARSERS)))]
    at = data.draw(st.integers(0, len(text)))
    removed = data.draw(st.integers(0, 40))
    parse(text[:at] + data.draw(st.text(max_size=8)) + text[at + removed :])


def _values(parsed: object) -> dict[str, object]:
    """Every field of what a parser gave, by name."""
    if isinstance(parsed, tuple):
        return _values(parsed[0]) if parsed else {}
    if isinstance(parsed, (HostFacts, GpuSample)):
        return asdict(parsed)
    if isinstance(parsed, Facts):
        return {**_values(parsed.host), **_values(parsed.gpus)}
    return {"value": parsed}
