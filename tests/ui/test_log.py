"""The log pane: following, scrolling, searching, errors, levels, colours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.events import MouseMove

from mpstui.core.formats.console import StyleSpan
from mpstui.core.logview.line import LogLine
from mpstui.core.model.snapshot import State
from mpstui.ui.panels.log import LogPane
from mpstui.ui.widgets.log_reading import LogReading
from mpstui.ui.widgets.log_rows import Look, log_rows, matcher
from tests.snapshots import changed

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
    assert view.find("line 004", 10, again=True)
    assert view.found == 400, "round and round"
    assert view.find("line 004", 10, backwards=True, again=True)
    assert view.found == 490
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
    view.next_level()
    assert shown(view) == ["Error: 10", "WARN   50", "Error: 99"]
    view.next_level()
    assert shown(view) == ["Error: 10", "Error: 99"]
    view.scroll(-1, 1)
    assert shown(view, 1) == ["Error: 10"]
    view.scroll(1, 1)
    assert shown(view, 1) == ["Error: 99"]
    view.next_level()
    assert view.level == 0


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
    assert log_rows(line, Look(20))[0].spans[1] == ("loss", "sgr:32")
    (marked,) = log_rows(line, Look(20, pattern="s i"))
    assert [span for span in marked.spans if span.role == "match"] == [("s i", "match")]
    assert marked.text == "  loss is fine"
    (error,) = log_rows(LogLine(1, 0, 4, "boom", (), "error"), Look(20))
    assert error.text.startswith("✗")
    assert log_rows(LogLine(1, 0, 500, "z" * 500), Look(20))[0].width == 20


LONG = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.5 GB, other allocations: 2.3 GB, max allowed: 20.1 GB)"
)


def whole(line: LogLine, look: Look, *, found: bool = False) -> str:
    """What its rows say, the marks and indents left out."""
    rows = log_rows(line, look, found=found)
    assert all(row.width <= look.width for row in rows)
    return "".join(row.text[2 if place == 0 else 4 :] for place, row in enumerate(rows))


@pytest.mark.parametrize("width", [12, 40, 80, 200])
def test_an_error_and_the_line_that_was_found_are_readable_in_full_without_wrapping(width: int) -> None:
    error, other = LogLine(1, 0, 120, LONG, (), "error"), LogLine(1, 0, 120, LONG)
    assert whole(error, Look(max(width, 30))) == LONG
    assert whole(other, Look(width), found=True) == LONG
    assert whole(other, Look(width, wrapped=True)) == LONG
    assert log_rows(other, Look(width))[0].text.endswith("…") == (width < 110)


def test_an_error_of_thousands_of_words_does_not_take_the_view_unless_it_is_gone_to() -> None:
    line = LogLine(1, 0, 9, "Error: " + "x" * 4000, (), "error")
    assert len(log_rows(line, Look(80))) == 8
    assert log_rows(line, Look(80))[-1].text.endswith("…")
    assert whole(line, Look(80), found=True) == line.text


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("wide 損失 " * 20, ()),
        ("zero\u0301 width e\u0301 " * 9, ()),
        ("a\tb\tlonger than a stop\tc\t" * 4, (StyleSpan(4, 9, "31"), StyleSpan(30, 40, "1;32"))),
        ("x" * 300, (StyleSpan(0, 300, "35"),)),
        ("", ()),
        ("   ", ()),
    ],
)
@pytest.mark.parametrize("width", [8, 21, 80])
def test_any_line_fits_any_width_wrapped_cut_or_sideways(text: str, spans: tuple[StyleSpan, ...], width: int) -> None:
    line = LogLine(1, 0, 9, text, spans)
    shown = "".join(whole(line, Look(width, wrapped=True), found=found) for found in (True, False))
    assert shown.replace(" ", "") == text.replace(" ", "").replace("\t", "") * 2
    for shift in (0, 1, 16, 17, 48, 500):
        (cut,) = log_rows(line, Look(width, shift=shift))
        assert cut.width <= width


def test_tabs_go_to_their_stops_and_sideways_begins_at_a_column() -> None:
    line = LogLine(1, 0, 9, "loss\t0.25\tok")
    assert log_rows(line, Look(40))[0].text == "  loss    0.25    ok"
    assert log_rows(line, Look(40, shift=8))[0].text == "  ….25    ok"
    assert log_rows(LogLine(1, 0, 9, "損損損損"), Look(40, shift=3))[0].text == "  …損損"


def test_a_view_is_of_rows_where_lines_are_broken(reading: Reading) -> None:
    view = reading()
    view.rows_of = lambda line: 3

    def seen() -> list[tuple[str, int]]:
        return [(line.text[-2:], row) for line, row in view.rows(4)]

    assert seen() == [("98", 2), ("99", 0), ("99", 1), ("99", 2)]
    view.scroll(-1, 4)
    assert seen() == [("98", 1), ("98", 2), ("99", 0), ("99", 1)]
    view.scroll(-4, 4)
    assert seen()[0] == ("97", 0)
    view.scroll(4, 4)
    assert seen()[0] == ("98", 1)
    view.scroll(1, 4)
    assert view.following
    view.to_start()
    view.scroll(2, 4)
    assert seen()[0] == ("00", 2)
    view.scroll(-9, 4)
    assert seen()[0] == ("00", 0)
    assert view.find("line 0050", 4)
    assert seen()[1:] == [("50", 0), ("50", 1), ("50", 2)], "the line that was found is whole in view"


def test_a_line_taller_than_the_view_is_read_row_by_row(reading: Reading) -> None:
    view = reading()
    view.rows_of = lambda line: 20
    assert [row for _, row in view.rows(5)] == [15, 16, 17, 18, 19]
    view.scroll(-12, 5)
    assert [row for _, row in view.rows(5)] == [3, 4, 5, 6, 7]


def test_wrapping_and_scrolling_sideways_by_their_keys() -> None:
    lines = ["short", "begin " + "-" * 150 + " the end of it", "short too"]

    async def play(driver: Driver) -> None:
        await driver.sees("short too")
        assert "the end of it" not in driver.text
        await driver.press("w")
        await driver.sees("the end of it")
        await driver.sees("wrapped")
        await driver.press("w")
        await driver.until(lambda: "the end of it" not in driver.text)
        await driver.press(*["right"] * 6)
        await driver.sees("the end of it")
        await driver.sees("from column 97")
        assert "begin" not in driver.text
        await driver.press(*["right"] * 9)
        await driver.press(*["left"] * 20)
        await driver.sees("begin")
        await driver.press("1", "left")
        await driver.until(lambda: "from column" not in driver.text)

    drive(fakes.world(fakes.several(), log=lines), play, opening=fakes.running().run)


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
        await driver.hears("No search yet")
        await driver.press("slash", *"saved", "enter")
        await driver.sees("saved checkpoints/epoch-056.pt")
        await driver.sees("/saved  1 of 1")
        await driver.press("n")
        await driver.sees("/saved  1 of 1")
        await driver.press("slash", "escape", "home")
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


def test_a_search_shows_what_it_finds_while_it_is_typed_and_how_many() -> None:
    lines = [
        f"step {step} loss {step / 7:.3f} {'Saved' if step % 50 == 0 else 'saved' if step % 100 == 7 else ''}"
        for step in range(300)
    ]

    async def play(driver: Driver) -> None:
        await driver.sees("following · 300 lines")
        await driver.press("slash", *"save")
        await driver.sees("step 250 loss")
        await driver.sees("/save  9 of 9")
        assert "1 chart" in driver.text, "what is searched stays in view"
        await driver.press("down")
        await driver.sees("/save  1 of 9")
        await driver.press("up", "up")
        await driver.sees("/save  8 of 9")
        await driver.press(*["backspace"] * 4)
        await driver.sees("following · 300 lines")
        await driver.press(*"Saved")
        await driver.sees("/Saved  6 of 6")
        await driver.press("escape")
        await driver.sees("following · 300 lines")
        assert "/Saved" not in driver.text
        await driver.press("slash", *"nosuch")
        await driver.sees("/nosuch  no match")
        await driver.press("enter")
        await driver.hears("no line matches nosuch")
        await driver.press("2", "z")
        await driver.until(lambda: "1 chart" in driver.text and "6 events" in driver.text)
        await driver.press("escape")
        await driver.until(lambda: "/nosuch" not in driver.text)
        await driver.press("escape")
        await driver.sees("train")
        await driver.press("escape")
        await driver.sees("just launched")

    drive(fakes.world(fakes.several(), log=lines), play, size=(110, 28), opening=fakes.running().run)


def test_a_level_says_how_many_lines_it_leaves(reading: Reading) -> None:
    view = reading(a10="error", a50="warning", a99="error")
    assert view.level_count == ""
    view.next_level()
    assert not view.count_on(1)
    assert view.level_count == "3"
    log = view.document
    assert isinstance(log, fakes.Log)
    log.append("Error: again")
    log.refresh()
    assert not view.count_on(1)
    assert view.level_count == "4"
    view.next_level()
    assert not view.count_on(1)
    assert view.level_count == "3"
    log.write(["one", "Error: two"])
    while view.count_on(1) or view.level_count != "1":
        pass


def test_a_match_that_the_level_hides_is_shown(reading: Reading) -> None:
    view = reading(a10="error")
    view.next_level()
    assert view.find("line 0050", 10)
    assert view.level == 0
    assert "line 0050" in shown(view)


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
        await driver.hears("There is no output yet.")
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


def test_a_run_that_has_ended_and_printed_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "output.log").touch()
    world = fakes.world((changed(fakes.finished(), output=tmp_path / "output.log"),))
    world.services.log = fakes.Log(tmp_path / "output.log")

    async def play(driver: Driver) -> None:
        await driver.sees("it printed nothing")

    drive(world, play, size=(120, 40), opening=fakes.finished().run)


def test_a_run_of_a_store_that_has_ended_waits_for_nothing() -> None:
    """Trackio keeps no output, and nobody can name the checkpoints of a run that was started elsewhere."""
    seen = changed(fakes.bare(), state=State.WATCHED, store="Trackio", health=None, profile=None, ended=fakes.NOW)

    async def play(driver: Driver) -> None:
        await driver.sees("no output was kept")
        await driver.press("5")
        await driver.sees("none known")
        assert "mpstui run" not in driver.text

    drive(fakes.world((seen,)), play, opening=seen.run, size=(120, 40))
