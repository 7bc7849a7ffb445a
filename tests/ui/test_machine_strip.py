"""The machine in one line: what is known of it, as much as fits, in the list and beside a run's name."""

from __future__ import annotations

import pytest

from mpstui.core.telemetry.model import GpuSample, SystemSample
from mpstui.ui.rows import width_of
from mpstui.ui.widgets.machine_strip import machine_strip, remember
from mpstui.ui.workers import system

from . import fakes
from .driving import Driver, drive

GIB = 1 << 30


def sample(time: float = 0.0, cpu: float | None = 87.0, gpu: float | None = 96.0, used: float = 14.2) -> SystemSample:
    cards = (GpuSample(busy_percent=gpu, temperature_celsius=72.0),) if gpu is not None else ()
    return SystemSample(
        time=time, cpu_percent=cpu, gpus=cards, memory_total_bytes=18 * GIB, memory_used_bytes=int(used * GIB)
    )


def told(past: list[SystemSample], width: int) -> str:
    return "".join(span.text for span in machine_strip(past, width))


def test_it_tells_each_quantity_with_its_past() -> None:
    past = [sample(0, cpu=10), sample(10, cpu=50), sample(20)]
    assert told(past, 90) == "studio  cpu ▁▅▇ 87 %  gpu ███ 96 %  mem ▇▇▇ 14.2/18 GiB  72 °C  "


@pytest.mark.parametrize("width", range(0, 90, 3))
def test_it_keeps_to_its_room_and_tells_the_accelerator_longest(width: int) -> None:
    text = told([sample()], width)
    assert width_of(text) <= width
    if text:
        assert text.startswith("gpu") or "gpu" in text


def test_what_is_unknown_is_left_out() -> None:
    assert told([sample(cpu=None, gpu=None)], 90) == "studio  mem ▇ 14.2/18 GiB  "
    assert told([], 90) == ""
    assert told([SystemSample(time=0.0, thermal="heavy")], 90) == "studio  heat heavy  "


def test_the_past_has_one_sample_in_ten_seconds() -> None:
    past: tuple[SystemSample, ...] = ()
    for second in range(70):
        past = remember(past, sample(float(second)))
    assert [one.time for one in past] == [29, 39, 49, 59, 69]


def test_the_list_and_a_run_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_FIRST_SECONDS", 0.02)

    async def play(driver: Driver) -> None:
        await driver.until(lambda: "mem " in driver.lines[0], "the strip in the list")
        await driver.press("enter")
        await driver.until(lambda: "mem " in driver.lines[0] and "training" in driver.lines[0], "the strip of the run")

    drive(fakes.world((fakes.running(name="resnet"),)), play, size=(120, 40))
