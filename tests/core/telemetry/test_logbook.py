"""A run's telemetry is kept once, read back, and foretells; a second screen writes nothing twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.telemetry.history import TrainerFacts, is_throttled, is_unified, memory_now, memory_then, run_point
from mpstui.core.telemetry.logbook import MAX_POINTS, Logbook
from mpstui.core.telemetry.model import GpuSample, SystemSample, TreeSample
from mpstui.wire.rundir import RunDir

GIB = 2**30
TRAINER = TrainerFacts(
    attempt=1, started=0.0, device="mps", step=100, epoch=1, allocated=4 * GIB, driver=6 * GIB, limit=12 * GIB
)


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


def watch(book: Logbook, start: float, count: int, growth: float = 0.0) -> None:
    for tick in range(count):
        moment = start + 5.0 * tick
        book.note(system(moment), None, replace(TRAINER, driver=6 * GIB + int(growth * (moment - start)), step=tick))


def test_a_point_keeps_what_the_panel_draws() -> None:
    tree = TreeSample(time=5.0, footprint_bytes=5 * GIB)
    assert memory_then(run_point(system(5.0), tree, TRAINER)) == memory_now(system(5.0), tree, TRAINER)
    bare = SystemSample(time=5.0)
    assert memory_then(run_point(bare, None, TrainerFacts())) == memory_now(bare, None, TrainerFacts())


def test_the_past_is_read_back(tmp_path: Path) -> None:
    first = Logbook(RunDir(tmp_path))
    watch(first, 1000.0, 40, growth=GIB / 600)
    first.close()
    again = Logbook(RunDir(tmp_path)).recall(replace(TRAINER, started=1000.0))
    assert len(again.course) == 40
    assert again.headroom is not None
    assert again.headroom.soonest == "device"
    assert again.energy is not None
    assert again.energy.watt_hours == pytest.approx(40.0 * 195 / 3600)
    assert again.energy.measured_fraction == pytest.approx(1.0)


def test_two_screens_write_once_and_the_second_takes_over(tmp_path: Path) -> None:
    first, second = Logbook(RunDir(tmp_path)), Logbook(RunDir(tmp_path))
    for tick in range(12):
        first.note(system(5.0 * tick), None, TRAINER)
        second.note(system(5.0 * tick + 1), None, TRAINER)
    assert (first.writes, second.writes) == (True, False)
    lines = RunDir(tmp_path).telemetry.read_text().splitlines()
    assert len(lines) == 12
    first.close()
    for tick in range(12, 24):
        outlook = second.note(system(5.0 * tick + 1), None, TRAINER)
    assert second.writes
    assert outlook.energy is not None
    assert outlook.energy.watt_hours == pytest.approx(40.0 * 116 / 3600, rel=0.1), "nothing was counted twice"
    times = [point.time for point in outlook.course]
    assert times == sorted(set(times))


def test_a_run_of_another_program_gets_no_file(tmp_path: Path) -> None:
    book = Logbook(None)
    watch(book, 0.0, 10)
    assert len(book.recall(TRAINER).course) == 10
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_nothing_loses_nothing_on_the_screen(tmp_path: Path) -> None:
    book = Logbook(RunDir(tmp_path / "gone"))
    watch(book, 0.0, 10)
    assert len(book.recall(TRAINER).course) == 10
    assert not book.writes


def test_a_long_watch_stays_bounded(tmp_path: Path) -> None:
    book = Logbook(RunDir(tmp_path))
    watch(book, 0.0, 3 * MAX_POINTS)
    course = book.recall(TRAINER).course
    assert MAX_POINTS / 2 < len(course) <= MAX_POINTS
    assert RunDir(tmp_path).telemetry.stat().st_size < 600_000
    assert (course[0].time, course[-1].time) == (0.0, 5.0 * (3 * MAX_POINTS - 1))
    book.close()


def test_a_card_of_its_own_is_the_limit() -> None:
    card = GpuSample(memory_used_bytes=70 * GIB, memory_total_bytes=80 * GIB)
    book = Logbook(None)
    outlook = book.note(system(0.0, gpus=(card,)), None, replace(TRAINER, device="cuda"))
    assert outlook.headroom is not None
    assert (outlook.headroom.nearest, outlook.headroom.limit_bytes) == ("device", 80 * GIB)
    shared = GpuSample(memory_used_bytes=70 * GIB)
    assert is_unified(TrainerFacts(device="cuda"), system(0.0, gpus=(shared,)))
    assert not is_unified(TrainerFacts(device="cuda"), system(0.0, gpus=(card,)))
    on_cpu = memory_now(system(0.0, gpus=(card,)), None, TrainerFacts(device="cpu"))
    assert (on_cpu.device_used, on_cpu.limit) == (None, None)
    several = memory_now(system(0.0, gpus=(card, card)), None, TrainerFacts(device="cuda"))
    assert several.device_used is None, "which of them is not known"


def test_throttling_is_what_the_machine_says_and_a_power_cap_is_none() -> None:
    assert is_throttled(SystemSample(time=0.0)) is None
    assert is_throttled(system(0.0)) is False
    assert is_throttled(system(0.0, thermal="heavy")) is True
    capped = GpuSample(throttle_reasons=("power cap",))
    hot = GpuSample(throttle_reasons=("software thermal slowdown", "power cap"))
    assert is_throttled(system(0.0, thermal=None, gpus=(capped,))) is False
    assert is_throttled(system(0.0, gpus=(capped, hot))) is True


def test_throttled_steps_are_stretches() -> None:
    book = Logbook(None)
    for tick in range(30):
        thermal = "heavy" if 10 <= tick < 20 or tick >= 28 else "nominal"
        outlook = book.note(system(5.0 * tick, thermal=thermal), None, replace(TRAINER, step=10 * tick))
    assert [(stretch.first, stretch.last) for stretch in outlook.throttled] == [(100, 190), (280, 290)]
