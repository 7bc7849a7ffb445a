"""A run's telemetry is kept once, read back, and foretells; a second screen writes nothing twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.model.snapshot import Numbers, RunSnapshot, State
from mpstui.core.telemetry import run_telemetry
from mpstui.core.telemetry.history import is_throttled, is_unified, memory_now, memory_then, run_point
from mpstui.core.telemetry.model import GpuSample, SystemSample, TreeSample
from mpstui.core.telemetry.run_telemetry import RunTelemetry, TelemetryRecorder
from mpstui.wire.heartbeat import DeviceReading, MemoryReading
from mpstui.wire.rundir import RunDir
from tests.snapshots import changed

GIB = 2**30
RUN = RunSnapshot(
    run="a",
    name="net",
    dir=Path("/none"),
    state=State.RUNNING,
    seen=0.0,
    pid=7,
    attempt=1,
    started=0.0,
    numbers=Numbers(
        step=100,
        epoch=1,
        device=DeviceReading(type="mps"),
        memory=MemoryReading(allocated=4 * GIB, driver=6 * GIB, limit=12 * GIB),
    ),
)
ENDED = replace(RUN, state=State.FINISHED, pid=None)


def on(device: str) -> RunSnapshot:
    """A run that reports nothing but its device."""
    return replace(RUN, numbers=Numbers(device=DeviceReading(type=device)))


def system(time: float, **changes: object) -> SystemSample:
    sample = SystemSample(
        time=time,
        memory_total_bytes=16 * GIB,
        memory_used_bytes=9 * GIB,
        swap_used_bytes=GIB,
        pressure="warn",
        power_watts=40.0,
        thermal="nominal",
    )
    return replace(sample, **changes)  # type: ignore[arg-type]


def recorder_of(folder: Path) -> TelemetryRecorder:
    return TelemetryRecorder(replace(RUN, dir=folder))


def watch(recorder: TelemetryRecorder, start: float, count: int, growth: float = 0.0, run: RunSnapshot = RUN) -> None:
    for tick in range(count):
        moment = start + 5.0 * tick
        memory = run.numbers.memory._replace(driver=6 * GIB + int(growth * (moment - start)))
        recorder.poll(changed(run, memory=memory, step=tick), system(moment), None)


def past(recorder: TelemetryRecorder) -> RunTelemetry:
    """What it recalls of the run once that has ended."""
    return recorder.poll(ENDED, system(0.0), None)


def test_a_point_keeps_what_the_panel_draws() -> None:
    tree = TreeSample(time=5.0, footprint_bytes=5 * GIB)
    assert memory_then(run_point(system(5.0), tree, RUN)) == memory_now(system(5.0), tree, RUN)
    bare = SystemSample(time=5.0)
    assert memory_then(run_point(bare, None, on("cpu"))) == memory_now(bare, None, on("cpu"))


def test_the_past_is_read_back(tmp_path: Path) -> None:
    first = recorder_of(tmp_path)
    watch(first, 1000.0, 40, growth=GIB / 600)
    first.close()
    again = recorder_of(tmp_path).poll(replace(ENDED, started=1000.0), system(0.0), None)
    assert len(again.memory) == 40
    assert again.headroom is not None
    assert again.headroom.soonest == "device"
    assert again.energy is not None
    assert again.energy.watt_hours == pytest.approx(40.0 * 195 / 3600)
    assert again.energy.measured_fraction == pytest.approx(1.0)


def test_two_screens_write_once_and_the_second_takes_over(tmp_path: Path) -> None:
    first, second = recorder_of(tmp_path), recorder_of(tmp_path)
    for tick in range(12):
        first.poll(RUN, system(5.0 * tick), None)
        second.poll(RUN, system(5.0 * tick + 1), None)
    assert (first.writes, second.writes) == (True, False)
    lines = RunDir(tmp_path).telemetry.read_text().splitlines()
    assert len(lines) == 12
    first.close()
    for tick in range(12, 24):
        known = second.poll(RUN, system(5.0 * tick + 1), None)
    assert second.writes
    assert known.energy is not None
    assert known.energy.watt_hours == pytest.approx(40.0 * 116 / 3600, rel=0.1), "nothing was counted twice"
    times = [point.time for point in known.memory]
    assert times == sorted(set(times))


def test_a_run_of_another_program_gets_no_file(tmp_path: Path) -> None:
    watched = replace(RUN, dir=tmp_path, state=State.WATCHED)
    book = TelemetryRecorder(watched)
    watch(book, 0.0, 10, run=watched)
    assert len(past(book).memory) == 10
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_nothing_loses_nothing_on_the_screen(tmp_path: Path) -> None:
    book = recorder_of(tmp_path / "gone")
    watch(book, 0.0, 10)
    assert len(past(book).memory) == 10
    assert not book.writes


def test_a_long_watch_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 200
    monkeypatch.setattr(run_telemetry, "MAX_POINTS", most)
    monkeypatch.setattr(run_telemetry, "MAX_FILE_BYTES", 80_000)
    book = recorder_of(tmp_path)
    watch(book, 0.0, 3 * most)
    memory = past(book).memory
    assert most / 2 < len(memory) <= most
    assert 40_000 < RunDir(tmp_path).telemetry.stat().st_size < 82_000
    assert (memory[0].time, memory[-1].time) == (0.0, 5.0 * (3 * most - 1))
    book.close()


def test_a_card_of_its_own_is_the_limit() -> None:
    card = GpuSample(memory_used_bytes=70 * GIB, memory_total_bytes=80 * GIB)
    book = recorder_of(Path("/none"))
    known = book.poll(changed(RUN, device=DeviceReading(type="cuda")), system(0.0, gpus=(card,)), None)
    assert known.headroom is not None
    assert (known.headroom.nearest, known.headroom.limit_bytes) == ("device", 80 * GIB)
    shared = GpuSample(memory_used_bytes=70 * GIB)
    assert is_unified(on("cuda"), system(0.0, gpus=(shared,)))
    assert not is_unified(on("cuda"), system(0.0, gpus=(card,)))
    on_cpu = memory_now(system(0.0, gpus=(card,)), None, on("cpu"))
    assert (on_cpu.device_used, on_cpu.limit) == (None, None)
    several = memory_now(system(0.0, gpus=(card, card)), None, on("cuda"))
    assert several.device_used is None, "which of them is not known"


def test_throttling_is_what_the_machine_says_and_a_power_cap_is_none() -> None:
    assert is_throttled(SystemSample(time=0.0)) is None
    assert is_throttled(system(0.0)) is False
    assert is_throttled(system(0.0, thermal="heavy")) is True
    capped = GpuSample(throttle_reasons=("power cap",), is_throttled=False)
    hot = GpuSample(throttle_reasons=("software thermal slowdown", "power cap"), is_throttled=True)
    assert is_throttled(system(0.0, thermal=None, gpus=(capped,))) is False
    assert is_throttled(system(0.0, gpus=(capped, hot))) is True


def test_throttled_steps_are_stretches() -> None:
    book = recorder_of(Path("/none"))
    for tick in range(30):
        thermal = "heavy" if 10 <= tick < 20 or tick >= 28 else "nominal"
        known = book.poll(changed(RUN, step=10 * tick), system(5.0 * tick, thermal=thermal), None)
    assert [(stretch.first, stretch.last) for stretch in known.throttled] == [(100, 190), (280, 290)]
