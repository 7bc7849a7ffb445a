"""What of a run can be taken along, by ``Y``."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

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
    monkeypatch.setattr(copying, "find_spec", lambda name: None)

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
    target = services.export(snapshot, "loss", "html")
    assert target.parent == written
    assert "first" in target.read_text()

    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p", *"report")
        await driver.sees("a page to send")

    drive(fakes.world(fakes.several()), play, size=(120, 40))
