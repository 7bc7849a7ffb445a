"""What is said in passing covers nothing that matters, is soon gone, and does not follow a person to other screens."""

from __future__ import annotations

import pytest

from mpstui.core.present import clock
from mpstui.ui.screens.said import message_rows
from mpstui.ui.toasts import TOAST_SECONDS, Said
from mpstui.wire.records import Ack

from . import fakes
from .driving import Driver, drive

LONG = "the request stays and is carried out when somebody reads it, whenever that may be " * 4
FAILED, RUNNING = fakes.failed().run, fakes.running().run


def said(driver: Driver, text: str) -> None:
    driver.app.context.say(text, "warning")


@pytest.mark.parametrize("size", [(20, 10), (60, 15), (80, 24), (120, 40), (200, 60)])
@pytest.mark.parametrize("opening", [FAILED, RUNNING, None])
def test_a_toast_covers_neither_footer_nor_card_nor_the_head_of_the_chart(
    size: tuple[int, int], opening: str | None
) -> None:
    async def play(driver: Driver) -> None:
        if opening is None:
            await driver.press("down", "down")
        else:
            await driver.until(lambda: getattr(driver.app.screen, "snapshot", None) is not None)
        await driver.press("1")
        await driver.sees("device ran" if opening == FAILED else "CIFA")
        before = driver.lines
        said(driver, LONG)
        said(driver, LONG)
        await driver.until(lambda: driver.lines != before, "the toast")
        changed = [place for place, (old, new) in enumerate(zip(before, driver.lines, strict=True)) if old != new]
        kept = {place for place, line in enumerate(before) if "restart on CPU" in line or " loss  ━" in line}
        assert len(before) - 1 not in changed, "the footer"
        assert not kept & set(changed), driver.text

    drive(fakes.world(fakes.several()), play, size=size, opening=opening)


def test_a_card_in_the_peek_keeps_its_keys() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("down", "down")
        await driver.sees("apply the remedy")
        keys = next(line for line in driver.lines if "restart on CPU" in line)
        said(driver, LONG)
        await driver.sees("the request stays")
        assert keys in driver.lines

    drive(fakes.world((fakes.bare(), fakes.running(), fakes.failed())), play, size=(80, 24))


def test_what_concerns_another_run_stays_behind() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("down", "x")
        await driver.hears("clear cache requested")
        await driver.press("enter")
        await driver.until(lambda: driver.app.screen.query("RunHeader"))
        assert driver.toasts, "it concerns the run that was opened"
        await driver.press("right_square_bracket")
        await driver.until(lambda: not driver.toasts, "the other run's toast to go")

    drive(world, play)


def test_what_was_said_of_a_screen_goes_with_it_and_an_error_stays() -> None:
    async def play(driver: Driver) -> None:
        said(driver, "no earlier error")
        driver.app.context.say("it could not be written", "error")
        await driver.hears("no earlier error")
        await driver.press("n")
        await driver.until(lambda: driver.toasts == ["it could not be written"], "only the error")

    drive(fakes.world(fakes.several()), play)


def test_a_dialog_and_back_is_no_change_of_place() -> None:
    async def play(driver: Driver) -> None:
        await driver.until(lambda: getattr(driver.app.screen, "snapshot", None) is not None)
        await driver.press("slash", *"zzz", "enter")
        await driver.hears("no line matches zzz")
        await driver.pilot.pause(0.05)
        assert driver.toasts == ["no line matches zzz"]

    drive(fakes.world(fakes.several()), play, opening=RUNNING)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 15)])
def test_the_newest_lines_of_the_log_stand_above_what_is_said(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TOAST_SECONDS, "warning", 0.4)

    async def play(driver: Driver) -> None:
        await driver.sees("following")
        newest = driver.world.log.texts[-1][:30]
        before = next(place for place, line in enumerate(driver.lines) if newest in line)
        driver.app.context.say("Short.", "warning")
        await driver.until(lambda: any(newest in line for line in driver.lines[:before]))
        await driver.until(lambda: newest in driver.lines[before])

    drive(fakes.world(fakes.several()), play, size=size, opening=RUNNING)


def test_no_toast_stands_before_a_question() -> None:
    async def play(driver: Driver) -> None:
        await driver.until(lambda: getattr(driver.app.screen, "snapshot", None) is not None)
        said(driver, LONG)
        await driver.sees("the request stays")
        await driver.press("K")
        await driver.sees("y kill it")
        assert "esc cancel" in driver.text

    drive(fakes.world((fakes.unsaved(),)), play, size=(60, 15), opening=RUNNING)


def test_an_answer_takes_the_place_of_the_question_and_names_a_run_out_of_view() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("down", "x")
        await driver.hears("requested")
        await driver.press("down")
        request = world.actions.asked[0]
        assert request[1] == RUNNING
        world.actions.automatic = Ack("r1", True, "trainer", fakes.NOW, "nothing to free")
        await driver.hears("CIFAR-10 · ResNet-18 · Adam: nothing to free")
        assert len(driver.toasts) == 1

    drive(world, play)


def test_three_lines_at_most_and_none_for_long() -> None:
    async def play(driver: Driver) -> None:
        for number in range(5):
            said(driver, f"note {number}")
        await driver.until(lambda: driver.toasts == ["note 2", "note 3", "note 4"], "the newest")

    drive(fakes.world((fakes.running(),)), play)
    assert max(TOAST_SECONDS.values()) < 10


def test_the_same_is_said_once_however_often_its_key_is_pressed() -> None:
    """And a chart that a log of full size hides is not said to be empty."""

    async def play(driver: Driver) -> None:
        await driver.sees("2 log")
        await driver.press("2", "z")
        await driver.until(lambda: "┤" not in driver.text, "the log alone")
        await driver.press("plus", "plus", "plus")
        said(driver, "the last")
        await driver.until(lambda: driver.toasts == ["The chart is not in view: 1 shows it.", "the last"], "both once")

    drive(fakes.world((fakes.running(),)), play, size=(80, 24), opening=RUNNING)


def test_what_was_said_is_kept_whole_with_its_time() -> None:
    async def play(driver: Driver) -> None:
        for text in ("first thing", LONG, "twice", "twice"):
            said(driver, text)
        driver.app.context.say("it broke", "error")
        await driver.press("at")
        await driver.sees("newest first")
        await driver.until(lambda: "╭" in driver.text and "╰" in driver.text, "its frame, as of any page")
        times = [line for line in driver.lines if clock(fakes.NOW) in line]
        words = ("it broke", "twice ×2", "the request", "first thing")
        assert [word for word, line in zip(words, times, strict=True) if word in line] == list(words)
        joined = " ".join(line.strip(" │") for line in driver.lines)
        assert joined.count("whenever that may be") == 4, "nothing of it is cut"
        await driver.press("at")
        assert "newest first" not in driver.text

    drive(fakes.world(fakes.several()), play)


def test_text_from_outside_in_it_steers_nothing() -> None:
    rows = message_rows([Said(fakes.NOW, "a \x1b]0;evil\x07 name", "warning")], fakes.NOW, 40)
    assert not set("\x1b\x07") & set("".join(line.text for line in rows))
    assert "nothing" in message_rows((), fakes.NOW, 60)[1].text


@pytest.mark.parametrize("width", [12, 20, 56, 116])
def test_the_page_of_messages_fits_every_window(width: int) -> None:
    kept = [Said(fakes.NOW, LONG, "warning"), Said(fakes.NOW - 90000, "x" * 300, "error", 3)]
    assert all(line.width <= width for line in message_rows(kept, fakes.NOW, width))
