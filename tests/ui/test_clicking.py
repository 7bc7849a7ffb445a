"""What a footer or a title names can be clicked."""

from __future__ import annotations

from mpstui.ui.screens.dialogs import Help
from mpstui.ui.screens.run import RunScreen
from mpstui.ui.widgets.lines import KeyLine

from . import fakes
from .driving import Driver, drive


async def click(driver: Driver, text: str) -> None:
    """Click the middle of a text, the lowest where there are several."""
    y = max(place for place, line in enumerate(driver.lines) if text in line)
    x = driver.lines[y].rindex(text) + len(text) // 2
    await driver.pilot.click(offset=(x, y))
    await driver.pilot.pause()


def test_a_click_on_a_key_of_the_footer_presses_it() -> None:
    async def play(driver: Driver) -> None:
        await click(driver, "? help")
        await driver.until(lambda: isinstance(driver.app.screen, Help))
        await driver.press("escape")
        await click(driver, "s stop")
        await driver.until(lambda: driver.world.actions.asked)
        assert driver.world.actions.asked[0][0] == "stop"
        footer = driver.app.screen.query_one(KeyLine)
        await driver.pilot.click(footer, offset=(footer.size.width - 1, 0))
        assert len(driver.world.actions.asked) == 1

    drive(fakes.world((fakes.running(),)), play)


def test_a_click_on_a_panels_name_shows_it_and_then_gives_it_the_screen() -> None:
    async def play(driver: Driver) -> None:
        screen = driver.app.screen
        assert isinstance(screen, RunScreen)
        await driver.sees("6 events")
        await click(driver, "6 events")
        assert screen.panel == "events"
        assert not screen.zoomed
        await click(driver, "6 events")
        assert screen.zoomed

    for size in ((80, 24), (120, 40)):
        drive(fakes.world((fakes.running(),)), play, size=size, opening=fakes.running().run)
