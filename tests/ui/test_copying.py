"""What of a run can be taken along, by ``Y``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.runs.monitor import Monitor
from mpstui.ui.screens import copying
from mpstui.ui.services import Services
from tests.core.runs.build import RunBuilder, make_home

from . import fakes
from .driving import Driver, drive


def test_the_menu_copies_what_is_chosen_and_is_searched_by_typing() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("1", "Y")
        await driver.sees("value of loss")
        await driver.press("enter")
        await driver.hears("sent the value of loss")
        assert float(driver.app.clipboard) > 0
        await driver.press("Y", *"id", "enter")
        await driver.hears("sent the id")
        assert driver.app.clipboard == fakes.running().run

    drive(fakes.world(fakes.several()), play, size=(120, 40), opening=fakes.running().run)


def test_in_the_list_it_means_the_selected_run_and_without_one_says_so() -> None:
    async def some(driver: Driver) -> None:
        await driver.press("Y")
        await driver.sees("what to copy")
        await driver.press(*"folder", "enter")
        await driver.hears("sent the folder")
        assert driver.app.clipboard

    async def none(driver: Driver) -> None:
        await driver.sees("no runs yet")
        await driver.press("Y")
        await driver.hears("no run is selected")

    drive(fakes.world(fakes.several()), some)
    drive(fakes.world(()), none)


def test_a_picture_that_cannot_be_made_here_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "draws_png", lambda: False)

    async def play(driver: Driver) -> None:
        await driver.press("1", "Y", *"file")
        await driver.sees("not now: a PNG needs Pillow (pip install pillow)")
        assert "SVG file" in driver.text

    drive(fakes.world(fakes.several()), play, size=(120, 40), opening=fakes.running().run)


def test_a_report_is_found_by_its_name_and_written_where_the_screen_was_opened(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path)
    run = RunBuilder(home, "first", time.time() - 60).status("ended").launch().exit(code=0, ended=time.time())
    run.points(*({"attempt": 1, "step": step, "loss": 9 / (step + 9)} for step in range(50)))
    written = tmp_path / "here"
    written.mkdir()
    services = Services(home, os.environ, written, time.time)
    snapshot = Monitor(home).snapshot(run.run.run)
    target = services.report([snapshot])
    assert target.parent == written
    assert "first" in target.read_text()

    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p", *"report")
        await driver.sees("a page to send")

    drive(fakes.world(fakes.several()), play, size=(120, 40))


def test_what_is_compared_is_written_to_one_page(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    made = [
        RunBuilder(home, name, time.time() - 60).status("ended").launch().exit(code=0, ended=time.time())
        for name in ("first", "second")
    ]
    for run in made:
        run.points(*({"attempt": 1, "step": step, "loss": 9 / (step + 9)} for step in range(50)))
    services = Services(home, os.environ, tmp_path, time.time)
    snapshots = [Monitor(home).snapshot(run.run.run) for run in made]
    first, again = services.report(snapshots), services.report(snapshots)
    assert first != again, "nothing is overwritten"
    assert all(f">{name}</a>" in first.read_text() for name in ("first", "second"))


def test_a_comparison_can_be_taken_along(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def report(services: Services, snapshots: Sequence[RunSnapshot]) -> Path:
        written.append(len(snapshots))
        return Path("2-runs.html")

    monkeypatch.setattr(Services, "report", report)

    async def play(driver: Driver) -> None:
        await driver.press("space", "space", "C")
        await driver.sees("2 runs")
        await driver.press("Y")
        await driver.sees("report of these 2 runs (HTML)")
        await driver.sees("value of loss")
        await driver.press("enter")
        await driver.hears("wrote 2-runs.html")
        assert written == [2]
        await driver.press("ctrl+p", *"report")
        await driver.sees("report of these 2 runs (HTML)")

    drive(fakes.world(fakes.several()), play, size=(120, 40))
