"""Queued runs on the screen: where they stand, and that an open screen gives them their supervisor back."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.home import Home
from mpstui.core.runs.snapshot import QueuePlace, State
from mpstui.ui.services import REVIVE_SECONDS, LazyMonitor
from mpstui.ui.widgets.run_rows import run_row
from mpstui.wire import atomic
from mpstui.wire.records import Status
from mpstui.wire.rundir import RunDir

from . import fakes
from .driving import Driver, drive


def test_a_queued_row_shows_its_place() -> None:
    waiting = fakes.bare(state=State.QUEUED, queue=QueuePlace("default", 2, True))
    world = fakes.world((waiting, fakes.running()))

    async def play(driver: Driver) -> None:
        await driver.sees("2nd in default · group paused")

    drive(world, play)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
def test_the_place_keeps_to_the_width_of_other_rows(width: int) -> None:
    waiting = fakes.bare(state=State.QUEUED, queue=QueuePlace(after=("\x1b[31mstage 1" * 20,)))
    row = run_row(waiting, width)
    assert row.width == run_row(fakes.running(), width).width
    assert "\x1b" not in row.text


def test_an_open_screen_revives_what_waits_every_few_seconds(tmp_path: Path) -> None:
    home, now, started = Home(tmp_path, tmp_path), [100.0], list[str]()
    run = RunDir(home.runs / "a")
    run.path.mkdir(parents=True)
    atomic.write_json(run.status, Status("a", "queued", 1, 2.0).to_json())
    monitor = LazyMonitor(home, None, lambda found: started.append(found.run), lambda: now[0])
    monitor.refresh()
    assert started == []
    now[0] += REVIVE_SECONDS
    monitor.refresh()
    assert started == ["a"]
