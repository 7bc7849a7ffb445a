"""In a terminal's own sixteen colours: frames can be seen, and what is behind a question stays."""

from __future__ import annotations

import pytest
from rich.segment import Segment

from mpstui.ui.theme import ANSI_LIGHT_THEME, ANSI_THEME, palette

from . import fakes
from .driving import Driver, drive


def corner(driver: Driver) -> Segment:
    """The upper left corner of the frame in view."""
    strips = driver.app.screen._compositor.render_strips()
    return next(segment for strip in strips for segment in strip if segment.text.startswith("╭"))


@pytest.mark.parametrize("theme", [ANSI_THEME, ANSI_LIGHT_THEME])
@pytest.mark.parametrize(("key", "shows"), [("question_mark", "everywhere"), ("K", "at once"), ("i", "arguments")])
def test_a_page_has_a_frame_that_can_be_seen_and_what_is_behind_it_stays(theme: str, key: str, shows: str) -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("2 log")
        await driver.press(key)
        await driver.sees(shows)
        await driver.until(lambda: any("╭" in line for line in driver.lines), "a frame")
        style = corner(driver).style
        assert style is not None
        assert style.color is None or style.color.is_default or style.color.number not in (0, 15)
        assert driver.lines[0].strip(), "the run's header"

    drive(fakes.world((fakes.unsaved(),)), play, size=(170, 50), opening=fakes.unsaved().run, theme=theme)


def test_keys_are_told_from_their_names_by_more_than_weight() -> None:
    for theme in (ANSI_THEME, ANSI_LIGHT_THEME):
        assert palette(theme)["key"].color is not None
