"""What a footer or a title names can be clicked."""

from __future__ import annotations

from functools import partial

from textual.events import MouseScrollDown, MouseScrollUp
from textual.widget import Widget

from mpstui.ui.screens.dialogs import Confirm, Sheet
from mpstui.ui.screens.help import Help
from mpstui.ui.screens.launch import LaunchForm
from mpstui.ui.screens.run import RunScreen
from mpstui.ui.widgets.lines import KeyLine
from mpstui.ui.widgets.peek import Peek
from mpstui.ui.widgets.profile_list import ProfileList

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


async def turn(driver: Driver, widget: type[Widget], *, down: bool = True) -> None:
    """Turn the wheel above a widget."""
    found = driver.app.screen.query_one(widget)
    await driver.pilot._post_mouse_events([MouseScrollDown if down else MouseScrollUp], widget=found, offset=(1, 1))
    await driver.pilot.pause()


def test_the_wheel_scrolls_a_page_and_a_click_beside_it_closes_it() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("?")
        await driver.sees("everywhere")
        await turn(driver, Sheet)
        await driver.until(lambda: "everywhere" not in driver.text)
        await turn(driver, Sheet, down=False)
        await driver.sees("everywhere")
        await driver.pilot.click(offset=(0, 12))
        await driver.until(lambda: not isinstance(driver.app.screen, Help))

    drive(fakes.world((fakes.running(),)), play, size=(100, 24))


def asked_so_often(driver: Driver, times: int) -> bool:
    return len(driver.world.actions.asked) == times


def test_an_answer_can_be_clicked() -> None:
    async def play(driver: Driver) -> None:
        for answer, asked in (("esc cancel", 0), ("y kill", 1)):
            await driver.press("K")
            await driver.sees(answer)
            await click(driver, answer)
            await driver.until(lambda: not isinstance(driver.app.screen, Confirm))
            await driver.until(partial(asked_so_often, driver, asked))

    drive(fakes.world((fakes.unsaved(),)), play, opening=fakes.unsaved().run)


def test_a_profile_is_chosen_and_opened_by_clicks() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("n")
        await driver.sees("My own fine-tuning")
        await click(driver, "My own fine-tuning")
        chosen = driver.app.screen.query_one(ProfileList)
        await driver.until(lambda: chosen.selected is not None and chosen.selected.title == "My own fine-tuning")
        await click(driver, "My own fine-tuning")
        await driver.until(lambda: isinstance(driver.app.screen, LaunchForm))

    drive(fakes.world(), play, size=(120, 40))


def test_a_column_is_chosen_by_a_click() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("|")
        await driver.sees("columns of the list")
        assert "✓ age" not in driver.text
        await click(driver, "  age")
        await driver.sees("✓ age")

    drive(fakes.world((fakes.running(),)), play, size=(120, 40))


def test_a_key_on_the_card_of_a_failure_can_be_clicked() -> None:
    async def play(driver: Driver) -> None:
        await driver.until(lambda: any(line.startswith("▌") and "R edit" in line for line in driver.lines))
        y = next(place for place, line in enumerate(driver.lines) if line.startswith("▌") and "R edit" in line)
        await driver.pilot.click(offset=(driver.lines[y].index("R edit") + 3, y))
        await driver.until(lambda: isinstance(driver.app.screen, LaunchForm))

    drive(fakes.world((fakes.failed(),)), play, size=(120, 40), opening=fakes.failed().run)


def test_a_letter_that_does_nothing_here_says_where_it_does_something() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("z")
        await driver.hears("z does nothing here (one run: full size); ? shows all keys")
        await driver.press("%")
        await driver.hears("% does nothing here; ? shows all keys")

    drive(fakes.world((fakes.running(),)), play)


def test_letters_that_come_in_one_piece_are_not_answered_one_by_one() -> None:
    async def play(driver: Driver) -> None:
        await driver.burst("z", "z", "%", "v")
        await driver.press("question_mark")
        await driver.until(lambda: isinstance(driver.app.screen, Help))
        assert not driver.toasts

    drive(fakes.world((fakes.running(),)), play)


def test_a_click_on_the_look_below_the_list_opens_its_run() -> None:
    async def play(driver: Driver) -> None:
        await driver.until(lambda: driver.app.screen.query_one(Peek).snapshot is not None)
        await driver.pilot.click(Peek, offset=(10, 3))
        await driver.until(lambda: isinstance(driver.app.screen, RunScreen))

    drive(fakes.world((fakes.running(),)), play, size=(120, 40))
