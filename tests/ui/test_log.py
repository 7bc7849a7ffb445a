"""The log pane: following, scrolling, searching, errors, levels, colours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.events import MouseMove

from mpstui.core.formats.console import StyleSpan
from mpstui.core.logview.line import LogLine
from mpstui.ui.panels.log import LogPane, log_row
from mpstui.ui.widgets.log_reading import LogReading, matcher

from . import fakes
from .driving import Driver, drive

Reading = Callable[..., LogReading]


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    """A view of a log of a hundred lines. All have ten bytes, so that the place of a line tells its offset."""

    def made(**levels: str) -> LogReading:
        marks = {"error": "Error:", "warning": "WARN"}
        texts = [f"line {place:04}" for place in range(100)]
        for key, level in levels.items():
            texts[int(key[1:])] = f"{marks[level]:<9}"[: 9 - len(key[1:])] + key[1:]
        return LogReading(fakes.Log(tmp_path / "output.log").write(texts))

    return made


def shown(view: LogReading, rows: int = 10) -> list[str]:
    return [line.text for line in view.lines(rows)]


def test_it_follows_the_end(reading: Reading) -> None:
    view = reading()
    assert shown(view)[-1] == "line 0099"
    assert view.following


def test_scrolling_up_stays_where_it_is_and_down_follows_again(reading: Reading) -> None:
    view = reading()
    view.scroll(-5, 10)
    assert shown(view)[0] == "line 0085"
    assert not view.following
    log = view.document
    assert isinstance(log, fakes.Log)
    log.append("more")
    log.refresh()
    assert shown(view)[0] == "line 0085"
    view.scroll(6, 10)
    assert shown(view)[-1] == "more"
    view.scroll(1, 10)
    assert view.following


def test_scrolling_past_the_start_stops_there(reading: Reading) -> None:
    view = reading()
    view.scroll(-500, 10)
    assert shown(view)[0] == "line 0000"
    view.to_start()
    view.scroll(-1, 10)
    assert shown(view)[0] == "line 0000"
    view.follow()
    assert shown(view)[-1] == "line 0099"


def test_search_goes_to_matches_both_ways(reading: Reading) -> None:
    view = reading()
    assert view.find("line 004", 10)
    first = view.found
    assert first == 490, "the nearest above what was in view"
    assert view.find("line 004", 10, backwards=True, again=True)
    assert view.found == 480
    assert view.find("line 004", 10, again=True)
    assert view.found == 490
    assert not view.find("line 004", 10, again=True)
    assert not view.find("nowhere", 10)


def test_errors_one_after_another(reading: Reading) -> None:
    view = reading(a10="error", a50="error", a80="warning")
    assert view.next_error(10)
    assert view.found == 500, "from the end, the last one"
    assert view.next_error(10, backwards=True)
    assert view.found == 100
    assert not view.next_error(10, backwards=True)
    assert view.next_error(10)
    assert view.found == 500


def test_levels_leave_lines_out(reading: Reading) -> None:
    view = reading(a10="error", a50="warning", a99="error")
    assert view.next_level() == "warnings and errors"
    assert shown(view) == ["Error: 10", "WARN   50", "Error: 99"]
    assert view.next_level() == "errors"
    assert shown(view) == ["Error: 10", "Error: 99"]
    view.scroll(-1, 1)
    assert shown(view, 1) == ["Error: 10"]
    view.scroll(1, 1)
    assert shown(view, 1) == ["Error: 99"]
    assert view.next_level() == "all lines"


def test_an_empty_log(tmp_path: Path) -> None:
    view = LogReading(fakes.Log(tmp_path / "none"))
    assert shown(view) == []
    view.scroll(-1, 10)
    view.to_start()
    assert not view.find("x", 10)
    assert not view.next_error(10)


def test_a_bad_pattern_is_taken_literally() -> None:
    assert matcher("a(").search("fA(x")


def test_a_row_keeps_the_programs_colours_and_marks_matches() -> None:
    line = LogLine(1, 0, 12, "loss is fine", (StyleSpan(0, 4, "32"),), None)
    assert log_row(line, 20).spans[1] == ("loss", "sgr:32")
    marked = log_row(line, 20, "s i")
    assert [span for span in marked.spans if span.role == "match"] == [("s i", "match")]
    assert marked.text == "  loss is fine"
    error = log_row(LogLine(1, 0, 4, "boom", (), "error"), 20)
    assert error.text.startswith("✗")
    assert log_row(LogLine(1, 0, 500, "z" * 500), 20).width == 20


def test_the_keys_of_the_log() -> None:
    world = fakes.world()
    world.monitor.snapshots = (fakes.running(output=world.log.path),)

    async def play(driver: Driver) -> None:
        await driver.sees("following · 300 lines")
        await driver.press("up", "pageup")
        await driver.sees("scrolled · G follows")
        await driver.press("G")
        await driver.sees("following")
        await driver.press("e")
        await driver.sees("could not read sample 4711")
        await driver.press("E")
        await driver.hears("no earlier error")
        await driver.press("v")
        await driver.sees("warnings and errors")
        await driver.sees("UserWarning")
        await driver.press("v", "v", "n")
        await driver.hears("there is no search to repeat")
        await driver.press("slash", *"saved", "enter")
        await driver.sees("saved checkpoints/epoch-056.pt")
        await driver.sees("/saved")
        await driver.press("n")
        await driver.hears("no later match for saved")
        await driver.press("slash", "escape", "g")
        world.log.append("the newest line")
        await driver.press("end")
        await driver.sees("the newest line")

    drive(world, play, size=(110, 28), opening=fakes.running().run)


def test_a_search_that_comes_in_one_packet_goes_to_its_match() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("following · 300 lines")
        await driver.burst("slash", *"saved", "enter")
        await driver.sees("saved checkpoints/epoch-056.pt")
        await driver.sees("scrolled")
        await driver.burst("slash", *"UserW", "enter", "G", "v")
        await driver.sees("warnings and errors")

    drive(fakes.world(fakes.several()), play, size=(110, 28), opening=fakes.running().run)


def test_a_run_is_opened_and_its_panel_chosen_in_one_packet() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("CIFAR-10")
        await driver.burst("enter", "3", "z")
        await driver.sees("no metrics reported yet")
        await driver.until(lambda: "no loss" not in driver.text)

    drive(fakes.world(fakes.several()), play)


def test_log_keys_bring_the_log_into_view_and_need_one() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("3", "e")
        await driver.hears("there is no output yet")
        await driver.sees("2 log")

    drive(fakes.world(fakes.several()), play, opening=fakes.bare().run)


def test_a_long_search_goes_on_between_the_keys_and_can_be_left() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.sees("following · 300 lines")
        world.log.slices = 10**9
        await driver.press("slash", *"saved", "enter")
        await driver.sees("searching, at")
        await driver.press("up")
        reading = driver.app.screen.query_one(LogPane).reading
        assert reading is not None
        assert not reading.following
        await driver.press("escape")
        await driver.until(lambda: "searching, at" not in driver.text)
        await driver.until(lambda: "/saved" not in driver.text)
        world.log.slices = 20
        await driver.press("slash", *"saved", "enter")
        await driver.sees("saved checkpoints/epoch-056.pt")
        await driver.until(lambda: "searching, at" not in driver.text)
        world.log.slices = 20
        await driver.press("n")
        await driver.hears("no later match for saved")

    drive(world, play, size=(110, 28), opening=fakes.running().run)


def test_lines_are_selected_by_keys_and_handed_to_the_terminal() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.sees("following · 300 lines")
        newest = world.log.texts[-3:]
        await driver.press("V")
        await driver.sees("selecting")
        await driver.press("up", "up", "Y")
        await driver.hears("sent 3 lines")
        assert driver.app.clipboard == "\n".join(newest)
        await driver.until(lambda: "selecting" not in driver.text)
        await driver.press("V", "escape")
        await driver.until(lambda: "selecting" not in driver.text)
        await driver.sees("2 log")

    drive(world, play, size=(110, 28), opening=fakes.running().run)


def mouse_moved(pane: LogPane, y: int) -> MouseMove:
    """With the left button down."""
    return MouseMove(pane, 10, y, 0, 1, 1, shift=False, meta=False, ctrl=False)


def test_lines_are_selected_by_the_mouse() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("2", "z")
        await driver.sees("following · 300 lines")
        pane = driver.app.screen.query_one(LogPane)
        expected = [line.text for line in pane.reading.lines(pane.page)[1:4]] if pane.reading else []
        await driver.pilot.mouse_down("#log", offset=(10, 2))
        pane.post_message(mouse_moved(pane, 4))
        await driver.sees("selecting")
        await driver.press("Y")
        assert driver.app.clipboard == "\n".join(expected)

    drive(world, play, size=(110, 28), opening=fakes.running().run)


def test_a_selection_grows_beyond_the_view(reading: Reading) -> None:
    view = reading()
    view.select(10)
    view.extend(-30, 10)
    assert [line.text for line in view.chosen(10)] == [f"line {place:04}" for place in range(69, 100)]
    assert shown(view)[0] == "line 0069"
    view.extend(35, 10)
    assert [line.text for line in view.chosen(10)] == ["line 0099"]
    assert shown(view)[-1] == "line 0099"


def test_a_log_that_has_the_screen_offers_its_own_keys() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("2", "z")
        for key in ("n N next", "e E error", "v level", "Y copy", "z full size"):
            await driver.sees(key)

    drive(fakes.world(fakes.several()), play, size=(120, 28), opening=fakes.running().run)
