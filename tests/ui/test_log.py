"""The log pane: following, scrolling, searching, errors, levels, colours."""

from __future__ import annotations

from mpstui.ui.widgets.log_pane import log_row
from mpstui.ui.widgets.log_reading import LogReading, matcher

from . import fakes
from .driving import Driver, drive


def reading(lines: int = 100, **levels: str) -> LogReading:
    texts = [f"line {place}" for place in range(lines)]
    return LogReading(fakes.FakeLog(texts, levels={int(key[1:]): value for key, value in levels.items()}))


def shown(view: LogReading, rows: int = 10) -> list[str]:
    return [line.text for line in view.lines(rows)]


def test_it_follows_the_end() -> None:
    view = reading()
    assert shown(view)[-1] == "line 99"
    assert view.following


def test_scrolling_up_stays_where_it_is_and_down_follows_again() -> None:
    view = reading()
    view.scroll(-5, 10)
    assert shown(view)[0] == "line 85"
    assert not view.following
    log = view.document
    assert isinstance(log, fakes.FakeLog)
    log.texts.append("more")
    assert shown(view)[0] == "line 85"
    view.scroll(6, 10)
    assert shown(view)[-1] == "more"
    view.scroll(1, 10)
    assert view.following


def test_scrolling_past_the_start_stops_there() -> None:
    view = reading()
    view.scroll(-500, 10)
    assert shown(view)[0] == "line 0"
    view.to_start()
    view.scroll(-1, 10)
    assert shown(view)[0] == "line 0"
    view.follow()
    assert shown(view)[-1] == "line 99"


def test_search_goes_to_matches_both_ways() -> None:
    view = reading()
    assert view.find("line 4", 10)
    first = view.found
    assert first == 490, "the nearest above what was in view"
    assert view.find("line 4", 10, backwards=True, again=True)
    assert view.found == 480
    assert view.find("line 4", 10, again=True)
    assert view.found == 490
    assert not view.find("line 4", 10, again=True)
    assert not view.find("nowhere", 10)


def test_errors_one_after_another() -> None:
    view = reading(a10="error", a50="error", a80="warning")
    assert view.next_error(10)
    assert view.found == 500, "from the end, the last one"
    assert view.next_error(10, backwards=True)
    assert view.found == 100
    assert not view.next_error(10, backwards=True)
    assert view.next_error(10)
    assert view.found == 500


def test_levels_leave_lines_out() -> None:
    view = reading(a10="error", a50="warning", a99="error")
    assert view.next_level() == "warnings and errors"
    assert shown(view) == ["line 10", "line 50", "line 99"]
    assert view.next_level() == "errors"
    assert shown(view) == ["line 10", "line 99"]
    view.scroll(-1, 1)
    assert shown(view, 1) == ["line 10"]
    view.scroll(1, 1)
    assert shown(view, 1) == ["line 99"]
    assert view.next_level() == "all lines"


def test_an_empty_log() -> None:
    view = LogReading(fakes.FakeLog())
    assert shown(view) == []
    view.scroll(-1, 10)
    view.to_start()
    assert not view.find("x", 10)
    assert not view.next_error(10)


def test_a_bad_pattern_is_taken_literally() -> None:
    assert matcher("a(").search("fA(x")


def test_a_row_keeps_the_programs_colours_and_marks_matches() -> None:
    line = fakes.FakeLine(1, 0, "loss is fine", (fakes.FakeSpan(0, 4, "32"),), None)
    assert log_row(line, 20).spans[1] == ("loss", "sgr:32")
    marked = log_row(line, 20, "s i")
    assert [span for span in marked.spans if span.role == "match"] == [("s", "match"), (" i", "match")]
    assert marked.text == "  loss is fine"
    error = log_row(fakes.FakeLine(1, 0, "boom", (), "error"), 20)
    assert error.text.startswith("✗")
    assert log_row(fakes.FakeLine(1, 0, "z" * 500), 20).width == 20


def test_the_keys_of_the_log() -> None:
    world = fakes.world(fakes.several())

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
        await driver.hears("nothing is searched for")
        await driver.press("slash", *"saved", "enter")
        await driver.sees("saved checkpoints/epoch-056.pt")
        await driver.sees("/saved")
        await driver.press("n")
        await driver.hears("no later match for saved")
        await driver.press("slash", "escape", "g")
        world.log.texts.append("the newest line")
        await driver.press("end")
        await driver.sees("the newest line")

    drive(world, play, size=(110, 28), opening=fakes.running().run)


def test_log_keys_bring_the_log_into_view_and_need_one() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("3", "e")
        await driver.hears("there is no output yet")
        await driver.sees("2 log")

    drive(fakes.world(fakes.several()), play, opening=fakes.bare().run)
