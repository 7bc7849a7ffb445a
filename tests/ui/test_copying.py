"""What of a run can be taken along, by ``Y``."""

from __future__ import annotations

import pytest

from mpstui.ui.screens import copying

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
