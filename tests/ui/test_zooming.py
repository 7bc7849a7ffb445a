"""Zooming into a chart: what is in view is read again from the files, and drawn and told point for point."""

from __future__ import annotations

import random
import re
from pathlib import Path

from tests.core.runs.build import FakeClock, RunBuilder, make_home, make_monitor

from . import fakes
from .driving import Driver, drive

STEPS = 4000


def test_what_was_zoomed_into_is_read_again_and_told_step_by_step(tmp_path: Path) -> None:
    source = random.Random(1)
    values = [source.random() for _ in range(STEPS)]
    home = make_home(tmp_path)
    run = RunBuilder(home, "long").status("ended").launch().exit(code=0)
    run.points(*({"attempt": 1, "step": step, "loss": value} for step, value in enumerate(values)))
    monitor = make_monitor(home, FakeClock())
    snapshot = monitor.snapshot(run.run.run)
    told = re.compile(r"train (\S+) .*step (\S+)")

    async def play(driver: Driver) -> None:
        await driver.press("1", "z", "left", "left")
        await driver.sees("steps")
        await driver.press(*["plus"] * 6)
        await driver.until(lambda: told.search(driver.text) is not None, "a single step at the cursor")
        for key in ("left", "right", "right"):
            await driver.press(key)
            found = told.search(driver.text)
            assert found is not None
            assert float(found.group(1)) == float(f"{values[int(found.group(2).replace(',', ''))]:.4g}")

    drive(fakes.world((snapshot,)), play, opening=snapshot.run)


def test_by_time_as_by_step(tmp_path: Path) -> None:
    source = random.Random(1)
    values = [source.random() for _ in range(STEPS)]
    home = make_home(tmp_path)
    run = RunBuilder(home, "long").status("ended").launch().exit(code=0)
    run.points(*({"attempt": 1, "step": step, "loss": value, "time": 1e9 + step} for step, value in enumerate(values)))
    snapshot = make_monitor(home, FakeClock()).snapshot(run.run.run)

    async def play(driver: Driver) -> None:
        await driver.press("1", "z", "t")
        await driver.sees("min")
        await driver.press("left", "left", *["plus"] * 7)
        told = re.compile(r"train (\d\.\d+) ")
        await driver.until(lambda: told.search(driver.text) is not None, "a single value at the cursor")
        found = told.search(driver.text)
        assert found is not None
        assert any(float(found.group(1)) == float(f"{value:.4g}") for value in values)

    drive(fakes.world((snapshot,)), play, opening=snapshot.run)
