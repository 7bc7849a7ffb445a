"""The memory panel: the verdict first, one time axis, reasons for what is unknown, at every size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.core.settings import EnergySettings
from mpstui.core.telemetry.energy import RunEnergy
from mpstui.core.telemetry.headroom import MemoryPoint, headroom
from mpstui.core.telemetry.model import GpuSample, SystemSample
from mpstui.core.telemetry.run_telemetry import RunTelemetry
from mpstui.ui.panels import Moment, RunFacts, memory
from mpstui.ui.panels.memory import binned, memory_rows, strip, window_label, window_seconds
from mpstui.ui.rows import Row
from mpstui.wire.heartbeat import DeviceReading, Heartbeat, MemoryReading
from mpstui.wire.records import Ack
from tests.snapshots import changed

from . import fakes
from .driving import Driver, drive

GIB = fakes.GIB
SAMPLE = fakes.FakeSampler().sample({"r": (1,)})


def facts(snapshot: RunSnapshot | None = None, **changes: Any) -> RunFacts:
    made = RunFacts(
        snapshot=snapshot or fakes.running(),
        system=SAMPLE.system,
        tree=SAMPLE.trees["r"],
        telemetry=fakes.telemetry(),
        prices=EnergySettings(price=0.32, currency="EUR"),
    )
    return replace(made, **changes)


def text(rows: list[Row]) -> str:
    return "\n".join(row.text for row in rows)


def roles(row: Row) -> str:
    return " ".join(span.role for span in row.spans)


@pytest.mark.parametrize("height", range(0, 40))
@pytest.mark.parametrize("width", [1, 5, 20, 30, 50, 60, 80, 120])
def test_it_fits_every_size(width: int, height: int) -> None:
    for growth in (0, GIB // 20):
        rows = memory_rows(facts(telemetry=fakes.telemetry(growth)), width, height)
        assert len(rows) <= height
        assert all(row.width <= width for row in rows)


def test_each_rank_of_a_training_of_several_has_its_line() -> None:
    beats = tuple(
        Heartbeat(
            fakes.NOW - 2 - 60 * rank, 1, rank=rank, step=100 - rank, loss=0.5 + rank, world_size=2,
            expect_next_in=10.0, memory=MemoryReading(driver=(4 + rank) * GIB),
        )
        for rank in (0, 1)
    )  # fmt: skip
    rows = memory_rows(facts(changed(fakes.running(), ranks=beats)), 80, 30)
    told = [row for row in rows if row.text.startswith(" rank")]
    assert [row.text.split(maxsplit=2)[2] for row in told] == [
        "step 100 · loss 0.5000 · 4.0 GiB · beat 2s ago",
        "step 99 · loss 1.500 · 5.0 GiB · beat 1m 02s ago",
    ]
    assert ("warn" in roles(told[0]), "warn" in roles(told[1])) == (False, True)
    assert " rank" not in text(memory_rows(facts(), 80, 30))


def test_one_line_is_the_answer() -> None:
    assert text(memory_rows(facts(), 60, 1)) == " 7.9 GiB left · system 24.1 of 32.0 GiB"
    growing = text(memory_rows(facts(telemetry=fakes.telemetry(GIB // 200)), 60, 1))
    assert growing == " limit in 3 h · footprint · +61.4 MiB/min"


def test_a_limit_that_is_near_is_loud() -> None:
    (line,) = memory_rows(facts(telemetry=fakes.telemetry(GIB // 5)), 60, 1)
    assert line.text.startswith(" limit in 5 min · footprint · +2.4 GiB/min")
    assert "bad" in roles(line)


def test_an_ended_run_is_not_counted_down() -> None:
    ended = facts(fakes.failed(), telemetry=fakes.telemetry(GIB // 5))
    assert "limit in" not in text(memory_rows(ended, 80, 20))
    assert "when last seen" in text(memory_rows(ended, 80, 1))


def test_all_curves_share_one_axis() -> None:
    lines = text(memory_rows(facts(), 80, 15)).splitlines()
    curves = {line[1:11].strip(): line for line in lines if set("▁▂▃▄▅▆▇") & set(line)}
    assert set(curves) >= {"allocated", "driver", "footprint", "system", "swap", "pressure"}
    axis = next(line for line in lines if "ago" in line)
    assert axis.strip() == "└ 10 min ago" + " " * (len(axis.strip()) - 17) + "now ┘"
    for line in curves.values():
        strips = [place for place, cell in enumerate(line) if cell in "▁▂▃▄▅▆▇█"]
        assert (axis.index("└"), axis.index("┘")) == (strips[0], strips[-1])


def test_a_past_warning_of_the_system_stands_out_in_the_pressure() -> None:
    rows = memory_rows(facts(), 80, 20)
    pressure = next(row for row in rows if row.text.startswith(" pressure"))
    assert "warn" in roles(pressure)


def test_much_room_makes_the_curves_taller_and_little_keeps_what_matters() -> None:
    tall = memory_rows(facts(), 80, 30)
    assert len(tall) > len(memory_rows(facts(), 80, 14))
    assert len(memory_rows(facts(), 200, 54)) > len(memory_rows(facts(), 200, 36)), "a whole high window is used"
    few = text(memory_rows(facts(), 60, 4))
    assert [word in few for word in ("left", "driver", "cache", "footprint")] == [True] * 4


def test_what_clearing_frees_is_said_before_and_what_it_freed_after() -> None:
    assert "x frees up to 1.3 GiB" in text(memory_rows(facts(), 60, 9))
    ack = Ack("r1", True, "trainer", fakes.NOW, "", 7 * GIB, 5 * GIB, 2 * GIB)
    assert "freed 2.0 GiB: 7.0 GiB → 5.0 GiB" in text(memory_rows(facts(cleared=ack), 80, 9))


def test_nothing_known_is_said_with_reasons() -> None:
    empty = text(memory_rows(RunFacts(snapshot=fakes.bare()), 80, 20))
    assert "headroom n/a  the machine is being read" in empty
    assert " 0 B" not in empty
    blind = facts(
        fakes.running(memory=MemoryReading(), device=DeviceReading("cpu")),
        system=SystemSample(
            time=0.0, reasons={"memory_used_bytes": "vm_stat: no page size", "gpus": "NVML: no driver"}
        ),
        tree=None,
        telemetry=RunTelemetry(),
    )
    told = text(memory_rows(blind, 80, 20))
    assert "headroom n/a  vm_stat: no page size" in told
    words = " ".join(told.split())
    assert "n/a device, cache: it runs on the CPU" in words
    assert "system: vm_stat: no page size" in words
    assert "energy: power is not measured here: NVML: no driver" in words


def test_a_run_that_waits_has_no_process_to_judge() -> None:
    told = text(memory_rows(facts(fakes.bare(), telemetry=RunTelemetry()), 80, 20))
    assert "headroom n/a  it has no process yet" in told


def test_a_control_group_is_the_limit() -> None:
    course = [MemoryPoint(time=fakes.NOW, system_used=3 * GIB, system_limit=4 * GIB)]
    limited = replace(SAMPLE.system, cgroup_limit_bytes=4 * GIB, cgroup_used_bytes=3 * GIB)
    telemetry = RunTelemetry(memory=tuple(course), headroom=headroom(course))
    told = text(memory_rows(facts(system=limited, telemetry=telemetry), 80, 20))
    assert "1.0 GiB left · system 3.0 of 4.0 GiB" in told
    assert "system      3.0 GiB    75 % of 4.0 GiB".replace("    ", " ") in told.replace("    ", " ")


def test_a_control_group_is_the_limit_of_an_ended_run_too() -> None:
    limited = replace(SAMPLE.system, cgroup_limit_bytes=4 * GIB, cgroup_used_bytes=3 * GIB)
    told = text(memory_rows(facts(fakes.finished(), system=limited, telemetry=RunTelemetry()), 80, 20))
    assert "system      3.0 GiB 75 % of 4.0 GiB" in told


def test_of_an_ended_run_the_past_is_shown_and_what_is_of_now_says_so() -> None:
    course = [MemoryPoint(time=fakes.NOW + i, system_used=3 * GIB, footprint=GIB, swap_used=0) for i in range(3)]
    course.append(replace(course[-1], time=fakes.NOW + 3, footprint=None, pressure="warn"))
    gone = changed(fakes.finished(), memory=MemoryReading())
    told = text(memory_rows(facts(gone, tree=None, telemetry=RunTelemetry(memory=tuple(course))), 80, 20))
    rows = {line[1:11].strip(): line for line in told.splitlines()}
    assert ("3.0 GiB" in rows["system"], "1.0 GiB" in rows["footprint"], "warn" in rows["pressure"]) == (True,) * 3
    assert "end ┘" in told
    assert "now" not in told
    blind = text(memory_rows(facts(gone, tree=None, telemetry=RunTelemetry()), 80, 20))
    assert "of 32.0 GiB now" in blind
    assert "normal now" in blind
    assert "no source" not in blind


@pytest.mark.parametrize(("seconds", "shown"), [(3.0, "footprint  100 MiB"), (60.0, "resident   4.0 GiB")])
def test_of_an_ended_run_its_own_last_word_counts_where_nobody_looked_at_its_end(seconds: float, shown: str) -> None:
    beat = Heartbeat(fakes.NOW + seconds, 1)
    ended = changed(fakes.finished(), memory=MemoryReading(rss=4 * GIB), beat=beat)
    seen = RunTelemetry(memory=(MemoryPoint(time=fakes.NOW, footprint=100 << 20),))
    told = text(memory_rows(facts(ended, tree=None, telemetry=seen), 80, 20))
    assert " ".join(shown.split()) in " ".join(told.split())


ENERGY = RunEnergy(whose="gpu", watt_hours=1234.0, measured_fraction=0.5, epoch_watt_hours=12.0, epochs=3)


def test_energy_says_whose_it_is_of_which_share_and_what_it_cost() -> None:
    told = text(memory_rows(facts(telemetry=replace(fakes.telemetry(), energy=ENERGY)), 100, 20))
    assert "1.23 kWh 0.395 EUR · 50 % of the run · cards alone · an epoch 12.0 Wh, 0.0038 EUR" in told
    unpriced = facts(telemetry=replace(fakes.telemetry(), energy=ENERGY), prices=EnergySettings())
    assert "1.23 kWh 50 % of the run · cards alone · an epoch 12.0 Wh" in text(memory_rows(unpriced, 100, 20))
    narrow = text(memory_rows(facts(telemetry=replace(fakes.telemetry(), energy=ENERGY)), 50, 20))
    assert "an epoch    12.0 Wh 0.0038 EUR · mean of 3" in narrow


def test_energy_that_nobody_measured_is_na() -> None:
    known = facts(telemetry=replace(fakes.telemetry(), energy=None))
    assert "energy          n/a measured from now on" in text(memory_rows(known, 80, 20))
    ended = facts(fakes.finished(), telemetry=replace(fakes.telemetry(), energy=None))
    assert "n/a nobody was watching while it ran" in text(memory_rows(ended, 80, 20))


def test_several_cards_have_a_line_each_and_say_why_they_are_slow() -> None:
    cards = tuple(GpuSample(index=n, busy_percent=90.0 + n, throttle_reasons=("power cap",) * n) for n in range(2))
    told = text(memory_rows(facts(system=replace(SAMPLE.system, gpus=cards)), 80, 30))
    assert "gpu 0           n/a 90 % busy · cpu 42 %" in told
    assert "gpu 1           n/a 91 % busy · power cap" in told


def test_foreign_currency_cannot_draw_on_the_screen() -> None:
    rows = memory_rows(facts(prices=EnergySettings(price=1.0, currency="\x1b[2J")), 80, 20)
    assert "\x1b" not in text(rows)


@pytest.mark.parametrize(
    ("seconds", "label"),
    [(1, "2 min"), (121, "5 min"), (3599, "1 h"), (5000, "1.5 h"), (90_000, "36 h"), (200_000, "3 d"), (1e12, "512 d")],
)
def test_windows_have_round_lengths(seconds: float, label: str) -> None:
    assert window_label(window_seconds(seconds)) == label


def test_a_bin_keeps_its_peak_and_does_not_move_with_time() -> None:
    points: list[tuple[float, float | None]] = [(t, float(t % 7)) for t in range(100)]
    early, late = binned(points, 99.0, 100, 10), binned(points, 99.9, 100, 10)
    assert early == late
    assert max(value for value in early if value is not None) == 6.0
    assert binned([(0.0, None), (5.0, 1.0)], 9.0, 10, 2) == [None, 1.0]
    assert binned(points, 99.0, 100, 0) == []


def test_unknown_is_blank_and_little_is_not() -> None:
    (line,) = strip([None, 0.0, 50.0, 99.0, 300.0], 100.0, 1, lambda value: "bar")
    assert "".join(span.text for span in line) == " ▁▄▇█"
    upper, lower = strip([None, 10.0, 90.0], 100.0, 2, lambda value: "bar")
    assert "".join(span.text for span in upper)[:2] == " ┈", "the limit is drawn above what does not reach it"
    assert "".join(span.text for span in lower)[2] == "█"


def test_the_price_comes_from_the_settings_onto_the_screen() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("4")
        await driver.sees("0.0068 EUR · 81 % of the run")

    drive(fakes.world((fakes.running(),)), play, opening=fakes.running().run)


def test_leaving_the_run_gives_its_file_back() -> None:
    world = fakes.world((fakes.running(),))

    async def play(driver: Driver) -> None:
        await driver.until(lambda: getattr(driver.app.screen, "_machine", None) is not None)
        assert not world.recorder.closed
        await driver.press("escape")
        await driver.until(lambda: world.recorder.closed, "the recorder closed")

    drive(world, play, opening=fakes.running().run)


def test_watched_files_are_shown_without_a_process() -> None:
    told = text(memory_rows(facts(fakes.running(state=State.WATCHED, pid=None, memory=MemoryReading())), 80, 20))
    assert "this program does not report device memory" in told


@pytest.mark.parametrize("size", [(20, 10), (20, 24), (60, 15), (200, 60)])
def test_the_panel_is_seen_in_a_window_of_any_size(size: tuple[int, int]) -> None:
    async def play(driver: Driver) -> None:
        await driver.press("4")
        await driver.until(lambda: getattr(driver.app.screen, "_machine", None) is not None)
        await driver.sees("7.9 GiB left")

    drive(fakes.world((fakes.running(),)), play, opening=fakes.running().run, size=size)


def test_the_past_is_drawn_once_for_many_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def counting(*arguments: Any) -> list[float | None]:
        drawn.append(1)
        return binned(*arguments)

    monkeypatch.setattr(memory, "binned", counting)
    now = facts()
    axis = memory.Axis(memory.course_of(now), 80)
    first = memory_rows(now, 80, 15, axis)
    once = len(drawn)
    assert once > 0
    assert memory_rows(replace(now, snapshot=fakes.running(step=5)), 80, 15, axis) == first
    assert len(drawn) == once
    assert not axis.suits(fakes.telemetry().memory, 80)


def test_how_busy_the_machine_was_has_its_curves_where_anything_tells_it() -> None:
    lines = [row.text for row in memory_rows(facts(), 80, 40)]
    busy = {line.split()[0]: line for line in lines if " busy " in line and "avg" in line}
    assert busy.keys() == {"gpu", "cpu"}
    assert "avg 80 %" in busy["gpu"]
    blind = replace(fakes.telemetry(), memory=tuple(replace(one, gpu_percent=None) for one in fakes.telemetry().memory))
    assert "gpu busy" not in text(memory_rows(facts(telemetry=blind), 80, 40))
    assert "cpu busy" not in text(memory_rows(facts(), 80, 12)), "what can end the run comes first"


def test_an_average_of_a_hundred_is_whole_beside_its_curve() -> None:
    full = replace(fakes.telemetry(), memory=tuple(replace(one, cpu_percent=100.0) for one in fakes.telemetry().memory))
    (busy,) = (line for line in text(memory_rows(facts(telemetry=full), 49, 40)).splitlines() if "cpu busy" in line)
    assert busy.rstrip().endswith("avg 100%")


@pytest.mark.parametrize("width", [50, 80])
def test_the_panel_wishes_for_no_more_than_it_can_fill(width: int) -> None:
    axis = memory.Axis(memory.course_of(facts()), width)
    memory_rows(facts(), width, 100, axis)
    whole, tallest = axis.fills
    assert len(memory_rows(facts(), width, whole - 1)) == whole - 1
    assert len(memory_rows(facts(), width, tallest - 1)) == tallest - 1
    for lines in range(whole - 1, tallest):
        assert len(memory_rows(facts(), width, lines)) == lines, "no line is blank before all is said"


def test_at_a_moment_the_panel_wishes_for_what_was_known_then() -> None:
    panel = memory.MemoryPanel()
    unknown = facts(moment=Moment(5.0, None, "chart"))
    panel.facts = unknown
    assert panel.wishes(40) == (3, 3), "its title, the moment, and that nobody knows"
    panel.facts = facts(moment=Moment(5.0, fakes.NOW - 20, "chart"))
    assert panel.wishes(40)[1] > 6
